"""The observations and actions of one env, and rewards of all, as gymnasium's spaces."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from cule import _core
from cule.engine import Engine


def observation_space(engine: Engine, obs_type: str) -> Box | Dict:
    """Pixels from 0 to 255, or with `obs_type` "ram" the console's 128 bytes; and the sound."""
    if obs_type == "ram":
        shape: tuple[int, ...] = (_core.RAM_BYTES,)
    else:
        shape = tuple(engine.tensors["observations"].shape[1:])
    images = Box(low=0, high=255, shape=shape, dtype=np.uint8)
    return with_sound(images) if engine.options.sound else images


def with_sound(images: Box) -> Dict:
    """The space of observations with sound, whose names are those of ale-py's env."""
    samples = (_core.FRAME_SAMPLES,)
    return Dict(image=images, sound=Box(low=0, high=255, shape=samples, dtype=np.uint8))


def action_space(
    num_actions: int, continuous: bool, num_players: int
) -> Discrete | MultiDiscrete | Box:
    """The numbers below `num_actions`; or (radius, angle in radians, fire), (3,) float32.

    With several players (num_players,) such numbers.
    """
    if num_players > 1:
        return MultiDiscrete([num_actions] * num_players)
    if not continuous:
        return Discrete(num_actions)
    low, high = np.array([0, -np.pi, 0], np.float32), np.array([1, np.pi, 1], np.float32)
    return Box(low=low, high=high, dtype=np.float32)


def reward_space(num_envs: int, num_players: int) -> Box:
    """Rewards as TorchRL's wrapper of gymnasium envs asks for them, (num_envs, num_players) int32.

    It makes them columns, and takes them as float32 where nothing says otherwise: arrays it
    converts, but not tensors.
    """
    most = np.iinfo(np.int32)
    return Box(low=most.min, high=most.max, shape=(num_envs, num_players), dtype=np.int32)
