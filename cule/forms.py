"""Checks that what a file holds has the form that its reader works with."""

from __future__ import annotations

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
        raise InvalidValue(str(problem)) from problem
