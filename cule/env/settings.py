"""Checks of AtariEnv's keywords, alone and together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cule import _core
from cule.arguments import (
    MAX_SEED,
    autoreset_mode,
    choice,
    flag,
    integer,
    one_of,
    per_env,
    probability,
)
from cule.console import AUTORESET_MODES, EPISODE_STARTS, Options
from cule.devices.device import MAX_THREADS, cpus_of_threads, find_device, usable_cpus
from cule.env.parts import observation_types, parts_of
from cule.errors import InvalidValue
from cule.rom import PLAYERS

# Each thread has a buffer for the TIA writes of a step: 34 KiB, and 10 KiB for each further frame.
# On a GPU each env has one.
MAX_FRAMESKIP = _core.MAX_FRAMESKIP
MAX_ENVS = 2**20
# Each start state of a pool is emulated, which takes about a hundred frames and the no-ops.
MAX_NOOPS, MAX_START_STATES = _core.MAX_NOOPS, _core.MAX_START_STATES
# The keywords of images, with their defaults.
OF_IMAGES = {
    "img_height": 84, "img_width": 84, "grayscale": True, "stack_num": 4, "maxpool": True,
}  # fmt: skip
RENDER_MODES = ("human", "rgb_array", "rgb_array_list", "mosaic")

Check = Callable[[str, Any], Any]


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _flag_or_frames(name: str, value: Any) -> bool | int:
    """True, False, or how many frames, at least two."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return integer(name, value, least=2)


# The keywords with one value for the whole batch.
_CHECKS: dict[str, Check] = {
    "num_envs": partial(integer, most=MAX_ENVS),
    "num_players": partial(one_of, choices=PLAYERS),
    "obs_type": observation_types,
    "output": partial(choice, choices=("torch", "torch_shared", "numpy")),
    "render_mode": partial(choice, choices=(None, *RENDER_MODES)),
    "autoreset_mode": autoreset_mode,
    "batch_size": partial(integer, least=0),
    "thread_affinity_offset": partial(integer, least=-1),
    "continuous": flag,
    "continuous_action_threshold": probability,
    "device": lambda _, value: find_device(value),
    "full_action_space": flag,
    "frameskip": partial(integer, most=MAX_FRAMESKIP),
    "max_num_frames_per_episode": integer,
    "noop_max": partial(integer, least=0, most=MAX_NOOPS),
    "episode_start": partial(choice, choices=EPISODE_STARTS),
    "maxpool": _flag_or_frames,
    "episodic_life": flag,
    "life_loss_info": flag,
    "reward_clipping": flag,
    "use_fire_reset": flag,
    "repeat_action_probability": probability,
    "img_height": integer,
    "img_width": integer,
    "grayscale": flag,
    "sound_obs": flag,
    "stack_num": integer,
    "reset_pool_size": partial(integer, least=0, most=MAX_START_STATES),
    "num_threads": partial(integer, least=0, most=MAX_THREADS),
    "translate": _optional(flag),
    "multiprocessors": _optional(integer),
    "progress": flag,
}


def check(given: Mapping[str, Any]) -> SimpleNamespace:
    """AtariEnv's keywords except `game`, as plain values; `mode` and `difficulty` for each env.

    Raises:
        TypeError, ValueError: one is wrong, or cannot be combined with another one.
    """
    checked = SimpleNamespace(**{name: check(name, given[name]) for name, check in _CHECKS.items()})
    count = checked.num_envs
    if "ram" in parts_of(checked.obs_type) and checked.autoreset_mode == AutoresetMode.SAME_STEP:
        raise InvalidValue(
            "expected obs_type='image' with autoreset_mode SAME_STEP, as RAM keeps no final "
            "observation"
        )
    starts_lives = checked.episode_start != "ale" and checked.life_loss_info
    if starts_lives and checked.autoreset_mode == AutoresetMode.DISABLED:
        raise InvalidValue(
            "expected autoreset_mode NEXT_STEP or SAME_STEP with "
            f"episode_start={checked.episode_start!r} and life_loss_info, as the env itself starts "
            "the next life, got DISABLED"
        )
    if not isinstance(checked.maxpool, bool) and checked.maxpool > checked.frameskip:
        raise InvalidValue(
            f"expected maxpool to be at most frameskip={checked.frameskip}, got {checked.maxpool}"
        )
    _check_images(checked)
    _check_batch_size(checked)
    if checked.num_players > 1:
        _check_several_players(checked)
    # Env i gets seed + i.
    checked.seed = _optional(partial(integer, least=0, most=MAX_SEED - count + 1))(
        "seed", given["seed"]
    )
    checked.patches = given["patches"]  # checked for each env's game (patches.py)
    checked.mode = per_env("mode", given["mode"], count)
    checked.difficulty = per_env("difficulty", given["difficulty"], count)
    return checked


def _check_images(checked: SimpleNamespace) -> None:
    """Refuses what is said of images where observations have none."""
    if "image" in parts_of(checked.obs_type):
        return
    for name, usual in OF_IMAGES.items():
        if (got := getattr(checked, name)) != usual:
            raise InvalidValue(
                f"expected obs_type with 'image' for {name}={got!r}, got {checked.obs_type!r}, "
                "which has no images"
            )


def _check_batch_size(checked: SimpleNamespace) -> None:
    size, count = checked.batch_size, checked.num_envs
    if size > count:
        raise InvalidValue(f"expected batch_size to be at most num_envs ({count}), got {size}")
    if size in (0, count):
        return
    if checked.output == "torch_shared":
        raise InvalidValue(
            f"expected output 'torch' or 'numpy' with batch_size < num_envs ({count}), as other "
            f"envs play on, got 'torch_shared' with {size}"
        )
    if checked.autoreset_mode == AutoresetMode.DISABLED:
        raise InvalidValue(
            f"expected autoreset_mode NEXT_STEP or SAME_STEP with batch_size < num_envs ({count}), "
            f"as reset resets all envs, got DISABLED with {size}"
        )
    if checked.render_mode in ("human", "rgb_array_list"):
        raise InvalidValue(
            f"expected render_mode None, 'mosaic' or 'rgb_array' with batch_size < num_envs "
            f"({count}), as envs are at different steps, got {checked.render_mode!r} with {size}"
        )


def _check_several_players(checked: SimpleNamespace) -> None:
    """Refuses what is defined for one player only."""
    wanted = {
        "continuous": False,
        "episode_start": "ale",
        "episodic_life": False,
        "life_loss_info": False,
        "batch_size": 0,
    }
    for name, value in wanted.items():
        got = getattr(checked, name)
        if got != value:
            raise InvalidValue(
                f"expected {name}={value!r} with num_players={checked.num_players}, got {got!r}"
            )


def threads(checked: SimpleNamespace) -> int:
    """How many envs run at once on a CPU."""
    return min(checked.num_threads or usable_cpus(), checked.num_envs)


def cpus(checked: SimpleNamespace) -> tuple[int, ...]:
    """The CPU that each of the threads is pinned to; empty: none is pinned.

    Raises:
        ValueError: threads cannot be pinned here.
    """
    return cpus_of_threads(threads(checked), checked.thread_affinity_offset, checked.device)


def step_options(checked: SimpleNamespace, action_space: str) -> Options:
    """The engine's options, from keywords that `check` has checked.

    Without images in observations no frames are pooled, resized or stacked.
    """
    parts = parts_of(checked.obs_type)
    images = "image" in parts
    return Options(
        frameskip=checked.frameskip,
        max_frames=checked.max_num_frames_per_episode,
        noop_max=checked.noop_max,
        episode_start=EPISODE_STARTS.index(checked.episode_start),
        maxpool=images and bool(checked.maxpool),
        pooled_frames=2 if isinstance(checked.maxpool, bool) else checked.maxpool,
        episodic_life=checked.episodic_life,
        life_loss_info=checked.life_loss_info,
        reward_clipping=checked.reward_clipping,
        fire_reset=checked.use_fire_reset,
        autoreset=AUTORESET_MODES.index(checked.autoreset_mode.value),
        repeat_action_probability=checked.repeat_action_probability,
        action_space=action_space,
        observation_height=checked.img_height,
        observation_width=checked.img_width,
        channels=1 if checked.grayscale else 3,
        stack=checked.stack_num if images else 0,
        reset_pool_size=checked.reset_pool_size,
        sound=checked.sound_obs,
        objects="objects" in parts,
    )
