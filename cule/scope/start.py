"""Where the time goes from a command to the end of a program's first iteration.

The program is recorded from where `cule.scope` runs it. What comes before that, Python's own start
and the imports that cule.scope needs, is timed from outside; Python itself says what each import
took (`-X importtime`).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cule.errors import InvalidValue
from cule.programs.figures import new_figure, save_figure
from cule.scope.annotations import Annotation
from cule.scope.events import UNATTRIBUTED
from cule.scope.lanes import Lane
from cule.scope.recorder import Finished, Recorder
from cule.scope.recording import Recording
from cule.scope.table import columns

BEFORE, ITERATION = "Python, and imports for cule.scope", "first iteration"
# How many packages the table of imports has.
PACKAGES = 8
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)")


@dataclass(frozen=True)
class Stage:
    """A part of a start, which may come several times.

    Attributes:
        name: what was done.
        spans: its begins and ends, seconds since the command was given.
    """

    name: str
    spans: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        """How long it took in all."""
        return sum(end - begin for begin, end in self.spans)


@dataclass(frozen=True)
class Start:
    """How a program started.

    Attributes:
        stages: in the order of their begins; together they are all of the time.
        imports: seconds by package, the slowest first; they are parts of the stages.
        reached: whether there was an iteration; else it is the whole program.
        problems: sentences about missing parts of the recording.
    """

    stages: list[Stage]
    imports: dict[str, float]
    reached: bool
    problems: list[str]

    @property
    def seconds(self) -> float:
        """From the command to the end of the first iteration."""
        return sum(one.seconds for one in self.stages)


class UntilFirst:
    """A listener that ends a recording, and the program, after the first iteration.

    Args:
        recorder: the recording.
    """

    def __init__(self, recorder: Recorder):
        self.recorder = recorder

    def began(self, annotation: Annotation) -> None:
        """An annotation has begun."""

    def ended(self, annotation: Annotation) -> None:
        """Ends the program if the annotation is an iteration."""
        if annotation.kind == "iteration" and not self.recorder.ended_itself:
            self.recorder.stop()
            raise Finished


def _pass_on(lines: IO[str], imports: dict[str, float]) -> None:
    """Counts the seconds of imports that Python writes; passes everything else on to stderr."""
    for line in lines:
        if found := _IMPORT.match(line):
            imports[found[2].partition(".")[0]] += int(found[1]) / 1e6
        elif not line.startswith("import time:"):
            sys.stderr.write(line)


def _stages(lane: Lane, start: int, end: int) -> list[tuple[str, int, int]]:
    """The operations of a lane one after the other, with their begins and ends."""
    first = [mark for mark in lane.thread.marks if mark.kind == "iteration" and mark.begins]
    iteration = first[0].time if first else end
    changes = [
        (max(time, start), key.operation)
        for time, key in zip(lane.owners.times, lane.owners.keys, strict=True)
        if time < min(iteration, end)
    ]
    ends = [time for time, _ in changes[1:]] + [min(iteration, end)]
    found = [(name, begin, until) for (begin, name), until in zip(changes, ends, strict=True)]
    return [one for one in [*found, (ITERATION, iteration, end)] if one[1] < one[2]]


def measure(command: Sequence[str], boundaries: Sequence[str], folder: Path) -> Start:
    """Runs a command until its first iteration has ended.

    Args:
        command: the command without "python", as program.program_of returns it.
        boundaries: as of Recorder.
        folder: where the recording goes.

    Raises:
        ValueError: it does not get there, as when the command is wrong.
    """
    imports: dict[str, float] = defaultdict(float)
    words = [
        sys.executable, "-X", "importtime", "-m", "cule.scope", "run", "--out", str(folder),
        "--overwrite", "--until-first", *(f"--boundary={name}" for name in boundaries),
        "--", *command,
    ]  # fmt: skip
    begun = time.time_ns()
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        _pass_on(process.stderr, imports)
    if process.returncode:
        raise InvalidValue(
            f"expected a program that gets to its first iteration, got status {process.returncode}"
        )
    one = Recording(folder).processes[0]
    spans: dict[str, list[tuple[int, int]]] = {BEFORE: [(begun, one.process.start)]}
    for name, begin, end in _stages(one.lanes[0], one.process.start, one.process.end):
        spans.setdefault(name, []).append((begin, end))
    stages = [
        Stage(name, tuple(((begin - begun) / 1e9, (end - begun) / 1e9) for begin, end in some))
        for name, some in spans.items()
    ]
    slowest = dict(sorted(imports.items(), key=lambda one: -one[1])[:PACKAGES])
    reached = any(mark.kind == "iteration" for mark in one.lanes[0].thread.marks)
    return Start(stages, slowest, reached, one.process.problems)


def table(start: Start) -> str:
    """A start as text."""
    lines = [
        [one.name, f"{one.spans[0][0]:.3f}", f"{one.seconds:.3f}",
         f"{100 * one.seconds / start.seconds:.1f}%"]
        for one in start.stages
    ]  # fmt: skip
    until = "the end of the first iteration" if start.reached else "the program's end"
    parts = [f"{start.seconds:.3f} s from the command to {until}:"]
    parts.append(columns(["stage", "from", "seconds", "share"], lines))
    slow = [[name, f"{seconds:.3f}"] for name, seconds in start.imports.items()]
    parts.append(columns(["imports, by package", "seconds"], slow))
    if not start.reached:
        parts.append(
            "Note: the program marks no iteration by `with scope.iteration():`, so that this is "
            "all of it"
        )
    return "\n\n".join([*parts, *(f"Note: {problem}" for problem in start.problems)])


def plot(start: Start, path: Path) -> None:
    """Draws a start: a line for each stage.

    Raises:
        ValueError: matplotlib is missing, or the file cannot be written.
    """
    figure = new_figure(path)
    figure.set_size_inches(8, 0.8 + 0.3 * len(start.stages))
    axes = figure.subplots()
    for place, one in enumerate(start.stages):
        color = "#d0d0d0" if one.name == UNATTRIBUTED else "#4c78a8"
        axes.broken_barh([(b, e - b) for b, e in one.spans], (place - 0.4, 0.8), color=color)
        axes.text(one.spans[-1][1], place, f" {one.seconds:.2f} s", va="center", fontsize=8)
    axes.set_yticks(range(len(start.stages)), [one.name for one in start.stages])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1 * start.seconds)
    axes.set_xlabel("seconds since the command")
    save_figure(figure, path)


def run(command: Sequence[str], boundaries: Sequence[str], out: Path | None) -> Start:
    """Measures a start; without `out` the recording is not kept.

    Raises:
        ValueError: as measure.
    """
    if out is not None:
        return measure(command, boundaries, out)
    with tempfile.TemporaryDirectory() as folder:
        return measure(command, boundaries, Path(folder))
