"""Checks of the numbers in a program's settings."""

from __future__ import annotations

from typing import Any

from cule.errors import InvalidValue

# The envs' seeds are large multiples of a run's seed (trainer.py), and have to fit into 64 bits.
MAX_SEED = 2**32 - 1


def at_least(least: float, args: Any, *names: str) -> None:
    """Checks that these fields of a dataclass are None or at least `least`.

    Raises:
        ValueError: one is less.
    """
    for name in names:
        value = getattr(args, name)
        if value is not None and not value >= least:
            raise InvalidValue(f"expected {name} to be at least {least}, got {value}")


def within(least: float, most: float, args: Any, *names: str) -> None:
    """Checks that these fields, numbers or tuples of numbers, are from `least` to `most`.

    Raises:
        ValueError: one is not.
    """
    for name in names:
        found = getattr(args, name)
        for value in found if isinstance(found, tuple) else (found,):
            if not least <= value <= most:
                raise InvalidValue(f"expected {name} to be from {least} to {most}, got {value}")


def above(limit: float, args: Any, *names: str) -> None:
    """Checks that these fields of a dataclass are above `limit`.

    Raises:
        ValueError: one is not.
    """
    for name in names:
        if not getattr(args, name) > limit:
            raise InvalidValue(f"expected {name} to be above {limit}, got {getattr(args, name)}")
