"""EnvPool's surface: `from cule.adapters import envpool` in place of `import envpool`, and CleanRL's loops run on.

Names, defaults and meanings of the keywords are those of EnvPool's Atari envs. What differs is said in `make`.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

import gymnasium
import numpy as np
import torch

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
    """A batch of envs as EnvPool has it: its spaces are those of one env. Made by `make`."""

    def __init__(self, env: AtariEnv, seed: int, gymnasium_api: bool):
        self.env, self.num_envs, self._gymnasium_api = env, env.num_envs, gymnasium_api
        self.observation_space, self.action_space = spaces_of(env, gymnasium_api)
        self._seed: int | None = seed
        self._fresh: tuple[Any, dict[str, Any]] | None = None
        self._steps = np.zeros(self.num_envs, np.int32)
        self._order = np.arange(self.num_envs)

    def __len__(self) -> int:
        return self.num_envs

    def _info(self, info: dict[str, Any], terminated: np.ndarray) -> dict[str, Any]:
        kept = {key: value for key, value in info.items() if not key.startswith("_") and key != "final_obs"}
        reward = kept.pop("reward", np.zeros(self.num_envs)).astype(np.float32)
        over = (terminated & (info["lives"] == 0)).astype(np.int32)
        return kept | {"reward": reward, "terminated": over, "elapsed_step": self._steps.copy()}

    def reset(self, **_: Any) -> Any:
        """Starts new episodes: observations, and with env_type="gymnasium" an info."""
        observations, info = self.env.reset(seed=self._seed)
        self._seed = None
        self._steps[:] = 0
        self._done = np.zeros(self.num_envs, bool)
        info = self._info(info, self._done)
        return (observations, info) if self._gymnasium_api else observations

    def step(self, actions: Any, env_id: Any = None) -> tuple[Any, ...]:
        """A step: observations, rewards float32, (terminated, truncated) or done, and the info."""
        self.send(actions, env_id)
        return self.recv()

    def async_reset(self) -> None:
        """Starts new episodes, whose first observations the next `recv` gives."""
        result = self.reset()
        self._fresh = result if self._gymnasium_api else (result, self._info({"lives": self._steps}, self._done))

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Hands over the actions of all envs, in the order of `env_id`.

        Raises:
            ValueError: `env_id` leaves envs out: cule steps all of them at once.
        """
        actions = actions.cpu().numpy() if isinstance(actions, torch.Tensor) else np.asarray(actions)
        if env_id is not None:
            ids = np.asarray(env_id)
            if ids.shape != (self.num_envs,) or not np.array_equal(np.sort(ids), np.arange(self.num_envs)):
                raise ValueError(f"expected env_id to name each of the {self.num_envs} envs once, got {ids.tolist()}")
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

    Differences from EnvPool: all envs are stepped at once (`batch_size` is `num_envs`), there is no "dm" API, games are
    played from the ROMs and by the rules of ale-py 0.12.1, and with `episodic_life` the step after a lost life plays
    on, where EnvPool's plays a no-op. `device`, `reset_pool_size`, `mode` and `difficulty` are AtariEnv's.

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
    env = AtariEnv(
        task_id,
        num_envs,
        frameskip=frame_skip,
        reward_clipping=reward_clip,
        max_num_frames_per_episode=max_episode_steps * frame_skip,
        output="numpy",
        **options,
    )
    return EnvPool(env, seed, env_type == "gymnasium")


def make_gym(task_id: str, **options: Any) -> EnvPool:
    """`make` with env_type="gym"."""
    return make(task_id, "gym", **options)


def make_gymnasium(task_id: str, **options: Any) -> EnvPool:
    """`make` with env_type="gymnasium"."""
    return make(task_id, "gymnasium", **options)
