"""How far a report is off for each operation of a program whose times are known.

    python -m benchmarks.tools.planted --device cuda --results ROWS.jsonl
    python -m benchmarks.tools.planted --device cuda --graphs

The program works in Python, in a simulator and in torch, and on a GPU in kernels that last as long
as they are told to. What the main thread does in an operation is timed by the program's own clock
while nothing is recorded; then the same iterations are recorded, in turns. The costs of the
book-keeping are measured in a run of the program before, as `cule.scope calibrate` does it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from cule import scope
from cule.programs.command_line import number
from cule.programs.results import PROFILER, append_row, command_line, commit, machine, now
from cule.scope.analysis import Analysed
from cule.scope.calibration import calibrate
from cule.scope.costs import Costs
from cule.scope.recording import Recording
from cule.scope.windows import Program
from tests.scope import planted_simulator

SIMULATOR = "tests.scope.planted_simulator"
SMALL, LARGE = torch.randn(32, 32), torch.randn(512, 512)
# Milliseconds of each operation's kernels.
KERNELS = {"search": [2.0], "expand": [0.2] * 20, "learn": [1.0, 3.0]}
WARM_UP = 20  # iterations
# A replay has no kernels of its own.
REPLAY = "replay"


@dataclass
class Clock:
    """The program's own clock: milliseconds of the main thread in each operation itself."""

    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    inside: str = scope.UNATTRIBUTED
    since: float = field(default_factory=time.perf_counter)

    def change(self, operation: str) -> str:
        """From now on it is this operation's time; returns whose it was."""
        now, before = time.perf_counter(), self.inside
        self.spent[before] += 1e3 * (now - self.since)
        self.since, self.inside = now, operation
        return before


@contextmanager
def in_operation(clock: Clock, name: str) -> Iterator[None]:
    """An operation, on the clock and in the recording."""
    before = clock.change(name)
    with scope.operation(name):
        yield
    clock.change(before)


def sleeper() -> Callable[[float], None]:
    """Starts a kernel that takes so many milliseconds on the current GPU."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    cycles = 100_000_000
    for _ in range(2):  # the first one warms it up
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
    per_millisecond = cycles / begin.elapsed_time(end)
    return lambda milliseconds: torch.cuda._sleep(int(milliseconds * per_millisecond))


class Planted:
    """The program.

    Args:
        on_gpu: whether it starts kernels, too.
        graphs: whether they are in a CUDA graph, which an operation of its own replays.
    """

    def __init__(self, on_gpu: bool, graphs: bool):
        self.on_gpu, self._sleep = on_gpu, sleeper() if on_gpu else None
        self._graph: torch.cuda.CUDAGraph | None = None
        if graphs:
            scope.mark_graphs()
            torch.cuda.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                for name in KERNELS:
                    with scope.operation(name):
                        self._launch(name)

    def _launch(self, name: str) -> None:
        if self._sleep is not None:
            for milliseconds in KERNELS[name]:
                self._sleep(milliseconds)

    def iterate(self, clock: Clock) -> None:
        """One iteration."""
        eager = self._graph is None
        with in_operation(clock, "search"):
            until = time.perf_counter() + 3e-3
            while time.perf_counter() < until:
                pass
            for _ in range(30):
                planted_simulator.step(50e-6)
            if eager:
                self._launch("search")
        with in_operation(clock, "expand"):
            for _ in range(200):
                SMALL.add(1)
            if eager:
                self._launch("expand")
        with in_operation(clock, "learn"):
            for _ in range(3):
                LARGE.mm(LARGE)
            if eager:
                self._launch("learn")
        if self._graph is not None:
            with in_operation(clock, REPLAY):
                self._graph.replay()
        if self._sleep is not None:
            torch.cuda.synchronize()
        clock.change(clock.inside)


def timed(planted: Planted, count: int) -> dict[str, float]:
    """Milliseconds of the median iteration by the program's own clock, nothing recorded."""
    clocks = []
    for _ in range(count):
        clocks.append(Clock())
        with scope.iteration():
            planted.iterate(clocks[-1])
    return {
        name: statistics.median(clock.spent[name] for clock in clocks) for name in clocks[0].spent
    }


# By whether it is the main thread or the GPU, and the operation.
Times = dict[tuple[str, str], float]


def of_median_iteration(one: Analysed) -> dict[str, float]:
    """Milliseconds of the main thread in each operation itself, by the recording."""
    marks = [mark for mark in one.lanes[0].thread.marks if mark.kind == "iteration"]
    begins = [mark.time for mark in marks if mark.begins and mark.time >= one.process.start]
    ends = [mark.time for mark in marks if not mark.begins][-len(begins) :]
    times: dict[str, list[float]] = defaultdict(list)
    for begin, end in zip(begins, ends, strict=True):
        spent: dict[str, float] = defaultdict(float)
        for key, start, stop in one.lanes[0].owners.spans(begin, end):
            spent[key.operation] += (stop - start) / 1e6
        for name, milliseconds in spent.items():
            times[name].append(milliseconds)
    return {name: statistics.median(some) for name, some in times.items()}


def found(folder: Path, count: int, costs: Costs | None) -> Times:
    """Milliseconds of an iteration that a report finds."""
    recording = Recording(folder, costs)
    (one,) = recording.processes
    times = {("main thread", name): spent for name, spent in of_median_iteration(one).items()}
    for on_gpu in recording.gpu():
        times["GPU", on_gpu.operation] = 1e3 * on_gpu.seconds / count
    return times


def turns_of(planted: Planted, turns: int, count: int, costs: Costs) -> dict[str, list[Times]]:
    """Each turn's times: planted, recorded and corrected."""
    all_times: dict[str, list[Times]] = {"planted": [], "recorded": [], "corrected": []}
    for _ in range(turns):
        by_clock = timed(planted, count)
        truth = {("main thread", name): spent for name, spent in by_clock.items()}
        if planted.on_gpu:
            truth |= {("GPU", name): sum(lengths) for name, lengths in KERNELS.items()}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "recording"
            with scope.record(folder, iterations=count, boundaries=[SIMULATOR], children=False):
                timed(planted, count + 1)
            all_times["planted"].append(truth)
            all_times["recorded"].append(found(folder, count, None))
            all_times["corrected"].append(found(folder, count, costs))
    return all_times


def row_of(all_times: dict[str, list[Times]], device: torch.device, graphs: bool) -> dict[str, Any]:
    """The row of results: of each cell the milliseconds of all turns."""
    return {
        "commit": commit(), "date": now(), "system": PROFILER, "mode": "profiling-planted",
        **machine(device, torch.get_num_threads()), "torch": torch.__version__,
        "command": command_line(), "graphs": graphs,
        "cells": [
            {"where": where, "operation": operation} | {
                kind: [round(times.get((where, operation), 0.0), 4) for times in of_turns]
                for kind, of_turns in all_times.items()
            }
            for where, operation in all_times["planted"][0]
        ],
    }  # fmt: skip


def table(row: dict[str, Any]) -> str:
    """The row for people: medians, and by how much each turn is off."""
    lines = []
    for cell in row["cells"]:
        planted, recorded, corrected = (
            statistics.median(cell[kind]) for kind in ("planted", "recorded", "corrected")
        )
        turns = zip(cell["planted"], cell["corrected"], strict=True)
        off = [1e3 * (found - truth) for truth, found in turns]
        lines.append(
            f"{cell['where']:<12} {cell['operation']:<16} planted {planted:8.3f} ms, recorded "
            f"{recorded:8.3f}, corrected {corrected:8.3f}: {100 * (corrected / planted - 1):+.2f}%,"
            f" {min(off):+.0f} to {max(off):+.0f} us"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures, prints and appends a row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    add("--graphs", action="store_true", help="kernels are in a CUDA graph")
    add("--turns", type=number(int), default=9)
    add("--iterations", type=number(int), default=20, help="of a turn, recorded and not")
    add("--repeats", type=number(int), default=7, help="windows of each kind that calibrate")
    add("--results", type=Path, default=Path("planted.jsonl"))
    add("--for-ever", action="store_true", help="only run the program, until it is stopped")
    args = parser.parse_args()
    if args.graphs and args.device == "cpu":
        parser.error("expected --device cuda with --graphs, got cpu")
    torch.set_num_threads(1)
    planted = Planted(args.device == "cuda", args.graphs)
    if args.for_ever:
        while True:
            timed(planted, args.iterations)
    words = ["-m", "benchmarks.tools.planted", "--for-ever", "--device", args.device]
    program = Program(
        [*words, *["--graphs"] * args.graphs], (WARM_UP, WARM_UP + args.iterations), [SIMULATOR],
        together=True,
    )  # fmt: skip
    costs = calibrate(program, args.repeats, lambda text: print(text, file=sys.stderr))
    all_times = turns_of(planted, args.turns, args.iterations, costs)
    row = row_of(all_times, torch.device(args.device), args.graphs)
    append_row(args.results, row)
    print(table(row))


if __name__ == "__main__":
    main()
