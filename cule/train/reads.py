"""Which settings an algorithm reads, so that none is ignored where it was set."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm

Made = TypeVar("Made")
# What the networks and the optimizer are made from.
NETWORKS = ("model", "width")
OPTIMIZER = ("optimizer", "learning_rate", "adam_epsilon", "rmsprop_decay", "muon_momentum")


def _noting_reads(args: Any) -> tuple[Any, set[str]]:
    """A copy of settings, and the names of the fields that were read from it so far."""
    read: set[str] = set()

    class Noting(type(args)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    noting = copy.copy(args)
    noting.__class__ = Noting
    return noting, read


def made(make: Callable[[Any], Algorithm[Any]], args: Any) -> Algorithm[Any]:
    """An algorithm made from settings, of which it is known what its constructor has read."""
    noting, read = _noting_reads(args)
    algorithm = make(noting)
    algorithm.args, algorithm.read_at_start = args, read
    return algorithm


def reading(
    algorithm: Algorithm[Any], names: tuple[str, ...], make: Callable[[], Made]
) -> tuple[Made, set[str]]:
    """What a method of an algorithm makes, and which of these settings it does not read.

    All count as read if the settings are taken together (`vars(self.args)`), and if `made` did not
    make the algorithm, whose constructor may have read them.

    Raises:
        ValueError: one that is not read was set, and would be ignored.
    """
    args = algorithm.args
    algorithm.args, read = _noting_reads(args)
    try:
        result = make()
    finally:
        algorithm.args = args
    if algorithm.read_at_start is None or "__dict__" in read | algorithm.read_at_start:
        return result, set()
    read |= algorithm.read_at_start
    unread = set(names) - read
    for field in dataclasses.fields(args):
        value, usual = getattr(args, field.name), field.default
        usual = field.metadata.get(algorithm.device.type, usual)
        if field.name in unread and value != usual:
            raise InvalidValue(
                f"expected {field.name} as it is by default ({usual!r}), as {algorithm.name} with "
                f"these settings does not read it, got {value!r}"
            )
    return result, unread
