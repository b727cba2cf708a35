"""A short training to record, and its time."""

from __future__ import annotations

import time

import torch

from cule import scope
from cule.scope.recording import Recording


def iterate(count: int, name: str = "work") -> float:
    """A short training, and its result."""
    total = torch.zeros(1)
    for _ in range(count):
        with scope.iteration(), scope.operation(name):
            total += 1
            time.sleep(0.001)
    return float(total)


def seconds_by_operation(recording: Recording) -> dict[tuple[str, str], float]:
    """Seconds by process and operation."""
    found: dict[tuple[str, str], float] = {}
    for row in recording.breakdown():
        key = (row.process, row.operation)
        found[key] = found.get(key, 0.0) + row.seconds
    return found
