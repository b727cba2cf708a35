"""Shared by the tests of interrupts: an env, its state, and interrupts at each byte code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import cule

ENVS = 2


STILL, RIGHT = [0] * ENVS, [2] * ENVS


def started(**options: Any) -> cule.AtariEnv:
    settings = {
        "device": "cpu",
        "num_threads": 1,
        "reset_pool_size": 2,
        "frameskip": 1,
        "noop_max": 2,
    } | options
    env = cule.AtariEnv("pong", ENVS, **settings)
    env.reset(seed=0)
    return env


def contents(state: cule.State) -> list[bytes]:
    """The state of each env."""
    envs = range(len(state.games))
    return [
        b"".join(part[i].contiguous().numpy().tobytes() for part in state.tensors.values())
        for i in envs
    ]


@contextmanager
def interrupt_at(count: int) -> Iterator[None]:
    """Raises KeyboardInterrupt before the `count`-th byte code of cule's functions that runs in the
    block."""
    left = count

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if "cule" not in frame.f_globals.get("__name__", ""):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    # Python 3.12 looks whether any frame wants byte codes only when tracing begins.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


# Which work for as long as they exist.
_ENABLED: list[Any] = []


def _enable_torch_functions() -> None:
    """As before a call that disables them, which ended between a `with` block and its __exit__.

    Only a tracer can interrupt there, no signal; all later tests of the process would be others.
    """
    if not torch._C._is_torch_function_enabled():
        _ENABLED.append(torch._C._EnableTorchFunction())
        _ENABLED[-1].__enter__()


# A long call is interrupted before every `stride`-th of its byte codes.
STRIDES = pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])


def interrupted_everywhere(
    call: Callable[[], Any], check: Callable[[], None], stride: int = 1
) -> int:
    """Repeats the call, interrupts it later each time, and calls `check` after each.

    Returns the last byte code that was interrupted.
    """
    for count in range(1, 10_000, stride):
        try:
            with interrupt_at(count):
                call()
        except KeyboardInterrupt:
            _enable_torch_functions()
            check()
        else:
            return count - 1
    raise AssertionError("the call never ended")
