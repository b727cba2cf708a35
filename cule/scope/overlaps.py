"""Which operations' GPU work ran side by side, and how much it was slowed.

A kernel that shares the GPU takes longer. So kernels of the same name and grid are compared: those
that ran beside another operation's work with those that ran alone, in the same recording or in one
of the program without overlap.
"""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cule.scope.events import Key, Process, Work

# A kernel ran beside others if they took this share of its time, and alone if less than that.
BESIDE, ALONE = 0.5, 0.1
_Kind = tuple[str, str, tuple[int, ...]]


@dataclass(frozen=True)
class Overlap:
    """GPU work of an operation beside that of others.

    Attributes:
        process: the process.
        operation: the operation.
        beside: the other operations.
        seconds: of the operation's work, added up, while the others' ran.
        slowed_by: how much longer its kernels took beside the others than alone: 0.5 is half as
            long again; None where none ran alone.
    """

    process: str
    operation: str
    beside: tuple[str, ...]
    seconds: float
    slowed_by: float | None


class _Others:
    """The time in which work of other operations than one runs, without gaps and overlaps."""

    def __init__(self, work: Iterable[Work]):
        self.starts: list[int] = []
        self.ends: list[int] = []
        for start, end in sorted((one.start, one.end) for one in work):
            if self.ends and start <= self.ends[-1]:
                self.ends[-1] = max(end, self.ends[-1])
            else:
                self.starts.append(start)
                self.ends.append(end)
        # What has passed before each of them.
        lengths = [end - start for start, end in zip(self.starts, self.ends, strict=True)]
        self.totals = [0, *itertools.accumulate(lengths)]

    def _before(self, time: int) -> int:
        place = bisect.bisect_right(self.starts, time) - 1
        if place < 0:
            return 0
        return self.totals[place] + min(time, self.ends[place]) - self.starts[place]

    def within(self, start: int, end: int) -> int:
        """How long others run between two times."""
        return self._before(end) - self._before(start)


def _kind(work: Work) -> _Kind:
    return work.key.operation, work.name, work.grid


def _lengths(work: Iterable[Work]) -> dict[_Kind, list[int]]:
    lengths: dict[_Kind, list[int]] = {}
    for one in work:
        lengths.setdefault(_kind(one), []).append(one.end - one.start)
    return lengths


def _meets(works: Iterable[Work], others: Iterable[Work]) -> bool:
    running = _Others(others)
    return any(running.within(work.start, work.end) for work in works)


def _slowed(beside: dict[_Kind, list[int]], alone: dict[_Kind, list[int]]) -> float | None:
    """How much longer kernels took, weighed by the time that they take alone."""
    spent = expected = 0.0
    for kind, lengths in beside.items():
        if kind in alone:
            spent += sum(lengths)
            expected += statistics.median(alone[kind]) * len(lengths)
    return spent / expected - 1 if expected else None


def overlaps_of(process: Process, alone: Sequence[Process] = ()) -> list[Overlap]:
    """The overlaps of a process.

    Args:
        process: the process; its work has keys.
        alone: the same program without overlap, to compare with.
    """
    by_key: dict[Key, list[Work]] = {}
    for work in process.work:
        by_key.setdefault(work.key, []).append(work)
    reference = _lengths(work for other in alone for work in other.work)
    overlaps = []
    for key, works in by_key.items():
        rest = {other: some for other, some in by_key.items() if other != key}
        others = _Others(work for some in rest.values() for work in some)
        shared = [others.within(work.start, work.end) for work in works]
        if not sum(shared):
            continue
        beside, by_itself = [], []
        for work, part in zip(works, shared, strict=True):
            length = max(work.end - work.start, 1)
            if part >= BESIDE * length:
                beside.append(work)
            elif part <= ALONE * length:
                by_itself.append(work)
        names = tuple(
            sorted(other.operation for other, some in rest.items() if _meets(works, some))
        )
        overlaps.append(Overlap(
            process.name, key.operation, names, sum(shared) / 1e9,
            _slowed(_lengths(beside), reference or _lengths(by_itself)),
        ))  # fmt: skip
    return overlaps
