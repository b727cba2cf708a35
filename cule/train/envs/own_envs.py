"""Checks envs that an algorithm brings, and what they return, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, MultiDiscrete
from gymnasium.vector import AutoresetMode

from cule.errors import InvalidValue, is_others
from cule.train.checks import described

RESULTS = ("observations", "rewards", "terminated", "truncated")


def check_envs(envs: Any, num_envs: int) -> None:
    """Checks the envs that `environment` returns.

    Raises:
        ValueError: they are not so many, reset in another way, or have actions that are neither
            one of some nor a vector of real numbers.
    """
    for name in ("num_envs", "single_action_space", "reset", "step", "close"):
        try:
            getattr(envs, name)
        except AttributeError as problem:
            if is_others(problem):
                raise
            raise InvalidValue(
                f"expected environment() to return envs with {name}, got {described(envs)}"
            ) from problem
    if envs.num_envs != num_envs:
        raise InvalidValue(
            f"expected environment() to return the {num_envs} envs that it was asked for, got "
            f"{envs.num_envs}"
        )
    num_actions_in(envs.single_action_space, num_players_of(envs))
    mode = getattr(envs, "autoreset_mode", None) or getattr(envs, "metadata", {}).get(
        "autoreset_mode"
    )
    if mode is not None and mode != AutoresetMode.NEXT_STEP:
        raise InvalidValue(
            f"expected envs that reset with the step after an episode's last, NEXT_STEP, got {mode}"
        )


def num_players_of(envs: Any) -> int:
    """How many players an env has, each with actions and rewards: its `num_players`, or 1.

    Raises:
        ValueError: it is no number of at least 1.
    """
    players = getattr(envs, "num_players", 1)
    if not isinstance(players, (int, np.integer)) or players < 1:
        raise InvalidValue(
            f"expected num_players of envs to be a whole number of at least 1, got {players!r}"
        )
    return int(players)


def num_actions_in(space: Any, num_players: int = 1) -> int:
    """How many actions a space has, its `n`; of a Box of real numbers, how many an action has.

    Args:
        space: the actions of an env.
        num_players: how many players it has. Of several each has as many actions: the space is that
            of one of them, with an `n`, or a MultiDiscrete of all.

    Raises:
        ValueError: it has no `n`, and is no Box of vectors of real numbers; or players are several,
            and it is neither of the two.
    """
    actions = getattr(space, "n", None)
    if num_players > 1:
        if isinstance(space, MultiDiscrete) and space.shape == (num_players,):
            counts = {*space.nvec.tolist()}
            actions = counts.pop() if len(counts) == 1 else None
        if not isinstance(actions, (int, np.integer)) or actions < 1:
            raise InvalidValue(
                f"expected envs of {num_players} players with the same number of actions for each, "
                f"a MultiDiscrete of all or the n of one, got {space}"
            )
        return int(actions)
    if isinstance(space, Box) and np.issubdtype(space.dtype, np.floating) and len(space.shape) == 1:
        actions = space.shape[0]
    if not isinstance(actions, (int, np.integer)) or actions < 1:
        raise InvalidValue(
            f"expected envs with a number of actions, single_action_space.n, or with a Box of "
            f"vectors of real numbers, got {space}"
        )
    return int(actions)


def check_reset(returned: Any, num_envs: int) -> torch.Tensor:
    """The observations of what `reset` returns.

    Raises:
        ValueError: there are none.
    """
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise InvalidValue(
            f"expected reset() of envs to return observations and infos, got {described(returned)}"
        )
    observations = returned[0]
    if not isinstance(observations, torch.Tensor) or observations.shape[:1] != (num_envs,):
        raise InvalidValue(
            f"expected reset() of envs to return a tensor of observations of {num_envs} envs, got "
            f"{described(observations)}"
        )
    return observations


def check_step(returned: Any, like: torch.Tensor, num_players: int = 1) -> None:
    """Checks what `step` returns; does not wait for the device.

    Args:
        returned: what `step` returned.
        like: earlier observations, whose shape and dtype later ones have.
        num_players: of several players the rewards are (num_envs, num_players).

    Raises:
        ValueError: it is no tuple (observations, rewards, terminated, truncated, infos) of tensors
            of the right shapes.
    """
    if not isinstance(returned, tuple) or len(returned) != 5:
        raise InvalidValue(
            f"expected step() of envs to return {', '.join(RESULTS)} and infos, got "
            f"{described(returned)}"
        )
    for name, value in zip(RESULTS, returned, strict=False):
        shape = tuple(like.shape if name == "observations" else like.shape[:1])
        if name == "rewards" and num_players > 1:
            shape = *shape, num_players
        kind = {"observations": like.dtype, "rewards": None}.get(name, torch.bool)
        alike = isinstance(value, torch.Tensor) and value.shape == shape
        if not alike or value.dtype != (kind or value.dtype) or value.is_complex():
            got = f", {value.dtype}" if isinstance(value, torch.Tensor) else ""
            raise InvalidValue(
                f"expected step() of envs to return {name} as a tensor of shape {shape}, "
                f"{kind or 'real numbers'}, got {described(value)}{got}"
            )
