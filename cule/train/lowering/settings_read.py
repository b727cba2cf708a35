"""Which settings an algorithm reads, so that none is ignored where it was set."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm, Context

Result = TypeVar("Result")
# Makes an algorithm from settings and a context, as its class does.
Make = Callable[[Any, Context], Algorithm[Any]]
# The settings from which Algorithm.networks and Algorithm.optimizer make something by default.
NETWORKS = ("model", "width")
OPTIMIZER = ("optimizer", "learning_rate", "adam_epsilon", "rmsprop_decay", "muon_momentum")


def _noting_reads(args: Any) -> tuple[Any, set[str]]:
    """A copy of settings, and the names of the fields that were read from it so far."""
    read: set[str] = set()

    class Noting(type(args)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    Noting.__name__ = type(args).__name__
    noting = copy.copy(args)
    noting.__class__ = Noting
    return noting, read


def _check_constant(noting: Any, args: Any) -> None:
    """Checks that an algorithm has not changed its settings, of which it had a copy.

    Raises:
        ValueError: it has.
    """
    fields = object.__getattribute__(noting, "__dict__")  # reading it is noted, too
    for name, was in vars(args).items():
        now = fields.get(name)
        if now is not was and now != was:
            raise InvalidValue(
                f"expected an algorithm to leave its settings as they are, got {name} changed from "
                f"{was!r} to {now!r}: rows and checkpoints would not say what was trained"
            )


def instantiate(make: Make, args: Any, context: Context) -> Algorithm[Any]:
    """Makes an algorithm, and notes which settings its constructor reads.

    Raises:
        ValueError: it takes other arguments, does not have the settings as `args`, or changes some.
    """
    noting, read = _noting_reads(args)
    try:
        inspect.signature(make).bind(noting, context)
    except TypeError as problem:
        raise InvalidValue(
            f"expected {getattr(make, '__name__', make)} to be made from the settings and the "
            f"context, (args, context), got one that takes {inspect.signature(make)}"
        ) from problem
    algorithm = make(noting, context)
    if getattr(algorithm, "args", None) is not noting:
        raise InvalidValue(
            f"expected {type(algorithm).__name__} to keep the settings that it was made with as "
            "args, got others: rows and checkpoints would not say what was trained"
        )
    _check_constant(noting, args)
    algorithm.use_settings(args, frozenset(read))
    return algorithm


def reading(
    algorithm: Algorithm[Any], names: tuple[str, ...], make: Callable[[], Result]
) -> tuple[Result, set[str]]:
    """Calls a method of an algorithm; returns its result and which of `names` it has not read.

    All count as read if the settings are taken together (`vars(self.args)`), and if the algorithm
    was not made by `instantiate`, as its constructor may have read them.

    Raises:
        ValueError: one that is not read was set, and would be ignored.
    """
    args, before = algorithm.args, algorithm.read_at_start
    noting, read = _noting_reads(args)
    algorithm.use_settings(noting, before)
    try:
        result = make()
        _check_constant(noting, args)
    finally:
        algorithm.use_settings(args, before)
    if before is None or "__dict__" in read | before:
        return result, set()
    read |= before
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
