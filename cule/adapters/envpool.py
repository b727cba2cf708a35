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
from cule.adapters.envpool_spec import EnvSpec, make_spec
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
        is_async: False, as all envs are stepped at once.
        render_mode: None or "rgb_array".
    """

    is_async = False
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
        self._fresh: tuple[Any, dict[str, Any]] | None = None
        self._steps = np.zeros(self.num_envs, np.int32)
        self._lives = np.zeros(self.num_envs, np.int32)
        self._over = np.zeros(self.num_envs, bool)

    def _make_spaces(self) -> None:
        self.observation_space = self.single_observation_space = self.spec.observation_space
        self.action_space = self.single_action_space = self.spec.action_space

    def _check_resize(self) -> None:
        config, shape = self.spec.config, self.env.get_screen().shape[1:]
        size = (config.img_height, config.img_width)
        if not config.use_inter_area_resize and size != shape:
            self.env.close()
            raise ValueError(
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

    def _images(self, observations: np.ndarray) -> np.ndarray:
        """AtariEnv's observations as EnvPool has them.

        At the start of an episode all planes show its first frame. Colors are planes, too.
        """
        stack = observations.shape[1]
        for env in np.flatnonzero(self._steps < stack - 1):
            first = stack - 1 - self._steps[env]
            observations[env, :first] = observations[env, first]
        if observations.ndim == 4:
            return observations
        planes = observations.transpose(0, 1, 4, 2, 3)
        return planes.reshape(self.num_envs, -1, *planes.shape[3:])

    def _info(self, info: dict[str, Any], over: np.ndarray) -> dict[str, Any]:
        return {
            "env_id": info["env_id"],
            "players": {"env_id": info["env_id"].copy()},
            "lives": info["lives"],
            "reward": info.get("reward", np.zeros(self.num_envs)).astype(np.float32),
            "terminated": over.astype(np.int32),
            "ram": self.env.get_ram(),
            "elapsed_step": self._steps.copy(),
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
            raise ValueError("expected either env_id or options['reset_mask'], got both")
        ids = arguments.env_ids(env_id, self.num_envs, torch.device("cpu")).numpy()
        if len(np.unique(ids)) != len(ids):
            raise ValueError(f"expected env_id to name an env once, got {ids.tolist()}")
        return ids

    def _restart(self, ids: np.ndarray, seed: Any) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts new episodes in some envs: the observations and the info of all."""
        mask = np.zeros(self.num_envs, bool)
        mask[ids] = True
        if seed is None:
            seed = self._seed
        elif np.shape(seed) == ids.shape:
            # AtariEnv has them in ascending order of the envs.
            seed = np.asarray(seed)[np.argsort(ids)]
        options = None if mask.all() else {"reset_mask": mask}
        observations, info = self.env.reset(seed=seed, options=options)
        self._seed = self._fresh = None
        self._steps[mask] = 0
        self._over &= ~mask
        self._lives = info["lives"].copy()
        return self._images(observations), self._info(info, self._over)

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
            Observations and the info of these envs.

        Raises:
            gymnasium.error.ResetNeeded: the first reset leaves envs out.
            TypeError, ValueError: an argument is not as described.
        """
        ids = self._chosen(env_id, options)
        observations, info = self._restart(ids, seed)
        rows = {key: value[ids] for key, value in info.items() if key != "players"}
        return self._reset_result(
            observations[ids], rows | {"players": {"env_id": rows["env_id"].copy()}}
        )

    def step(self, actions: Any, env_id: Any = None) -> tuple[Any, ...]:
        """A step: observations, rewards float32, terminated, truncated, and the info.

        Raises:
            TypeError, ValueError: as `send`'s.
        """
        self.send(actions, env_id)
        return self.recv()

    def async_reset(self) -> None:
        """Starts new episodes; the next `recv` gives their first observations."""
        self._fresh = self._restart(self.all_env_ids, None)

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Starts a step of all envs, with actions in the order of `env_id`.

        Args:
            actions: (num_envs,) integers; or a dict of them as "action", and "env_id".
            env_id: which env each action is for; None: ascending.

        Raises:
            TypeError, ValueError: the actions are not one integer for each env, or `env_id` leaves
                envs out: cule steps all of them at once.
        """
        if isinstance(actions, dict):
            if "action" not in actions:
                raise ValueError(
                    f"expected a dict of actions to have 'action', got {sorted(actions)}"
                )
            env_id = actions.get("env_id", env_id)
            actions = actions["action"]
        actions = np.asarray(actions.cpu() if isinstance(actions, torch.Tensor) else actions)
        if env_id is not None:
            ids = np.asarray(env_id)
            if ids.shape != (self.num_envs,) or not np.array_equal(
                np.sort(ids), np.arange(self.num_envs)
            ):
                raise ValueError(
                    f"expected env_id to name each of the {self.num_envs} envs once, "
                    f"got {ids.tolist()}"
                )
            if actions.shape[:1] != (self.num_envs,):
                raise ValueError(
                    f"expected an action for each of the {self.num_envs} envs, "
                    f"got shape {actions.shape}"
                )
            actions = actions[np.argsort(ids)]
        self.env.send(actions)

    def recv(self) -> tuple[Any, ...]:
        """The results of the last `send` or `async_reset`, of all envs in ascending order."""
        if self._fresh is not None:
            (observations, info), self._fresh = self._fresh, None
            none = np.zeros(self.num_envs, bool)
            return self._step_result(
                observations, np.zeros(self.num_envs, np.float32), none, none.copy(), info
            )
        observations, rewards, terminated, _, info = self.env.recv()
        # The step after a game has ended or was truncated resets the env.
        self._steps = np.where(self._over, 0, self._steps + 1).astype(np.int32)
        truncated = self._steps >= self.config["max_episode_steps"]
        lost = (info["lives"] > 0) & (info["lives"] < self._lives)
        over = terminated & ~(lost & self.config["episodic_life"])
        self._over, self._lives = over | truncated, info["lives"].copy()
        observations, info = self._images(observations), self._info(info, over)
        return self._step_result(
            observations, rewards.astype(np.float32), terminated & ~truncated, truncated, info
        )

    def render(self, env_ids: Any = None, camera_id: int | None = None) -> Any:
        """The screens of the given envs (None: the first one's): (n, height, 160, 3) uint8.

        Raises:
            RuntimeError: the envs were not made with `render_mode="rgb_array"`.
        """
        if self.render_mode is None:
            raise RuntimeError("expected render_mode='rgb_array' in make() for render(), got None")
        ids = arguments.env_ids(
            np.atleast_1d(0 if env_ids is None else env_ids), self.num_envs, torch.device("cpu")
        )
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

    - All envs are stepped at once: `batch_size` is `num_envs`, `env_id` of `step` and `send` names
      every env, and the first reset resets all of them.
    - `reset` uses its seed, which EnvPool's ignores; a seed is at least 0.
    - Games are played from the ROMs and by the rules of ale-py 0.12.1.
    - The random no-ops at the start of an episode are different. Games without FIRE start after 0
      to noop_max - 1 of them, EnvPool's after 1 to noop_max.
    - Resets draw from a pool of start states, unless `reset_pool_size=0`.
    - With `episodic_life`, the step after a lost life plays its action; EnvPool's plays no-ops and
      FIRE instead.
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
        raise ValueError(f"expected env_type to be 'gym' or 'gymnasium', got {env_type!r}")
    if not options.get("gym_reset_return_info", True):
        raise ValueError(
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
