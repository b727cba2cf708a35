"""Checks that what a file holds has the form that its reader works with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

from cule.errors import InvalidValue

Form = TypeVar("Form")


def formed(value: Any, form: type[Form]) -> Form:
    """A value that has a type such as `dict[str, int]`, all of it.

    Raises:
        ValueError: it has another.
    """
    try:
        return check_type(value, form, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    except TypeCheckError as problem:
        # In one line, as what is said of a union of types has several.
        raise InvalidValue(" ".join(str(problem).split())) from problem


def is_number(value: Any, *, finite: bool = True) -> bool:
    """Whether a value is a number of a float's range, and no flag.

    Args:
        value: what a file has.
        finite: it may not be infinite or nan.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value)) or not finite
    except OverflowError:
        return False


def are_numbers(values: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether all these values are there and are finite numbers."""
    return all(is_number(values.get(name)) for name in names)


def is_score(value: Any) -> bool:
    """Whether a value is a score: a number, that an env of one's own may make nan, or None."""
    return value is None or is_number(value, finite=False)
