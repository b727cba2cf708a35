"""Checks of types, numbers, names and packages, in words."""

from __future__ import annotations

import dataclasses
import keyword
import math
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

from cule.errors import InvalidType, InvalidValue, shown

# The envs' seeds are large multiples of a run's seed (trainer.py), and have to fit into 64 bits.
MAX_SEED = 2**32 - 1

_WORDS = {
    bool: "True or False", int: "an integer", float: "a finite number", str: "a text",
    Path: "a path", type(None): "None",
}  # fmt: skip


def is_name(name: Any) -> bool:
    """Whether something can be an attribute's name."""
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


def described(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (int, float, str, type(None))):
        return repr(value)
    return f"one of {type(value).__name__}"


def _alternatives(form: Any) -> tuple[Any, ...]:
    """The types of a union, or the one type that it is."""
    return get_args(form) if get_origin(form) in (Union, types.UnionType) else (form,)


def _in_words(form: Any) -> str:
    if len(_alternatives(form)) > 1:
        return " or ".join(_in_words(one) for one in _alternatives(form))
    if get_origin(form) is Literal:
        return " or ".join(repr(one) for one in get_args(form))
    return _WORDS.get(form) or str(form).replace("typing.", "")


def _is_formed(value: Any, form: Any) -> bool:
    """Whether a value has a type. True is no number, and neither is NaN."""
    if isinstance(value, (bool, float)):
        expected = bool if isinstance(value, bool) else float
        if isinstance(value, float) and not math.isfinite(value):
            return False
        return any(one in (expected, Any) for one in _alternatives(form))
    try:
        check_type(value, form, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    except TypeCheckError:
        return False
    return True


def check_types(args: Any) -> None:
    """Checks each field of a dataclass by its annotation.

    A text becomes the path that it names, and NumPy's numbers become Python's.

    Raises:
        ValueError: a value is of another type, or is infinite or no number.
    """
    forms = get_type_hints(type(args))
    for field in dataclasses.fields(args):
        form, given = forms[field.name], getattr(args, field.name)
        value = given
        if isinstance(value, str) and Path in _alternatives(form):
            value = Path(value)
        elif isinstance(value, np.generic):
            value = value.item()
        if value is not given:
            object.__setattr__(args, field.name, value)  # which may be frozen
        if not _is_formed(value, form):
            raise InvalidValue(f"expected {field.name} to be {_in_words(form)}, got {shown(value)}")


def at_least(least: float, args: Any, *names: str) -> None:
    """Checks that these fields of a dataclass are None or at least `least`.

    Raises:
        ValueError: one is less.
    """
    for name in names:
        value = getattr(args, name)
        if value is not None and not value >= least:
            raise InvalidValue(f"expected {name} to be at least {least}, got {value}")


def at_least_whole(least: int, args: Any, *names: str) -> None:
    """Checks that these fields of a dataclass are None or whole numbers of at least `least`.

    Raises:
        TypeError: one is no whole number.
        ValueError: one is less.
    """
    for name in names:
        value, owner = getattr(args, name), type(args).__name__
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidType(
                f"expected {name} of {owner} to be a whole number, got {shown(value)}"
            )
        if value < least:
            raise InvalidValue(f"expected {name} of {owner} to be at least {least}, got {value}")


def within(least: float, most: float, args: Any, *names: str) -> None:
    """Checks that these fields, numbers or tuples of numbers, are from `least` to `most`.

    Raises:
        ValueError: one is not.
    """
    for name in names:
        given = getattr(args, name)
        for value in given if isinstance(given, tuple) else (given,):
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


def holds_steps(stack: int, args: Any) -> None:
    """Checks that a replay memory holds a transition of each env, and learning waits for them.

    Args:
        stack: frames of an observation.
        args: settings with num_envs, memory, first_update and n_step.

    Raises:
        ValueError: it does not.
    """
    steps = stack - 1 + args.n_step
    least = steps * args.num_envs
    if args.memory < least or args.first_update < least:
        raise InvalidValue(
            f"expected memory and first_update to be at least {steps} steps of all envs "
            f"({least}), got {args.memory} and {args.first_update}"
        )


@contextmanager
def wanted_package(name: str) -> Iterator[None]:
    """Turns a missing package, which a block imports, into a sentence.

    Args:
        name: the package.

    Raises:
        ValueError: it is missing.
    """
    try:
        yield
    except ImportError as problem:
        raise InvalidValue(
            f"expected {name} to be installed (pip install {name}), got {problem}"
        ) from problem
