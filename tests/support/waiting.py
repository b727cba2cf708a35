"""Waits for what other processes do, for however long they take, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator


def wait_for(done: Callable[[], object], seconds: float = 120) -> None:
    """Waits until something is true, for at most so many seconds."""
    for _ in repeat_until(done, seconds):
        pass


def repeat_until(done: Callable[[], object], seconds: float = 60) -> Iterator[None]:
    """Again and again, at least once, until something is true, for at most so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        yield
        if done():
            return
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
