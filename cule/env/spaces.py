"""The observations and actions of one env, and rewards of all, as gymnasium's spaces."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from cule import _core
from cule.engine import Engine
from cule.env.parts import TENSORS, ObsType, parts_of


def observation_space(engine: Engine, obs_type: ObsType) -> Box | Dict:
    """Pixels from 0 to 255, the console's 128 bytes, or objects; of several a Dict; and the sound.

    Objects are rows of int16 (see AtariEnv.get_objects), none of whose numbers is above 255.
    """
    parts = {}
    for name in parts_of(obs_type):
        tensor = engine.tensors[TENSORS[name][0]]
        dtype = np.int16 if name == "objects" else np.uint8
        parts[name] = Box(low=0, high=255, shape=tuple(tensor.shape[1:]), dtype=dtype)
    if isinstance(obs_type, str):
        alone = parts[obs_type]
        return with_sound(alone) if engine.options.sound else alone
    return Dict(parts | ({"sound": sound_space()} if engine.options.sound else {}))


def sound_space() -> Box:
    """The samples of a frame."""
    return Box(low=0, high=255, shape=(_core.FRAME_SAMPLES,), dtype=np.uint8)


def with_sound(images: Box) -> Dict:
    """The space of observations with sound, whose names are those of ale-py's env."""
    return Dict(image=images, sound=sound_space())


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
