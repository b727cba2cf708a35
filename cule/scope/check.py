"""The bias of the correction, as in RL-Scope's figure 11.

A command runs uninstrumented and instrumented, in turns. The corrected time of the instrumented
runs is compared with the uninstrumented time. What calibrates is never what is compared.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cule.devices.device import default_device
from cule.programs.results import PROFILER, commit, machine, now
from cule.scope import calibration
from cule.scope.analysis import analyse
from cule.scope.calibration import change, interval
from cule.scope.costs import Costs
from cule.scope.events import UNATTRIBUTED
from cule.scope.instruments import INSTRUMENTS
from cule.scope.windows import Kind, Program, measure

# RL-Scope's own figure for its bias.
MOST_BIAS = 0.16


@dataclass
class Bias:
    """Milliseconds an iteration; each list has one for each turn.

    Attributes:
        uninstrumented: without any recording but the window's length.
        instrumented: while everything is recorded.
        corrected: the same without the book-keeping, by calculation.
        unattributed: the share of the corrected time that no operation has, at the last turn.
    """

    uninstrumented: list[float]
    instrumented: list[float]
    corrected: list[float]
    unattributed: float

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


# What is compared: the windows at the end of a turn.
COMPARED: tuple[Kind, Kind] = ((), INSTRUMENTS)


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
    loops = None if costs else calibration.costs_of_loops(progress)
    before = [] if costs else calibration.kinds()
    measured = list(measure(program, [*before, *COMPARED], turns, progress))
    if loops is not None:
        costs = calibration.fitted(loops, program, [turn[: len(before)] for turn in measured])
    count = program.iterations[1] - program.iterations[0]
    bias = Bias([], [], [], 0.0)
    for *_, plain, instrumented in measured:
        bias.uninstrumented.append(1e3 * plain.seconds / count)
        bias.instrumented.append(1e3 * instrumented.seconds / count)
        analysed = analyse(instrumented, costs)
        bias.corrected.append(1e3 * analysed.seconds / count)
        lost = sum(
            float(spent)
            for (key, _, _), spent in analysed.cells[0].nanoseconds.items()
            if key.operation == UNATTRIBUTED
        )
        bias.unattributed = lost / 1e9 / analysed.seconds
    return bias


def row_of(bias: Bias, program: Program) -> dict[str, Any]:
    """The row of results of a check."""

    def rounded(values: Sequence[float]) -> list[float]:
        return [round(value, 5) for value in values]

    device = torch.device(default_device())
    first, end = program.iterations
    words = ["python", "-m", "cule.scope", "check", *["--together"] * program.together,
             "--iterations", f"{first}:{end}", "--", *program.command]  # fmt: skip
    return {
        "commit": commit(), "date": now(), "system": PROFILER, "mode": "profiling-bias",
        **machine(device, torch.get_num_threads()), "torch": torch.__version__,
        "command": shlex.join(words),
        "uninstrumented_milliseconds": rounded(bias.uninstrumented),
        "instrumented_milliseconds": rounded(bias.instrumented),
        "corrected_milliseconds": rounded(bias.corrected), "inflation": round(bias.inflation, 4),
        "bias": round(bias.bias, 4), "bias_interval": rounded(bias.interval),
        "unattributed": round(bias.unattributed, 4),
    }  # fmt: skip


def sentence(bias: Bias) -> str:
    """The result in a few lines for people."""
    plain, within, corrected = (
        statistics.median(values)
        for values in (bias.uninstrumented, bias.instrumented, bias.corrected)
    )
    low, high = bias.interval
    return (
        f"uninstrumented {plain:10.3f} ms an iteration\n"
        f"instrumented   {within:10.3f} ms: {100 * bias.inflation:+.1f}%\n"
        f"corrected      {corrected:10.3f} ms: {100 * bias.bias:+.1f}%, the bias "
        f"({100 * low:+.1f} to {100 * high:+.1f})\n"
        f"unattributed   {100 * bias.unattributed:10.1f} %"
    )
