"""A program whose time is known: it clocks itself what it spends where.

How long it works in each place is planned, but on a busy machine a loop may take longer than it was
told to. So the truth is what the program's own clock says, which it reads at each change of place.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from cule import scope
from cule.scope.analysis import Analysed
from cule.scope.sweep import sweep
from tests.scope import planted_simulator

# Torch works for some twenty milliseconds, and Python nearly as long. Beside these it is little
# that a call takes to reach a torch, and a recording, that other work has driven out of the caches:
# it may be a tenth of a millisecond.
MATRIX = torch.randn(1024, 1024)
# Kept, as torch frees memory after its operator has ended, which the ledger would count to it.
RESULT = torch.empty_like(MATRIX)


class Ledger:
    """Where the time went: seconds by (operation, level); each instant belongs to one place."""

    def __init__(self):
        self.seconds: Counter[tuple[str, str]] = Counter()
        self.place, self.since = ("", ""), time.perf_counter()

    def at(self, operation: str, level: str) -> None:
        """From here on, time belongs to this place."""
        now = time.perf_counter()
        self.seconds[self.place] += now - self.since
        self.place, self.since = (operation, level), now


def spin(seconds: float) -> None:
    """Works in Python for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def simulate(ledger: Ledger, operation: str, seconds: float) -> None:
    """Works in the simulator."""
    ledger.at(operation, "simulator")
    planted_simulator.step(seconds)
    ledger.at(operation, "python")


def multiply(ledger: Ledger, operation: str) -> None:
    """Works in torch."""
    ledger.at(operation, "backend")
    torch.mm(MATRIX, MATRIX, out=RESULT)
    ledger.at(operation, "python")


def iterate(ledger: Ledger) -> None:
    """One iteration, of two operations, one of which has another one inside."""
    with scope.operation("search"):
        ledger.at("search", "python")
        spin(0.020)
        simulate(ledger, "search", 0.015)
        for _ in range(2):
            with scope.operation("expand"):
                ledger.at("expand", "python")
                spin(0.020)
                multiply(ledger, "expand")
                simulate(ledger, "expand", 0.005)
            ledger.at("search", "python")
            spin(0.005)
        ledger.at(scope.UNATTRIBUTED, "python")
    with scope.phase("learning"), scope.operation("learn"):
        ledger.at("learn", "python")
        spin(0.040)
        for _ in range(3):
            multiply(ledger, "learn")
        ledger.at(scope.UNATTRIBUTED, "python")
    spin(0.005)


def cells_of_iterations(one: Analysed) -> list[Counter[tuple[str, str]]]:
    """Seconds by operation and level of each iteration of a recorded process's main lane."""
    (lane,) = one.lanes
    marks = [mark for mark in lane.thread.marks if mark.kind == "iteration"]
    begins = [mark.time for mark in marks if mark.begins]
    ends = [mark.time for mark in marks if not mark.begins]
    found = []
    for begin, end in zip(begins[-len(ends) :], ends, strict=True):
        of_iteration: Counter[tuple[str, str]] = Counter()
        for (key, _, level), nanoseconds in sweep(lane, begin, end).nanoseconds.items():
            of_iteration[key.operation, level] += float(nanoseconds) / 1e9
        found.append(of_iteration)
    return found


def record_iterations(
    folder: Path, count: int, iterate: Callable[[Ledger], None]
) -> tuple[list[Ledger], scope.record]:
    """Records some iterations after a first one; their ledgers, and the recording."""
    ledgers = []
    with scope.record(
        folder, iterations=count, boundaries=["tests.scope.planted_simulator"]
    ) as recording:
        for _ in range(count + 1):
            with scope.iteration():
                ledgers.append(Ledger())
                ledgers[-1].at(scope.UNATTRIBUTED, "python")
                iterate(ledgers[-1])
                ledgers[-1].at("", "")
    return ledgers[1:], recording


def check_cells(
    found: Sequence[Mapping[tuple[str, str], float]],
    planted: Sequence[Mapping[tuple[str, str], float]],
    *,
    part: float = 0.02,
    least: float = 0.2e-3,
) -> int:
    """Checks that each cell of the median iteration is within two percent or 0.2 ms.

    Args:
        found: seconds by cell in each iteration, by the recording.
        planted: the same by the program's own clock.
        part: by how much of itself a cell may differ.
        least: seconds by which each may differ.

    Returns:
        How many cells there are.
    """
    cells = {cell for ledger in planted for cell in ledger} - {("", "")}
    for cell in cells:
        wanted = statistics.median(ledger[cell] for ledger in planted)
        differences = [
            of_iteration[cell] - ledger[cell]
            for of_iteration, ledger in zip(found, planted, strict=True)
        ]
        assert abs(statistics.median(differences)) <= max(part * wanted, least), cell
    return len(cells)
