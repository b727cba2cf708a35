"""Divides the time of a process: of each part of its recording by itself, and of all together.

A part's events are dropped when they have been counted, so that of a long recording only one part
is in memory for each process that reads it.
"""

from __future__ import annotations

import multiprocessing
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from cule.scope import breakdown
from cule.scope.breakdown import GpuTime
from cule.scope.correction import corrected
from cule.scope.costs import Costs
from cule.scope.events import Key, Process, Thread
from cule.scope.lanes import Lane, Owners, assemble
from cule.scope.memory import MemoryUse, uses_of
from cule.scope.storage import Part
from cule.scope.sweep import Cells, sweep

# With fewer parts it takes less time to read them than to start other processes.
LEAST_PARTS = 4


@dataclass
class Analysed:
    """A process with its lanes, whose time is divided among operations.

    Attributes:
        process: the process, corrected if costs were given. If its recording has several parts,
            then of its threads only the marks of iterations are there.
        lanes: its lanes, the main one first; without events if there are several parts.
        cells: the division of each lane's time.
        gpu: the time of the GPUs for each lane's operations.
        memory: the memory of each device, if it was recorded, which has no parts.
        recorded_seconds: the window's length before the correction.
    """

    process: Process
    lanes: list[Lane]
    cells: list[Cells] = field(default_factory=list)
    gpu: list[list[GpuTime]] = field(default_factory=list)
    memory: list[MemoryUse] = field(default_factory=list)
    recorded_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """The window's length: the wall clock."""
        return self.process.seconds


def analyse(process: Process, costs: Costs | None = None) -> Analysed:
    """Divides a process's window among operations; with costs, takes the book-keeping out first."""
    analysed = Analysed(process, assemble(process))
    analysed.recorded_seconds = analysed.seconds
    analysed.memory = uses_of(process)
    analysed.cells = [sweep(lane, process.start, process.end) for lane in analysed.lanes]
    if costs is not None:
        counted = analysed.cells
        corrected(process, analysed.lanes, costs)
        analysed.cells = [sweep(lane, process.start, process.end) for lane in analysed.lanes]
        # Calls that were nothing but book-keeping have no length now, but they were calls.
        for cells, before in zip(analysed.cells, counted, strict=True):
            cells.transitions, cells.apis = before.transitions, before.apis
    analysed.gpu = [breakdown.gpu_times(lane, process) for lane in analysed.lanes]
    return analysed


def _condensed(one: Analysed) -> Analysed:
    """The same without the events that have been counted."""
    process = one.process
    for thread in process.threads.values():
        thread.calls, thread.replays = [], []
        thread.marks = [
            mark
            for mark in thread.marks
            if mark.kind == "iteration" and process.start <= mark.time <= process.end
        ]
    process.graphs = {}
    one.lanes = [Lane(lane.name, lane.thread, Owners([], 0)) for lane in one.lanes]
    return one


def analyse_part(part: Part, costs: Costs | None) -> Analysed:
    """Divides a part's window among operations; only what is counted is left of it."""
    return _condensed(analyse(part.read(), costs))


def together(parts: Iterable[Analysed]) -> Analysed:
    """The parts of a recording as one.

    Args:
        parts: at least one, in their order.
    """
    every = iter(parts)
    whole = next(every)
    cells = {lane.name: one for lane, one in zip(whole.lanes, whole.cells, strict=True)}
    lanes = {lane.name: lane for lane in whole.lanes}
    gpu = {lane.name: [times] for lane, times in zip(whole.lanes, whole.gpu, strict=True)}
    process = whole.process
    for part in every:
        process.pauses.append((process.end, part.process.start))
        process.end = part.process.end
        process.cut_off |= part.process.cut_off
        process.activities_missing |= part.process.activities_missing
        process.problems += part.process.problems
        process.work += part.process.work
        whole.recorded_seconds += part.recorded_seconds
        _add_marks(process, part.process.threads.values())
        for lane, own, times in zip(part.lanes, part.cells, part.gpu, strict=True):
            lanes.setdefault(lane.name, lane)
            cells.setdefault(lane.name, Cells()).add(own)
            gpu.setdefault(lane.name, []).append(times)
    process.goes_on = False
    process.problems = list(dict.fromkeys(process.problems))
    return replace(
        whole, lanes=[*lanes.values()], cells=[cells[name] for name in lanes],
        gpu=[_added(gpu[name]) for name in lanes],
    )  # fmt: skip


def _add_marks(process: Process, threads: Iterable[Thread]) -> None:
    for thread in threads:
        own = process.thread(thread.number)
        own.name = own.name or thread.name
        own.marks += thread.marks


def _added(parts: Sequence[Sequence[GpuTime]]) -> list[GpuTime]:
    """The times of the GPUs in all parts."""
    of_key: dict[tuple[int, Key], list[GpuTime]] = defaultdict(list)
    for times in parts:
        for one in times:
            of_key[one.device, Key(one.phase, one.operation)].append(one)
    return [
        replace(
            some[0], seconds=sum(one.seconds for one in some),
            alone_seconds=sum(one.alone_seconds for one in some),
            kernels=sum(one.kernels for one in some),
        )
        for _, some in sorted(of_key.items())
    ]  # fmt: skip


def _each(parts: Sequence[Part], costs: Costs | None, processes: int) -> Iterator[Analysed]:
    """Each part, divided; several processes read them."""
    each = partial(analyse_part, costs=costs)
    if processes < 2 or len(parts) < LEAST_PARTS:
        yield from map(each, parts)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(parts)), context) as pool:
        yield from pool.map(each, parts)


def analyse_process(parts: Sequence[Part], costs: Costs | None, processes: int) -> Analysed:
    """Divides the time of a process of a recording.

    Args:
        parts: of its recording.
        costs: of the book-keeping, to be taken out; None: nothing is taken out.
        processes: how many processes may read parts.
    """
    if len(parts) == 1:
        return analyse(parts[0].read(), costs)
    return together(_each(parts, costs, processes))
