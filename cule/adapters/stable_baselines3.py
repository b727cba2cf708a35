"""A stable-baselines3 VecEnv: `PPO("CnnPolicy", AtariVecEnv("pong", 64)).learn(1_000_000)`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from cule import arguments
from cule.env.keywords import refuse
from cule.errors import InvalidValue, shown
from cule.vector_env import AtariEnv
from cule.wrappers.statistics import EpisodeStatistics

_RESERVED = {
    "autoreset_mode": "stable-baselines3 expects envs to reset in the same step",
    "batch_size": "stable-baselines3 steps all envs",
    "num_players": "stable-baselines3 has one agent",
    "output": "it takes and gives arrays",
    "sound_obs": "its observations have no sound",
    "render_mode": "stable-baselines3 combines the envs' pictures",
}
# What each step's infos have, under ale-py's names.
PLAYED = ("lives", "frame_number", "episode_frame_number")


def _vec_monitor_asks() -> bool:
    """Whether this is called for a VecMonitor that is being made: it tells its env nothing else."""
    frame, constructor = sys._getframe(1), VecMonitor.__init__.__code__
    while frame.f_back and frame.f_code is not constructor:
        frame = frame.f_back
    return frame.f_code is constructor


class AtariVecEnv(VecEnv):
    """Atari 2600 games for stable-baselines3.

    Observations are images with the channels first, (num_envs, stack_num, img_height, img_width)
    uint8; in color there are three channels for each frame. Each step's infos have `lives`,
    `frame_number` and `episode_frame_number`, as ale-py's have them (after an episode's end, of the
    new one), and at an end what a Monitor reports, with unclipped rewards. Episodes start as with
    stable-baselines3's own AtariWrapper, unless `episode_start="ale"` is given. With
    `life_loss_info=True` a lost life is reported as the end of an episode; a step of no-ops, one of
    FIRE and one of the third action begin the next life of the same game, with a fresh stack. What
    is scored in these steps is in no reward, as there.

    Args:
        game: as AtariEnv's.
        num_envs: how many consoles.
        device: as AtariEnv's. stable-baselines3 works with arrays, so what a GPU plays is copied to
            the host.
        **options: AtariEnv's other keywords, except autoreset_mode, batch_size, num_players,
            output, render_mode and sound_obs; `obs_type` is "image".

    Raises:
        TypeError, ValueError: as AtariEnv's.
    """

    def __init__(
        self,
        game: str | Sequence[str],
        num_envs: int,
        device: str | torch.device | None = None,
        **options: Any,
    ):
        refuse("AtariVecEnv", options, _RESERVED)
        if options.get("obs_type", "image") != "image":
            raise InvalidValue(
                "expected obs_type to be 'image' for AtariVecEnv, as an episode's final "
                f"observation is an image, got {shown(options['obs_type'])}"
            )
        options = {"episode_start": "baselines"} | options
        self.env = AtariEnv(
            game, num_envs, device, autoreset_mode="SameStep", render_mode="rgb_array",
            output="torch_shared", **options,
        )  # fmt: skip
        self._played = EpisodeStatistics(self.env)
        space = self.env.single_observation_space
        if space.shape is not None and len(space.shape) == 4:
            stack, height, width, colors = space.shape
            space = Box(0, 255, (stack * colors, height, width), np.uint8)
        super().__init__(num_envs, space, self.env.single_action_space)
        self._began = time.monotonic()

    def _array(self, observations: torch.Tensor) -> np.ndarray:
        if observations.dim() == 5:
            observations = observations.permute(0, 1, 4, 2, 3).flatten(1, 2)
        return observations.cpu().numpy().copy()

    def _each(self, info: dict[str, torch.Tensor], keys: Iterable[str]) -> list[dict[str, Any]]:
        """Some entries of a batch's info as a dict for each env."""
        columns = {key: info[key].tolist() for key in keys}
        return [{key: values[i] for key, values in columns.items()} for i in range(self.num_envs)]

    def set_options(self, options: dict[str, Any] | list[dict[str, Any]] | None = None) -> None:
        """Sets the options of the next `reset`, one dict for all envs.

        Args:
            options: `reset_mask`, (num_envs,) bool: which envs are reset; the others go on.

        Raises:
            TypeError, ValueError: it is not one dict for all envs, or has other options.
        """
        if isinstance(options, list):
            same = all(one is options[0] or one == options[0] for one in options)
            if len(options) != self.num_envs or not same:
                raise InvalidValue(
                    f"expected the same options for all {self.num_envs} envs, as they are one "
                    f"batch, got {shown(options)}"
                )
            options = options[0]
        arguments.reset_mask(options, self.num_envs)
        super().set_options(options)

    def reset(self) -> np.ndarray:
        """Starts new episodes, as `seed` and `set_options` have asked since the last reset."""
        options = self._options[0]
        mask = arguments.reset_mask(options, self.num_envs)
        chosen = range(self.num_envs) if mask is None else torch.nonzero(mask).flatten().tolist()
        seeds = [self._seeds[i] for i in chosen]
        given = None if None in seeds else seeds
        observations, info = self._played.reset(seed=given, options=options)
        self.reset_infos = self._each(info, [key for key in info if not key.startswith("_")])
        self._reset_seeds()
        self._reset_options()
        self._began = time.monotonic()
        return self._array(observations)

    def step_async(self, actions: np.ndarray) -> None:
        """Takes the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Plays a step.

        Returns:
            Observations, rewards (num_envs,) float32, dones (num_envs,) bool, a dict for each env.
        """
        observations, rewards, terminated, truncated, info = self._played.step(self._actions)
        dones = (terminated | truncated).cpu().numpy()
        infos = self._each(info, PLAYED)
        ended = np.flatnonzero(dones)
        if ended.size:
            final = self._array(info["final_obs"][torch.from_numpy(ended).to(self.env.device)])
            returns, lengths = info["episode"]["r"].tolist(), info["episode"]["l"].tolist()
            whole = info["_episode"].tolist()
            cut_off = (truncated & ~terminated).tolist()
            seconds = round(time.monotonic() - self._began, 6)
            for i, observation in zip(ended.tolist(), final, strict=True):
                infos[i] |= {"terminal_observation": observation, "TimeLimit.truncated": cut_off[i]}
                if whole[i]:
                    infos[i]["episode"] = {"r": returns[i], "l": lengths[i], "t": seconds}
        return self._array(observations), rewards.float().cpu().numpy(), dones, infos

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()

    def get_images(self) -> Sequence[np.ndarray]:
        """Each env's screen, (height, 320, 3) uint8."""
        return list(self.env.render())

    def _count(self, indices: int | Iterable[int] | None) -> int:
        return len(list(self._get_indices(indices)))

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """The batch's attribute, once for each env."""
        return [getattr(self.env, attr_name)] * self._count(indices)

    def set_attr(
        self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None
    ) -> None:
        """Sets an attribute of the whole batch; envs have no attributes of their own."""
        if self._count(indices) != self.num_envs:
            raise InvalidValue(
                f"expected all envs, as they share their attributes, got indices {indices}"
            )
        setattr(self.env, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: int | Iterable[int] | None = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Calls a method of the whole batch once; repeats its result for each env."""
        result = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return [result] * self._count(indices)

    def env_is_wrapped(
        self, wrapper_class: type, indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """True only for Monitor: no env is wrapped, but infos have what a Monitor adds.

        Raises:
            ValueError: a VecMonitor asks, and lives are reported as episodes.
        """
        if self.env.engine.options.life_loss_info and _vec_monitor_asks():
            raise InvalidValue(
                "expected no VecMonitor around an AtariVecEnv with life_loss_info=True, as it "
                "counts each lost life as an episode, got one; infos have each whole game's "
                "'episode' without it"
            )
        return [wrapper_class is Monitor] * self._count(indices)
