"""One thread at a time in an env: decorators for the methods that read or change it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def _guarded(method: Method, changes: bool) -> Method:
    name = method.__name__.lstrip("_")

    @functools.wraps(method)
    def enter(self: Any, *arguments: Any, **keywords: Any) -> Any:
        # The compiled core locks, calls and unlocks, so that no interrupt leaves the env locked.
        return self._guard.call(name, changes, method, self, *arguments, **keywords)

    return enter  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """A method that reads an env. A signal handler may call it while another method runs.

    It raises RuntimeError while another thread is in the env.
    """
    return _guarded(method, False)


def changes(method: Method) -> Method:
    """A method that changes an env. It cannot be called while another method runs.

    It raises RuntimeError while any thread is in the env, even if that is this thread, for example
    when a signal handler calls it.
    """
    return _guarded(method, True)
