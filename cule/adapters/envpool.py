"""EnvPool 1.x: `from cule.adapters import envpool` in place of `import envpool`.

Names, defaults and meanings of the keywords are those of EnvPool 1.2.5's Atari envs; `make` lists
the differences. Scripts written for EnvPool 0.x, such as CleanRL's, use `cule.adapters.envpool_v0`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv

from cule import arguments
from cule.adapters.envpool_rows import Rows, Singly, Stepping, Together
from cule.adapters.envpool_spec import EnvSpec, make_spec
from cule.errors import Failed, InvalidValue, shown
from cule.rom import games
from cule.vector_env import AtariEnv

__all__ = ["EnvPool", "EnvSpec", "list_all_envs", "make", "make_gym", "make_gymnasium", "make_spec"]


class EnvPool(VectorEnv, gymnasium.Env):  # type: ignore[misc]  # EnvPool's is both, too
    """A batch of envs as EnvPool 1.x has it: its spaces are those of one env. Made by `make`.

    Attributes:
        env: the AtariEnv.
        spec: the `EnvSpec`.
        config: the keywords that it was made with, and EnvPool's defaults of the others.
        all_env_ids: (num_envs,) int32, ascending.
        is_async: whether `batch_size` is below `num_envs`: envs are then stepped one by one, and
            `recv` gives those that are done first.
        render_mode: None or "rgb_array".
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.NEXT_STEP,
    }  # fmt: skip

    def __init__(self, spec: EnvSpec, render_mode: Literal["rgb_array"] | None = None):
        self.spec: Any = spec
        if render_mode is not None:
            arguments.choice("render_mode", render_mode, ["rgb_array"])
        self.render_mode = render_mode
        config = spec.config
        self.env = AtariEnv(config.task, config.num_envs, output="numpy", **config.atari_options())
        self._check_resize()
        self.config, self.num_envs = config._asdict(), config.num_envs
        self._make_spaces()
        self.all_env_ids = np.arange(self.num_envs, dtype=np.int32)
        self._seed: Any = list(config.env_seed) or config.seed
        self.is_async = 0 < config.batch_size < self.num_envs
        self._stepping: Stepping = (
            Singly(self.env, config.batch_size) if self.is_async else Together(self.env)
        )
        self._lives = np.zeros(self.num_envs, np.int32)

    def _make_spaces(self) -> None:
        self.observation_space = self.single_observation_space = self.spec.observation_space
        self.action_space = self.single_action_space = self.spec.action_space

    def _check_resize(self) -> None:
        config, shape = self.spec.config, tuple(self.env.engine.contents.screen(0).shape)
        size = (config.img_height, config.img_width)
        if not config.use_inter_area_resize and size != shape:
            self.env.close()
            raise InvalidValue(
                "expected use_inter_area_resize to be True, as cule resizes by area, unless "
                f"img_height and img_width are the screen's {shape}, got False with {size}"
            )

    def __len__(self) -> int:
        return self.num_envs

    def __repr__(self) -> str:
        return repr(self.spec).replace("EnvSpec", type(self).__name__, 1)

    # gymnasium.Env's reads the id of a gymnasium spec, which this env does not have.
    __str__ = __repr__

    def seed(self, seed: Any = None) -> None:
        """Warns, as EnvPool's does: `make` and `reset` take seeds."""
        warnings.warn(
            "expected a seed in make() or reset(), as seed() does nothing",
            UserWarning,
            stacklevel=2,
        )

    # What calls return ----------------------------------------------------------------------------

    def _steps(self, rows: Rows) -> np.ndarray:
        """(n,) int32: the steps of these episodes. The last may have fewer frames than others."""
        return -(-rows.frames // self.config["frame_skip"])

    def _images(self, rows: Rows) -> np.ndarray:
        """AtariEnv's observations as EnvPool has them: colors are planes, too."""
        if rows.observations.ndim == 4:
            return rows.observations
        planes = rows.observations.transpose(0, 1, 4, 2, 3)
        return planes.reshape(len(planes), -1, *planes.shape[3:])

    def _info(self, rows: Rows, over: np.ndarray) -> dict[str, Any]:
        return {
            "env_id": rows.ids.copy(),
            "players": {"env_id": rows.ids.copy()},
            "lives": rows.lives,
            "reward": rows.raw_rewards.astype(np.float32),
            "terminated": over.astype(np.int32),
            "ram": rows.ram,
            "elapsed_step": self._steps(rows),
        }

    def _reset_result(self, observations: np.ndarray, info: dict[str, Any]) -> Any:
        return observations, info

    def _step_result(
        self,
        observations: np.ndarray,
        rewards: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        info: dict[str, Any],
    ) -> tuple[Any, ...]:
        return observations, rewards, terminated, truncated, info

    # Playing --------------------------------------------------------------------------------------

    def _chosen(self, env_id: Any, options: dict[str, Any] | None) -> np.ndarray:
        """The envs that a reset is for, in the order in which their rows are returned."""
        mask = arguments.reset_mask(options, self.num_envs)
        if env_id is None:
            return self.all_env_ids if mask is None else np.flatnonzero(mask.cpu().numpy())
        if mask is not None:
            raise InvalidValue("expected either env_id or options['reset_mask'], got both")
        ids = arguments.env_ids(env_id, self.num_envs, torch.device("cpu")).numpy()
        if len(np.unique(ids)) != len(ids):
            raise InvalidValue(f"expected env_id to name an env once, got {ids.tolist()}")
        return ids

    def _restart(self, ids: np.ndarray, seed: Any) -> None:
        """Starts new episodes in some envs."""
        if seed is None:
            seed = self._seed
        self._stepping.reset(ids, seed)
        self._seed = None

    def reset(  # type: ignore[override]  # EnvPool's takes env_id
        self,
        env_id: Sequence[int] | np.ndarray | None = None,
        *,
        seed: int | Sequence[int] | np.ndarray | None = None,
        options: dict[str, Any] | None = None,
    ) -> Any:
        """Starts new episodes.

        Args:
            env_id: which envs (None: all); the others go on. The rows returned are theirs, in this
                order.
            seed: one integer for each of these envs; or one for all, where env `i` in ascending
                order gets `seed + i`.
            options: `reset_mask`, (num_envs,) bool: which envs, in place of `env_id`.

        Returns:
            Observations and the info of these envs; if `is_async`, of the first `batch_size` that
            are done.

        Raises:
            gymnasium.error.AlreadyPendingCallError: one of the envs is in flight.
            gymnasium.error.ResetNeeded: the first reset leaves envs out.
            TypeError, ValueError: an argument is not as described.
        """
        self._restart(self._chosen(env_id, options), seed)
        observations, *_, info = self._received()
        return self._reset_result(observations, info)

    def step(self, actions: Any, env_id: Any = None) -> tuple[Any, ...]:
        """A step: observations, rewards float32, terminated, truncated, and the info.

        Raises:
            TypeError, ValueError: as `send`'s.
        """
        self.send(actions, env_id)
        return self.recv()

    def async_reset(self) -> None:
        """Starts new episodes in all envs; `recv` gives their first observations."""
        self._restart(self.all_env_ids, None)

    def settle(self) -> None:
        """Waits for all envs, and drops what was sent and not received. EnvPool's has no such call.

        After an interrupt, as by Ctrl-C, of any other call, each env can be sent an action or be
        reset then.
        """
        self._stepping.settle()
        self._lives = self.env.engine.tensors["lives"].cpu().numpy().copy()

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Starts a step, with actions in the order of `env_id`; does not wait for it.

        Args:
            actions: an integer for each env of `env_id`; or a dict of them as "action", and
                "env_id".
            env_id: which env each action is for; None: all, ascending. Only if `is_async`, it may
                leave envs out.

        Raises:
            gymnasium.error.AlreadyPendingCallError: what one of the envs was sent has not been
                received.
            TypeError, ValueError: the actions are not one integer for each env, or `env_id` leaves
                envs out that step together.
        """
        if isinstance(actions, dict):
            if "action" not in actions:
                raise InvalidValue(
                    f"expected a dict of actions to have 'action', got {sorted(actions)}"
                )
            env_id = actions.get("env_id", env_id)
            actions = actions["action"]
        actions = arguments.on_host("actions", actions)
        if env_id is None:
            self._stepping.send(self.all_env_ids, actions)
            return
        ids = arguments.env_ids(env_id, self.num_envs, torch.device("cpu")).numpy()
        if actions.shape[:1] != ids.shape:
            raise InvalidValue(
                f"expected an action for each of the {len(ids)} envs, got shape {actions.shape}"
            )
        self._stepping.send(ids, actions)

    def recv(self) -> tuple[Any, ...]:
        """The results of `send` or `async_reset`, a row for each env.

        They are of all envs in ascending order; or if `is_async` of `batch_size` envs, in the order
        in which they were done, while the others are played on. `env_id` of the info names them.

        Raises:
            gymnasium.error.NoAsyncCallError: nothing was sent, or to fewer envs than `batch_size`.
        """
        return self._step_result(*self._received())

    def _received(self) -> tuple[Any, ...]:
        """Observations, rewards, terminated, truncated and the info of what was sent."""
        rows = self._stepping.recv()
        ids, lives = rows.ids, rows.lives
        truncated = ~rows.fresh & (self._steps(rows) >= self.config["max_episode_steps"])
        # A life may be lost in the very step that is the episode's last by its length.
        lost = (lives > 0) & (lives < self._lives[ids])
        over = rows.over & rows.terminated & ~(truncated & lost)
        self._lives[ids] = lives
        return (
            self._images(rows), rows.rewards.astype(np.float32), rows.terminated & ~truncated,
            truncated, self._info(rows, over),
        )  # fmt: skip

    def render(self, env_ids: Any = None, camera_id: int | None = None) -> Any:
        """The screens of the given envs (None: the first one's): (n, height, 160, 3) uint8.

        Raises:
            RuntimeError: the envs were not made with `render_mode="rgb_array"`.
        """
        if self.render_mode is None:
            raise Failed("expected render_mode='rgb_array' in make() for render(), got None")
        named = arguments.on_host("env_ids", 0 if env_ids is None else env_ids)
        ids = arguments.env_ids(np.atleast_1d(named), self.num_envs, torch.device("cpu"))
        return self.env.get_screen_rgb()[ids.numpy()]

    def close_extras(self, **_: Any) -> None:
        """Frees the envs."""
        self.env.close()


def make(
    task_id: str,
    env_type: Literal["gym", "gymnasium"] = "gymnasium",
    *,
    render_mode: Literal["rgb_array"] | None = None,
    **options: Any,
) -> EnvPool:
    """An EnvPool of Atari games, as in EnvPool 1.2.5.

    As there, "gym" means the same as "gymnasium": `reset` returns two values and `step` five. In
    EnvPool 0.x "gym" returns one and four: for that, see `cule.adapters.envpool_v0`.

    Differences from EnvPool 1.2.5:

    - Unless `batch_size` is below `num_envs`, `env_id` of `step` and `send` names every env. The
      first reset resets all of them.
    - Where EnvPool's `recv` would wait forever, or an env would get a second action before the
      first has been received, a call raises.
    - A `batch_size` below `num_envs` is for the CPU, which `device=None` then means.
    - `reset` uses its seed, which EnvPool's ignores; a seed is at least 0.
    - Games are played from the ROMs and by the rules of ale-py 0.12.1.
    - Resets draw from a pool of start states, unless `reset_pool_size=0`: then the random no-ops
      are EnvPool's, seed for seed.
    - The last observation of an episode is pooled from the same frames as ale-py's, which are not
      EnvPool's.
    - Games whose screen has more than 210 lines show all of them.
    - Actions are integers of any width, below `action_space.n`; EnvPool rounds floats, and does not
      check numbers.
    - There are two more keywords, AtariEnv's `device` and `reset_pool_size`.

    These parts of EnvPool are missing: env_type="dm", `xla` (see `cule.adapters.jax`),
    `max_num_players` other than 1,
    `use_inter_area_resize=False` with a resize, render_mode="human", `render_env_id`,
    `render_width`, `render_height`, `render_camera_id`, and `base_path`.

    Args:
        task_id: "Pong-v5" or another name that AtariEnv knows.
        env_type: "gym" or "gymnasium", which mean the same.
        render_mode: "rgb_array" if you want to call `render`.
        **options: EnvPool's keywords, with its defaults: num_envs, seed, max_episode_steps,
            reward_clip, frame_skip, gray_scale, img_height, stack_num, episodic_life...
            `envpool_spec.Config` has them all.

    Raises:
        TypeError, ValueError: a keyword is unknown, or its value is wrong.
    """
    if env_type not in ("gym", "gymnasium"):
        raise InvalidValue(f"expected env_type to be 'gym' or 'gymnasium', got {shown(env_type)}")
    if not options.get("gym_reset_return_info", True):
        raise InvalidValue(
            "expected gym_reset_return_info to be True, as in EnvPool 1.x; "
            "cule.adapters.envpool_v0 is as EnvPool 0.x"
        )
    return EnvPool(make_spec(task_id, **options), render_mode)


def make_gym(task_id: str, **options: Any) -> EnvPool:
    """`make`, as in EnvPool 1.x."""
    return make(task_id, **options)


def make_gymnasium(task_id: str, **options: Any) -> EnvPool:
    """`make`."""
    return make(task_id, **options)


def list_all_envs() -> list[str]:
    """The names of all games, such as "Pong-v5"."""
    return [f"{game.ale_id}-v5" for game in games()]
