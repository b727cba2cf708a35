"""The bias of the correction, as in RL-Scope's figure 11, and that of each operation.

A command runs uninstrumented and instrumented, in turns. The corrected time of the instrumented
runs is compared with the uninstrumented time. What calibrates is never what is compared. Between
the two are runs in which only the begins and ends of operations are noted, a microsecond each: they
say how long the main thread is in each operation without all other instruments.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from cule.devices.device import default_device
from cule.programs.results import PROFILER, commit, machine, now
from cule.scope import calibration
from cule.scope.analysis import analyse
from cule.scope.calibration import change, interval
from cule.scope.correction import corrected_operations
from cule.scope.costs import Costs
from cule.scope.events import UNATTRIBUTED, Process
from cule.scope.instruments import INSTRUMENTS
from cule.scope.lanes import assemble
from cule.scope.windows import Kind, Program, measure

# RL-Scope's own figure for its bias.
MOST_BIAS = 0.16


@dataclass
class Compared:
    """Milliseconds an iteration; each list has one for each turn.

    Attributes:
        uninstrumented: without any recording but the window's length; of an operation, with no
            instrument but that for operations.
        instrumented: while everything is recorded.
        corrected: the same without the book-keeping, by calculation.
    """

    uninstrumented: list[float] = field(default_factory=list)
    instrumented: list[float] = field(default_factory=list)
    corrected: list[float] = field(default_factory=list)

    @property
    def inflation(self) -> float:
        """The extra time of instrumented runs, the median over turns: 0.9 is 90% longer."""
        return change(self.uninstrumented, self.instrumented)

    @property
    def bias(self) -> float:
        """The relative error of the corrected time, the median over turns."""
        return change(self.uninstrumented, self.corrected)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the bias, from the scatter of turns (calibration.interval).

        It leaves out the error of the calibration, which is the same for all turns.
        """
        return interval(self.uninstrumented, self.corrected)


@dataclass
class Bias(Compared):
    """The bias of a program's iterations.

    Attributes:
        unattributed: the share of the corrected time that no operation has, at the last turn.
        operations: the same of each operation that the main thread was in in all windows.
    """

    unattributed: float = 0.0
    operations: dict[str, Compared] = field(default_factory=dict)


# What is compared: the windows at the end of a turn.
COMPARED: tuple[Kind, ...] = ((), ("annotations",), INSTRUMENTS)


def times_of_operations(process: Process, costs: Costs) -> dict[str, float]:
    """Corrected milliseconds of an iteration of the main thread in each operation itself."""
    count = max(process.iterations, 1)
    found = corrected_operations(process, assemble(process), costs)
    return {name: 1e3 * seconds / count for name, seconds in found.items()}


def _add_operations(bias: Bias, turns: Sequence[Sequence[Mapping[str, float]]]) -> None:
    """Adds the operations that all windows have.

    Args:
        bias: gets them.
        turns: of each turn their milliseconds, uninstrumented, instrumented and corrected.
    """
    for name in dict.fromkeys(name for turn in turns for times in turn for name in times):
        if all(times.get(name, 0) > 0 for turn in turns for times in turn):
            lists = zip(*([times[name] for times in turn] for turn in turns), strict=True)
            bias.operations[name] = Compared(*map(list, lists))


def check(
    program: Program, turns: int, costs: Costs | None, progress: Callable[[str], None]
) -> Bias:
    """Measures the bias.

    Args:
        program: what is run.
        turns: how many windows of each kind.
        costs: of the book-keeping; None: each turn has windows that calibrate, too, before those
            that are compared.
        progress: called with a text that says which measurement comes next.

    Raises:
        RuntimeError: the command fails.
    """
    before = [] if costs else calibration.kinds()
    known = costs or calibration.costs_of_loops(progress)
    measured = list(measure(program, [*before, *COMPARED], turns, progress))
    if before:
        known = calibration.fitted(known, program, [turn[: len(before)] for turn in measured])
    count = program.iterations[1] - program.iterations[0]
    bias, turns_of_operations = Bias(), []
    for *_, plain, marked, instrumented in measured:
        bias.uninstrumented.append(1e3 * plain.seconds / count)
        bias.instrumented.append(1e3 * instrumented.seconds / count)
        turns_of_operations.append((
            times_of_operations(marked, known), times_of_operations(instrumented, Costs()),
            times_of_operations(instrumented, known),
        ))  # fmt: skip
        analysed = analyse(instrumented, known)
        bias.corrected.append(1e3 * analysed.seconds / count)
        lost = sum(
            float(spent)
            for (key, _, _), spent in analysed.cells[0].nanoseconds.items()
            if key.operation == UNATTRIBUTED
        )
        bias.unattributed = lost / 1e9 / analysed.seconds
    _add_operations(bias, turns_of_operations)
    return bias


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 5) for value in values]


def _columns(compared: Compared) -> dict[str, Any]:
    """All tries, and what comes of them."""
    return {
        "uninstrumented_milliseconds": _rounded(compared.uninstrumented),
        "instrumented_milliseconds": _rounded(compared.instrumented),
        "corrected_milliseconds": _rounded(compared.corrected),
        "inflation": round(compared.inflation, 4), "bias": round(compared.bias, 4),
        "bias_interval": _rounded(compared.interval),
    }  # fmt: skip


def row_of(bias: Bias, program: Program) -> dict[str, Any]:
    """The row of results of a check."""
    device = torch.device(default_device())
    first, end = program.iterations
    words = ["python", "-m", "cule.scope", "check", *["--together"] * program.together,
             "--iterations", f"{first}:{end}", "--", *program.command]  # fmt: skip
    return {
        "commit": commit(), "date": now(), "system": PROFILER, "mode": "profiling-bias",
        **machine(device, torch.get_num_threads()), "torch": torch.__version__,
        "command": shlex.join(words), **_columns(bias),
        "unattributed": round(bias.unattributed, 4),
        "operations": {name: _columns(one) for name, one in bias.operations.items()},
    }  # fmt: skip


def _operation_lines(bias: Bias) -> list[str]:
    """A table of the operations, the longest first."""
    middle = {name: statistics.median(one.uninstrumented) for name, one in bias.operations.items()}
    names = sorted(middle, key=lambda name: -middle[name])
    widths = max((len(name) for name in names), default=0)
    lines = []
    for name in names:
        one, (low, high) = bias.operations[name], bias.operations[name].interval
        lines.append(
            f"{name:<{widths}} {middle[name]:10.3f} ms, corrected "
            f"{statistics.median(one.corrected):10.3f}: {100 * one.bias:+.1f}% "
            f"({100 * low:+.1f} to {100 * high:+.1f})"
        )
    return lines


def sentence(bias: Bias) -> str:
    """The result in a few lines for people."""
    plain, within, corrected = (
        statistics.median(values)
        for values in (bias.uninstrumented, bias.instrumented, bias.corrected)
    )
    low, high = bias.interval
    return "\n".join([
        f"uninstrumented {plain:10.3f} ms an iteration",
        f"instrumented   {within:10.3f} ms: {100 * bias.inflation:+.1f}%",
        f"corrected      {corrected:10.3f} ms: {100 * bias.bias:+.1f}%, the bias "
        f"({100 * low:+.1f} to {100 * high:+.1f})",
        f"unattributed   {100 * bias.unattributed:10.1f} %",
        *(["", "main thread's time in each operation:", *_operation_lines(bias)]
          if bias.operations else []),
    ])  # fmt: skip
