"""One thread at a time in an env: decorators for the methods that read or change it.

They also leave torch's inference mode, as tensors that are made in it cannot be changed outside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Method = TypeVar("Method", bound=Callable[..., Any])


def outside_inference_mode(function: Method) -> Method:
    """Decorates a function whose tensors outlive torch.inference_mode(): it leaves that mode."""

    @functools.wraps(function)
    def enter(*arguments: Any, **keywords: Any) -> Any:
        if not torch.is_inference_mode_enabled():
            return function(*arguments, **keywords)
        with torch.inference_mode(False), torch.no_grad():
            return function(*arguments, **keywords)

    return cast(Method, enter)


def _guarded(method: Method, changes: bool) -> Method:
    name = method.__name__.lstrip("_")

    @functools.wraps(method)
    @outside_inference_mode
    def enter(self: Any, *arguments: Any, **keywords: Any) -> Any:
        # The compiled core locks, calls and unlocks, so that no interrupt leaves the env locked.
        return self._guard.call(name, changes, method, self, *arguments, **keywords)

    return enter  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """Decorates a method that reads an env; a signal handler may call it while another one runs.

    The method raises RuntimeError while another thread is in the env.
    """
    return _guarded(method, False)


def changes(method: Method) -> Method:
    """Decorates a method that changes an env; it cannot be called while another method runs.

    The method raises RuntimeError while any thread is in the env, even if that is this thread, for
    example when a signal handler calls it.
    """
    return _guarded(method, True)
