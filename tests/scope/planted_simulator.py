"""A simulator whose steps take a known time, as a boundary."""

from __future__ import annotations

import time


def step(seconds: float) -> None:
    """Works for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
