"""Waits for what other processes do, for however long they take, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator


def repeat_until(done: Callable[[], bool]) -> Iterator[None]:
    """Again and again, at least once, until something is true, for at most a minute."""
    deadline = time.monotonic() + 60
    while True:
        yield
        if done():
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)
