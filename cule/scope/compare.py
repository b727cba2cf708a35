"""Compares two recordings: how much slower each operation became, by level."""

from __future__ import annotations

from dataclasses import dataclass

from cule.scope.recording import Recording
from cule.scope.table import columns


@dataclass(frozen=True)
class Change:
    """Milliseconds an iteration of an operation with one resource on one level, in two recordings.

    Where a process has no iterations, milliseconds are those of its window.

    Attributes:
        process: the process.
        operation: the operation.
        resource: as in Row.
        level: as in Row.
        before: in the first recording.
        after: in the second one.
    """

    process: str
    operation: str
    resource: str
    level: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """How much slower it became."""
        return self.after - self.before


def per_iteration(recording: Recording) -> dict[tuple[str, str, str, str], float]:
    """Milliseconds an iteration by process, operation, resource and level."""
    count = {one.process.name: max(one.process.iterations, 1) for one in recording.processes}
    cells: dict[tuple[str, str, str, str], float] = {}
    for row in recording.breakdown():
        cell = (row.process, row.operation, row.resource, row.level)
        iterations = count[row.process.partition(":")[0]]
        cells[cell] = cells.get(cell, 0.0) + 1e3 * row.seconds / iterations
    return cells


def compare(before: Recording, after: Recording) -> list[Change]:
    """All changes, the largest first."""
    first, second = per_iteration(before), per_iteration(after)
    changes = [
        Change(*cell, first.get(cell, 0.0), second.get(cell, 0.0)) for cell in {*first, *second}
    ]
    return sorted(changes, key=lambda one: (-abs(one.difference), one.operation, one.level))


def changes_table(changes: list[Change]) -> str:
    """The changes as text, and their sum."""

    def line(name: str, resource: str, level: str, before: float, after: float) -> list[str]:
        ratio = f"{after / before:.2f}" if before else "new"
        return [name, resource, level, f"{before:.3f}", f"{after:.3f}", f"{after - before:+.3f}",
                ratio if after else "gone"]  # fmt: skip

    several = len({one.process for one in changes}) > 1
    lines = [
        line(f"{one.process}: {one.operation}" if several else one.operation, one.resource,
             one.level, one.before, one.after)
        for one in changes
    ]  # fmt: skip
    lines.append(line("sum", "", "", *(sum(getattr(one, when) for one in changes)
                                       for when in ("before", "after"))))  # fmt: skip
    head = ["operation", "resource", "level", "ms before", "ms after", "difference", "ratio"]
    return columns(head, lines, left=3)
