"""Copies the actions of a call to the tensors that the kernels read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from cule.engine import Engine
from cule.errors import InvalidValue
from cule.facts.actions import ACTIONS, ContinuousActions, check_numbers, unsigned

# The types of a call's actions.
ArrayLike = torch.Tensor | np.ndarray | Sequence[Any]


class Inputs:
    """Checks the actions of both players and copies them to the engine's tensors.

    Args:
        engine: the engine that plays them.
        num_actions: the number of actions that the first player has.
        threshold: with continuous actions, how far a stick must be pushed; None: actions are
            numbers.
    """

    def __init__(self, engine: Engine, num_actions: int, threshold: float | None):
        self._engine, self._num_actions = engine, num_actions
        self._num_players = engine.layout.num_players
        self._has_second_player = any(
            group.mode in group.game.modes_of_two for group in engine.groups
        )
        self._continuous: ContinuousActions | None = None
        if threshold is not None:
            self._continuous = ContinuousActions(threshold, engine.device)
            engine.memory.place("strengths", self._per_env(torch.ones, torch.float32))

    def _per_env(self, make: Any, dtype: torch.dtype) -> torch.Tensor:
        return make(self._engine.num_envs, dtype=dtype, device=self._engine.device)

    def set(self, actions: Any, player_b_actions: Any) -> None:
        """Sets the actions of the next step.

        Args:
            actions: the first player's, as in AtariEnv.step.
            player_b_actions: the second player's, likewise; None: that player presses nothing.

        Raises:
            TypeError, ValueError: dtype, shape, device or, on the CPU, range is not as described in
                AtariEnv.step; or no game has a second player.
        """
        self._set_player_a(actions, None, self._engine.num_envs)
        self._set_player_b(player_b_actions)

    def set_rows(self, rows: torch.Tensor | slice, count: int, actions: Any) -> None:
        """Sets the actions of some envs for their next step; a second player presses nothing.

        Args:
            rows: the envs' numbers, (count,) int64, or a range of them.
            count: how many envs these are.
            actions: an action for each of them, as in AtariEnv.step.

        Raises:
            TypeError, ValueError: as for `set`.
        """
        self._set_player_a(actions, rows, count)
        self._engine.batch.actions_b = 0

    def setter(self, rows: slice, count: int, actions: torch.Tensor) -> Callable[[], None]:
        """A function that does what `set_rows` does, with actions in the same memory each time.

        Args:
            rows: the envs' numbers.
            count: how many envs these are.
            actions: an action for each of them, int64, as in AtariEnv.step.

        Raises:
            TypeError, ValueError: as for `set`; so does the function.
        """
        self.set_rows(rows, count, actions)
        if self._continuous is not None:
            return functools.partial(self.set_rows, rows, count, actions)
        batch, bound = self._engine.batch, self._num_actions
        given, target = actions.numpy(), self._engine.tensors["actions"][rows].numpy()
        numbers = unsigned(actions)

        def set_actions() -> None:
            if numbers.max() >= bound:
                self.set_rows(rows, count, actions)
            target[...] = given
            batch.actions_b = 0

        return set_actions

    def _set_player_a(self, actions: Any, rows: torch.Tensor | slice | None, count: int) -> None:
        engine = self._engine
        if self._continuous is not None:
            numbers, strengths = self._continuous.translate(actions, count)
            self._put("strengths", rows, strengths)
        else:
            shape = (count,) if self._num_players == 1 else (count, self._num_players)
            numbers = check_numbers("actions", actions, shape, self._num_actions, engine.device)
        self._put("actions", rows, numbers)

    def _put(self, name: str, rows: torch.Tensor | slice | None, values: torch.Tensor) -> None:
        """Copies values to some rows of a tensor; None: to all."""
        target = self._engine.tensors[name]
        if rows is None:
            target.copy_(values)
        elif isinstance(rows, slice):
            target[rows].copy_(values)
        else:
            target[rows] = values.to(target.dtype)

    def _set_player_b(self, actions: Any) -> None:
        engine = self._engine
        if actions is None:
            engine.batch.actions_b = 0
            return
        if self._num_players > 1:
            raise InvalidValue(
                f"expected no player_b_actions with num_players={self._num_players}, as actions "
                "has a column for each player, got some"
            )
        if not self._has_second_player:
            played = ", ".join(f"{one.game.name!r} in mode {one.mode}" for one in engine.groups[:3])
            raise InvalidValue(
                "expected player_b_actions in games that have a second player (docs/games.md lists "
                f"them), got them in {played}"
            )
        numbers = check_numbers(
            "player_b_actions", actions, (engine.num_envs,), len(ACTIONS), engine.device
        )
        target = engine.tensors.get("actions_b")
        if target is None:
            target = self._per_env(torch.zeros, torch.int32)
        target.copy_(numbers)
        engine.memory.place("actions_b", target)
