"""Operations in other people's programs, whose functions are wrapped from outside."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cule.scope import operation

INFERENCE, SIMULATION, BACKPROPAGATION = "inference", "simulation", "backpropagation"


@dataclass(frozen=True)
class Mark:
    """A function that is an operation, unless another marked function calls it.

    Attributes:
        function: "package.module:Class.method" or "package.module:function".
        operation: the name of the operation.
        to_end: the operation goes on until the iteration ends, as in a script that learns there.
        returned: the operation is not the function, but the function that it returns.
    """

    function: str
    operation: str
    to_end: bool = False
    returned: bool = False


class Marks:
    """Marked functions, and the operation that is open.

    Args:
        marks: the functions, which are wrapped at once, and for good.

    Raises:
        AttributeError, ImportError: there is no such function.
    """

    def __init__(self, marks: Sequence[Mark]):
        self._open = False
        self._to_end: operation | None = None
        for mark in marks:
            module, _, path = mark.function.partition(":")
            *classes, name = path.split(".")
            where: Any = importlib.import_module(module)
            for one in classes:
                where = getattr(where, one)
            setattr(where, name, self._wrapped(getattr(where, name), mark))

    def _wrapped(self, function: Callable[..., Any], mark: Mark) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if mark.returned:
                return self._marked(function(*args, **kwargs), mark)
            return inner(*args, **kwargs)

        inner = self._marked(function, mark)
        return call if mark.returned else inner

    def _marked(self, function: Callable[..., Any], mark: Mark) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._open:
                return function(*args, **kwargs)
            self._open = True
            if mark.to_end:
                self._to_end = operation(mark.operation)
                self._to_end.__enter__()
                return function(*args, **kwargs)
            try:
                with operation(mark.operation):
                    return function(*args, **kwargs)
            finally:
                self._open = False

        return call

    def iteration_ended(self) -> None:
        """Ends the operation that goes on until here."""
        if self._to_end is not None:
            self._to_end.__exit__()
            self._to_end, self._open = None, False
