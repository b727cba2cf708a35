"""The memory of a process's tensors: which operations took it, and who had it at the most.

torch notes each piece of memory that it takes for a tensor, or that a tensor gives back. Who took
it has it until it is given back, wherever that is.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from cule.scope.events import Allocation, Key, Process


@dataclass(frozen=True)
class Held:
    """What an operation took of a device's memory, in bytes.

    Attributes:
        phase: the phase; "" if none was open.
        operation: the operation.
        taken: all that it took.
        most: the most of it that was in use at the same time.
        at_peak: what was in use of it when the device's memory was at its peak.
        kept: what was in use of it at the end.
    """

    phase: str
    operation: str
    taken: int
    most: int
    at_peak: int
    kept: int


@dataclass(frozen=True)
class MemoryUse:
    """The memory of a device that a process's tensors had.

    Attributes:
        process: the process.
        device: "cpu", or a GPU such as "cuda:0".
        peak: the most bytes that were in use at the same time.
        before: how many of them had been taken before the recording; on the host torch knows
            only those that it saw being taken.
        phase, operation: who took the last of them.
        iteration: in which iteration of the recording that was, counted from 1; 0: in none.
        operations: those that took some, the one with most at the peak first.
    """

    process: str
    device: str
    peak: int
    before: int
    phase: str
    operation: str
    iteration: int
    operations: list[Held] = field(default_factory=list)


def _use_of(process: Process, device: int, events: Sequence[Allocation]) -> MemoryUse:
    peak = max(range(len(events)), key=lambda place: events[place].total)
    held: dict[int, Allocation] = {}
    now: dict[Key, int] = defaultdict(int)
    taken: dict[Key, int] = defaultdict(int)
    most: dict[Key, int] = defaultdict(int)
    at_peak: dict[Key, int] = {}
    for place, one in enumerate(events):
        if one.bytes > 0:
            held[one.address] = one
            now[one.key] += one.bytes
            taken[one.key] += one.bytes
            most[one.key] = max(most[one.key], now[one.key])
        elif (before := held.pop(one.address, None)) is not None:
            now[before.key] -= before.bytes
        if place == peak:
            at_peak = dict(now)
    operations = [
        Held(*key, taken[key], most[key], at_peak.get(key, 0), now[key])
        for key in sorted(taken, key=lambda key: (-at_peak.get(key, 0), -most[key], key))
    ]
    total, key = events[peak].total, events[peak].key
    before_it = max(0, total - sum(at_peak.values()))
    return MemoryUse(
        process.name, "cpu" if device < 0 else f"cuda:{device}", total, before_it, *key,
        _iteration(process, events[peak].time), operations,
    )  # fmt: skip


def _iteration(process: Process, time: int) -> int:
    """How many iterations had begun in the window."""
    marks = process.thread(process.main).marks
    begins = [m.time for m in marks if m.kind == "iteration" and m.begins]
    return bisect.bisect_right(begins, time) - bisect.bisect_left(begins, process.start)


def uses_of(process: Process) -> list[MemoryUse]:
    """The memory of each device, the host first; its allocations have their owners."""
    by_device: dict[int, list[Allocation]] = defaultdict(list)
    for one in process.allocations:
        if process.start <= one.time <= process.end:
            by_device[one.device].append(one)
    return [_use_of(process, device, events) for device, events in sorted(by_device.items())]
