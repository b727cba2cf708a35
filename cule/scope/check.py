"""The bias of the correction, as in RL-Scope's figure 11.

A command runs uninstrumented and instrumented, in turns. The corrected time of the instrumented
runs is compared with the uninstrumented time.
"""

from __future__ import annotations

import shlex
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cule.bench.rows import commit, machine, now
from cule.device import default_device
from cule.scope.calibration import run_once
from cule.scope.costs import Costs
from cule.scope.events import UNATTRIBUTED
from cule.scope.recorder import INSTRUMENTS
from cule.scope.recording import analyse

# RL-Scope's own figure for its bias.
MOST_BIAS = 0.16


@dataclass(frozen=True)
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
        """How much longer the instrumented runs took: 0.9 is 90% longer."""
        plain = statistics.median(self.uninstrumented)
        return statistics.median(self.instrumented) / plain - 1

    @property
    def bias(self) -> float:
        """How far the corrected time is from the uninstrumented one, as a share of it."""
        plain = statistics.median(self.uninstrumented)
        return statistics.median(self.corrected) / plain - 1


def check(
    command: Sequence[str], iterations: tuple[int, int], boundaries: Sequence[str], turns: int,
    costs: Costs, tell: Callable[[str], None],
) -> Bias:  # fmt: skip
    """Measures the bias.

    Raises:
        RuntimeError: the command fails.
    """
    count = iterations[1] - iterations[0]
    plain: list[float] = []
    within: list[float] = []
    corrected: list[float] = []
    unattributed = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            tell(f"turn {turn + 1}, uninstrumented")
            process = run_once(command, iterations, (), boundaries, Path(folder))
            plain.append((process.end - process.start) / 1e6 / count)
            tell(f"turn {turn + 1}, instrumented")
            process = run_once(command, iterations, INSTRUMENTS, boundaries, Path(folder))
            within.append((process.end - process.start) / 1e6 / count)
            last = analyse(process, costs)
            corrected.append(1e3 * last.seconds / count)
            lost = [
                float(spent)
                for (key, _, _), spent in last.cells[0].nanoseconds.items()
                if key.operation == UNATTRIBUTED
            ]
            unattributed = sum(lost) / 1e9 / last.seconds
    return Bias(plain, within, corrected, unattributed)


def row_of(bias: Bias, command: Sequence[str], iterations: tuple[int, int]) -> dict[str, Any]:
    """The row of results of a check."""

    def rounded(values: Sequence[float]) -> list[float]:
        return [round(value, 5) for value in values]

    device = torch.device(default_device())
    return {
        "commit": commit(), "date": now(), "system": "cule.scope", "mode": "profiling-bias",
        **machine(device, torch.get_num_threads()), "torch": torch.__version__,
        "command": shlex.join(["python", "-m", "cule.scope", "check", "--iterations",
                               f"{iterations[0]}:{iterations[1]}", "--", *command]),
        "uninstrumented_milliseconds": rounded(bias.uninstrumented),
        "instrumented_milliseconds": rounded(bias.instrumented),
        "corrected_milliseconds": rounded(bias.corrected), "inflation": round(bias.inflation, 4),
        "bias": round(bias.bias, 4), "unattributed": round(bias.unattributed, 4),
    }  # fmt: skip


def sentence(bias: Bias) -> str:
    """The result in a few lines."""
    plain, within, corrected = (
        statistics.median(values)
        for values in (bias.uninstrumented, bias.instrumented, bias.corrected)
    )
    return (
        f"uninstrumented {plain:10.3f} ms an iteration\n"
        f"instrumented   {within:10.3f} ms: {100 * bias.inflation:+.1f}%\n"
        f"corrected      {corrected:10.3f} ms: {100 * bias.bias:+.1f}%, the bias\n"
        f"unattributed   {100 * bias.unattributed:10.1f} %"
    )
