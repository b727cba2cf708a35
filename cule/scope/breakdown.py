"""The rows of a breakdown, and where a GPU's time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cule.scope.events import BOOKKEEPING, LEVELS, RESOURCES, UNATTRIBUTED, Key, Process, Work
from cule.scope.lanes import Lane
from cule.scope.sweep import Cells


@dataclass(frozen=True)
class Row:
    """Time of an operation with one resource on one level.

    The `seconds` of all rows of a process add up to its wall clock.

    Attributes:
        process: such as "main" or "rank0"; "main:loader" for another thread with annotations.
        phase: "" where none was open.
        operation: "(unattributed)" where none was open.
        resource: "cpu", "gpu", "both" or "none": what worked. "none" is a wait for an idle GPU,
            or for another process or thread.
        level: one of events.LEVELS: where the CPU was; "" where only the GPU worked.
        seconds: of the wall clock.
        calls: how often the operation began; the same in all its rows.
        transitions: how often the operation came to this level from another one.
        hidden_seconds: what the CPU did besides, while the GPU worked for other operations.
    """

    process: str
    phase: str
    operation: str
    resource: str
    level: str
    seconds: float
    calls: int
    transitions: int
    hidden_seconds: float


@dataclass(frozen=True)
class Transitions:
    """How often calls of an operation went from one level to another."""

    process: str
    phase: str
    operation: str
    source: str
    target: str
    count: int


@dataclass(frozen=True)
class GpuTime:
    """The time of a GPU for an operation.

    Attributes:
        process: the name of the process.
        phase: the phase; "" where none was open.
        operation: the operation.
        device: the GPU's index.
        seconds: the time in which at least one of its kernels, copies or memsets ran.
        alone_seconds: the part of `seconds` in which no other operation's work ran.
        kernels: the number of its kernels, copies and memsets.
    """

    process: str
    phase: str
    operation: str
    device: int
    seconds: float
    alone_seconds: float
    kernels: int


def _order(cell: tuple[Key, str, str]) -> tuple:
    key, resource, level = cell
    last = {UNATTRIBUTED: 1, BOOKKEEPING: 2}.get(key.operation, 0)
    return (
        key.phase,
        last,
        key.operation,
        RESOURCES.index(resource),
        LEVELS.index(level) if level else len(LEVELS),
    )


def rows_of(name: str, cells: Cells) -> list[Row]:
    """The rows of a lane of this name."""
    transitions: Counter[tuple[Key, str, str]] = Counter()
    for (key, resource, _, target), count in cells.transitions.items():
        transitions[key, resource, target] += count
    hidden = {(key, "cpu", level): spent for (key, level), spent in cells.hidden.items()}
    places = sorted({*cells.nanoseconds, *transitions, *hidden}, key=_order)
    return [
        Row(
            name, key.phase, key.operation, resource, level,
            float(cells.nanoseconds.get((key, resource, level), 0)) / 1e9, cells.calls[key],
            transitions[key, resource, level], hidden.get((key, resource, level), 0) / 1e9,
        )
        for key, resource, level in places
    ]  # fmt: skip


def transitions_of(name: str, cells: Cells) -> list[Transitions]:
    """The transitions of a lane of this name."""
    counts: Counter[tuple[Key, str, str]] = Counter()
    for (key, _, source, target), count in cells.transitions.items():
        counts[key, source, target] += count
    return [
        Transitions(name, key.phase, key.operation, source, target, count)
        for (key, source, target), count in sorted(counts.items())
    ]


def union(intervals: Iterable[tuple[int, int]]) -> int:
    """How long at least one of the intervals lasts, nanoseconds."""
    total, reached = 0, -1
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def clipped(work: Work, process: Process) -> tuple[int, int]:
    """The part of some work that is in the window."""
    return max(work.start, process.start), min(work.end, process.end)


def gpu_times(lane: Lane, process: Process) -> list[GpuTime]:
    """The time of the GPUs for each operation of a lane."""
    by_device: dict[int, dict[Key, list[tuple[int, int]]]] = {}
    for work in lane.work:
        by_device.setdefault(work.device, {}).setdefault(work.key, []).append(
            clipped(work, process)
        )
    times = []
    for device, by_key in sorted(by_device.items()):
        everything = union(interval for of_key in by_key.values() for interval in of_key)
        for key, intervals in sorted(by_key.items()):
            others = union(i for other, some in by_key.items() if other != key for i in some)
            times.append(GpuTime(
                lane.name, *key, device, union(intervals) / 1e9, (everything - others) / 1e9,
                len(intervals),
            ))  # fmt: skip
    return times
