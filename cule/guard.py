"""One thread at a time in an env: decorators of the methods that read or write what it holds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def _guarded(method: Method, changes: bool) -> Method:
    name = method.__name__.lstrip("_")

    @functools.wraps(method)
    def enter(self: Any, *arguments: Any, **keywords: Any) -> Any:
        # The compiled core enters, calls and leaves: no interrupt can leave the env locked.
        return self._guard.call(name, changes, method, self, *arguments, **keywords)

    return enter  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """A method that reads an env; a signal's handler may call it inside another.

    It raises RuntimeError while another thread is in the env.
    """
    return _guarded(method, False)


def changes(method: Method) -> Method:
    """A method that changes an env, and is called inside no other of its methods.

    It raises RuntimeError while another thread is in the env, or this one, as in a signal's handler.
    """
    return _guarded(method, True)
