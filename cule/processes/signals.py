"""Signals that wait while something is finished that must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def signals_wait() -> Iterator[None]:
    """Lets signals whose handlers are Python's wait until the end of the block.

    Such a handler may raise an error wherever the main thread is, as that of Ctrl-C does, and one
    that calls sys.exit. Each signal waits once: the second time it is handled at once, so that a
    block that hangs can be left. Other threads than the main one are not interrupted in any case.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {
        number: handler
        for number in signal.valid_signals()
        if callable(handler := signal.getsignal(number))
    }
    waiting: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        waiting.append(number)
        signal.signal(number, handlers[number])

    try:
        for number in handlers:
            signal.signal(number, wait)
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is wait:
                signal.signal(number, handler)
        for number in waiting:
            signal.raise_signal(number)
