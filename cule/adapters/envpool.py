"""EnvPool's surface: `from cule.adapters import envpool` in place of `import envpool`, and CleanRL's loops run on.

Names, defaults and meanings of the keywords are those of EnvPool's Atari envs. What differs is said in `make`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
import torch

from cule import arguments
from cule.rom import games
from cule.vector_env import AtariEnv

# AtariEnv's `episodic_life` starts a new game after each life, as ale-py's does; EnvPool's goes on with the next life.
_RENAMED = {
    "gray_scale": "grayscale", "frame_skip": "frameskip", "reward_clip": "reward_clipping", "img_height": "img_height",
    "img_width": "img_width", "stack_num": "stack_num", "noop_max": "noop_max", "episodic_life": "life_loss_info",
    "repeat_action_probability": "repeat_action_probability", "use_fire_reset": "use_fire_reset",
    "full_action_space": "full_action_space", "num_threads": "num_threads", "batch_size": "batch_size",
    "thread_affinity_offset": "thread_affinity_offset", "device": "device", "reset_pool_size": "reset_pool_size",
    "mode": "mode", "difficulty": "difficulty",
}  # fmt: skip


def spaces_of(env: AtariEnv, gymnasium_api: bool) -> tuple[Any, Any]:
    """The observation space and the action space of one env.

    Scripts for env_type="gym" may use gym, which gymnasium has followed, and ask if a space is one of gym's: where they
    have imported it, it is.
    """
    gym = None if gymnasium_api else sys.modules.get("gym")
    observations, actions = env.single_observation_space, env.single_action_space
    if gym is None:
        return observations, actions
    return gym.spaces.Box(0, 255, observations.shape, np.uint8), gym.spaces.Discrete(int(actions.n))


class EnvPool(gymnasium.Env):
    """A batch of envs as EnvPool has it: its spaces are those of one env. Made by `make`.

    Attributes:
        env: the AtariEnv.
        config: EnvPool's names of the keywords that it was made with, and their values.
        all_env_ids: (num_envs,) int32, ascending.
        is_async: False, as all envs are stepped at once.
    """

    is_async = False

    def __init__(self, env: AtariEnv, config: dict[str, Any], gymnasium_api: bool):
        self.env, self.num_envs, self._gymnasium_api = env, env.num_envs, gymnasium_api
        self.config = config
        self.observation_space, self.action_space = spaces_of(env, gymnasium_api)
        self.single_observation_space, self.single_action_space = self.observation_space, self.action_space
        self.all_env_ids = np.arange(self.num_envs, dtype=np.int32)
        self._seed: Any = config["seed"]
        self._fresh: tuple[Any, dict[str, Any]] | None = None
        self._steps = np.zeros(self.num_envs, np.int32)
        self._done = np.zeros(self.num_envs, bool)

    def __len__(self) -> int:
        return self.num_envs

    def _info(self, info: dict[str, Any], terminated: np.ndarray) -> dict[str, Any]:
        kept = {key: value for key, value in info.items() if not key.startswith("_") and key != "final_obs"}
        reward = kept.pop("reward", np.zeros(self.num_envs)).astype(np.float32)
        over = (terminated & (info["lives"] == 0)).astype(np.int32)
        return kept | {"reward": reward, "terminated": over, "elapsed_step": self._steps.copy()}

    def _chosen(self, env_id: Any, options: dict[str, Any] | None) -> np.ndarray:
        """The envs that a reset is for, in the order in which their rows are returned."""
        mask = arguments.reset_mask(options, self.num_envs)
        unknown = sorted(set(options or {}) - {"reset_mask"})
        if unknown:
            raise ValueError(f"expected options of a reset to be reset_mask, got {unknown[0]!r}")
        if env_id is None:
            return self.all_env_ids if mask is None else np.flatnonzero(mask.cpu().numpy())
        if mask is not None:
            raise ValueError("expected either env_id or options['reset_mask'], got both")
        ids = arguments.env_ids(env_id, self.num_envs, torch.device("cpu")).numpy()
        if len(np.unique(ids)) != len(ids):
            raise ValueError(f"expected env_id to name an env once, got {ids.tolist()}")
        return ids

    def reset(
        self,
        env_id: Sequence[int] | np.ndarray | None = None,
        *,
        seed: int | Sequence[int] | np.ndarray | None = None,
        options: dict[str, Any] | None = None,
    ) -> Any:
        """Starts new episodes: observations, and with env_type="gymnasium" an info.

        Args:
            env_id: which envs (None: all); the others go on. The rows returned are theirs, in this order.
            seed: one integer for each of these envs; or one for all, where env `i` in ascending order gets `seed + i`.
            options: `reset_mask`, (num_envs,) bool: which envs, in place of `env_id`.

        Raises:
            gymnasium.error.ResetNeeded: the first reset leaves envs out.
            TypeError, ValueError: an argument is not as described.
        """
        ids = self._chosen(env_id, options)
        mask = np.zeros(self.num_envs, bool)
        mask[ids] = True
        if seed is None:
            seed = self._seed
        elif np.shape(seed) == ids.shape:
            seed = np.asarray(seed)[np.argsort(ids)]  # AtariEnv has them in ascending order of the envs
        observations, info = self.env.reset(seed=seed, options=None if mask.all() else {"reset_mask": mask})
        self._seed = self._fresh = None
        self._steps[ids] = 0
        self._done = self._done & ~mask
        rows = {key: value[ids] for key, value in self._info(info, self._done).items()}
        return (observations[ids], rows) if self._gymnasium_api else observations[ids]

    def step(self, actions: Any, env_id: Any = None) -> tuple[Any, ...]:
        """A step: observations, rewards float32, (terminated, truncated) or done, and the info.

        Raises:
            ValueError: as `send`'s.
        """
        self.send(actions, env_id)
        return self.recv()

    def async_reset(self) -> None:
        """Starts new episodes, whose first observations the next `recv` gives."""
        result = self.reset()
        self._fresh = result if self._gymnasium_api else (result, self._info({"lives": self._steps}, self._done))

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Hands over the actions of all envs, in the order of `env_id`.

        Raises:
            TypeError, ValueError: the actions are not one integer for each env, or `env_id` leaves envs out: cule steps
                all of them at once.
        """
        actions = actions.cpu().numpy() if isinstance(actions, torch.Tensor) else np.asarray(actions)
        if env_id is not None:
            ids = np.asarray(env_id)
            if ids.shape != (self.num_envs,) or not np.array_equal(np.sort(ids), np.arange(self.num_envs)):
                raise ValueError(f"expected env_id to name each of the {self.num_envs} envs once, got {ids.tolist()}")
            if actions.shape[:1] != (self.num_envs,):
                raise ValueError(f"expected an action for each of the {self.num_envs} envs, got shape {actions.shape}")
            actions = actions[np.argsort(ids)]
        self.env.send(actions)

    def recv(self) -> tuple[Any, ...]:
        """What came of the last `send` or `async_reset`, of all envs in ascending order."""
        if self._fresh is not None:
            (observations, info), self._fresh = self._fresh, None
            info["env_id"] = np.arange(self.num_envs, dtype=np.int32)
            terminated = truncated = np.zeros(self.num_envs, bool)
            rewards = np.zeros(self.num_envs, np.float32)
        else:
            observations, rewards, terminated, truncated, info = self.env.recv()
            # The step after an end resets.
            self._steps = np.where(self._done, 0, self._steps + 1).astype(np.int32)
            self._done = terminated | truncated
            rewards, info = rewards.astype(np.float32), self._info(info, terminated)
        if self._gymnasium_api:
            return observations, rewards, terminated, truncated, info
        return observations, rewards, terminated | truncated, info | {"TimeLimit.truncated": truncated & ~terminated}

    def render(self) -> Any:
        """All screens in one picture."""
        return self.env.render()

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


def make(
    task_id: str,
    env_type: Literal["gym", "gymnasium"] = "gym",
    num_envs: int = 1,
    seed: int = 42,
    max_episode_steps: int = 27_000,
    reward_clip: bool = False,
    frame_skip: int = 4,
    **options: Any,
) -> EnvPool:
    """An EnvPool of Atari games.

    Differences from EnvPool 1.2.5: all envs are stepped at once (`batch_size` is `num_envs`), the first reset is of all
    of them, and `reset` takes a seed, which EnvPool's ignores. Games are played from the ROMs and by the rules of
    ale-py 0.12.1, and with `episodic_life` the step after a lost life plays on, where EnvPool's plays a no-op.
    `device`, `reset_pool_size`, `mode` and `difficulty` are AtariEnv's.

    What EnvPool has and this has not: env_type="dm", `make_spec` and `spec`, `xla`, `info["players"]`, `info["ram"]`
    (`env.env.get_ram()` gives it), and the keywords `zero_discount_on_life_loss`, `max_num_players`, `env_seed`,
    `use_inter_area_resize` and `render_mode`. `config` has the keywords that this takes.

    Args:
        task_id: "Pong-v5" or another name that AtariEnv knows.
        env_type: "gym": `reset` gives observations, `step` four values; "gymnasium": two and five.
        num_envs: how many consoles.
        seed: of the first `reset`.
        max_episode_steps: steps after which an episode is truncated.
        reward_clip: rewards are -1, 0 or 1; `info["reward"]` is not clipped.
        frame_skip: frames in a step.
        **options: EnvPool's other keywords that AtariEnv has: gray_scale, img_height, stack_num, episodic_life...

    Raises:
        TypeError, ValueError: a keyword is not known, or its value is not what it should be.
    """
    if env_type not in ("gym", "gymnasium"):
        raise ValueError(f"expected env_type to be 'gym' or 'gymnasium', got {env_type!r}")
    unknown = sorted(set(options) - set(_RENAMED))
    if unknown:
        raise TypeError(f"expected keywords of EnvPool's that cule has ({', '.join(_RENAMED)}), got {unknown[0]!r}")
    options = {_RENAMED[name]: value for name, value in options.items()}
    defaults = inspect.signature(AtariEnv).parameters
    config = {name: options.get(ours, defaults[ours].default) for name, ours in _RENAMED.items()}
    config |= {
        "task": task_id, "num_envs": num_envs, "batch_size": num_envs, "seed": seed,
        "max_episode_steps": max_episode_steps, "reward_clip": reward_clip, "frame_skip": frame_skip,
    }  # fmt: skip
    env = AtariEnv(
        task_id,
        num_envs,
        frameskip=frame_skip,
        reward_clipping=reward_clip,
        max_num_frames_per_episode=max_episode_steps * frame_skip,
        output="numpy",
        **options,
    )
    return EnvPool(env, config, env_type == "gymnasium")


def make_gym(task_id: str, **options: Any) -> EnvPool:
    """`make` with env_type="gym"."""
    return make(task_id, "gym", **options)


def make_gymnasium(task_id: str, **options: Any) -> EnvPool:
    """`make` with env_type="gymnasium"."""
    return make(task_id, "gymnasium", **options)


def list_all_envs() -> list[str]:
    """The names of all games, such as "Pong-v5"."""
    return [f"{game.ale_id}-v5" for game in games()]
