"""The bias of the correction, as in RL-Scope's figure 11.

A command runs uninstrumented and instrumented, in turns. The corrected time of the instrumented
runs is compared with the uninstrumented time.
"""

from __future__ import annotations

import shlex
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cule.device import default_device
from cule.results import PROFILER, commit, machine, now
from cule.scope.calibration import read_window, run_in_a_process, run_once
from cule.scope.costs import Costs
from cule.scope.events import UNATTRIBUTED, Process
from cule.scope.recorder import INSTRUMENTS
from cule.scope.recording import analyse
from cule.scope.turns import folder_of

# RL-Scope's own figure for its bias.
MOST_BIAS = 0.16


def _change(before: Sequence[float], after: Sequence[float]) -> float:
    """The median change from one list to another: windows of a turn see the same machine."""
    return statistics.median(b / a for a, b in zip(before, after, strict=True)) - 1


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
        """How much longer the instrumented runs took: 0.9 is 90% longer. The median turn's."""
        return _change(self.uninstrumented, self.instrumented)

    @property
    def bias(self) -> float:
        """How far the corrected time is from the uninstrumented one. The median turn's."""
        return _change(self.uninstrumented, self.corrected)


def _apart(
    command: Sequence[str], iterations: tuple[int, int], boundaries: Sequence[str], turns: int,
    tell: Callable[[str], None], folder: Path,
) -> Iterator[tuple[Process, Process]]:  # fmt: skip
    """The uninstrumented and the instrumented window of each turn, each of a run of its own."""
    for turn in range(turns):
        tell(f"turn {turn + 1}, uninstrumented")
        plain = run_once(command, iterations, (), boundaries, folder)
        tell(f"turn {turn + 1}, instrumented")
        yield plain, run_once(command, iterations, INSTRUMENTS, boundaries, folder)


def _together(
    command: Sequence[str], iterations: tuple[int, int], boundaries: Sequence[str], turns: int,
    tell: Callable[[str], None], folder: Path,
) -> Iterator[tuple[Process, Process]]:  # fmt: skip
    """The windows of each turn, all of one run.

    CUPTI is unloaded after each recording. Else it would slow down the uninstrumented windows after
    it (https://github.com/pytorch/pytorch/issues/144455).
    """
    tell(f"{turns} turns in one run")
    options = [
        "--out", str(folder), "--iterations", f"{iterations[0]}:{iterations[1]}",
        "--turns", str(turns), *(f"--boundary={one}" for one in boundaries),
    ]  # fmt: skip
    run_in_a_process(command, options, TEARDOWN_CUPTI="1")
    for turn in range(turns):
        plain, instrumented = (
            read_window(folder_of(folder, turn, recorded), command, iterations)
            for recorded in (False, True)
        )
        yield plain, instrumented


def check(
    command: Sequence[str], iterations: tuple[int, int], boundaries: Sequence[str], turns: int,
    costs: Costs, tell: Callable[[str], None], together: bool = False,
) -> Bias:  # fmt: skip
    """Measures the bias.

    Args:
        command: what is run.
        iterations: the window, from which iteration to before which one.
        boundaries: more modules of the simulator.
        turns: how many windows of each kind.
        costs: of the book-keeping.
        tell: is called with what is measured next.
        together: whether all windows are of one run of the command; else each has its own run.

    Raises:
        RuntimeError: the command fails.
    """
    windows = _together if together else _apart
    count = iterations[1] - iterations[0]
    bias = Bias([], [], [], 0.0)

    def milliseconds(process: Process) -> float:
        return (process.end - process.start) / 1e6 / count

    with tempfile.TemporaryDirectory() as folder:
        for plain, instrumented in windows(
            command, iterations, boundaries, turns, tell, Path(folder)
        ):
            bias.uninstrumented.append(milliseconds(plain))
            bias.instrumented.append(milliseconds(instrumented))
            found = analyse(instrumented, costs)
            bias.corrected.append(1e3 * found.seconds / count)
            lost = sum(
                float(spent)
                for (key, _, _), spent in found.cells[0].nanoseconds.items()
                if key.operation == UNATTRIBUTED
            )
            bias.unattributed = lost / 1e9 / found.seconds
    return bias


def row_of(
    bias: Bias, command: Sequence[str], iterations: tuple[int, int], together: bool = False
) -> dict[str, Any]:
    """The row of results of a check."""

    def rounded(values: Sequence[float]) -> list[float]:
        return [round(value, 5) for value in values]

    device = torch.device(default_device())
    words = ["python", "-m", "cule.scope", "check", *["--together"] * together,
             "--iterations", f"{iterations[0]}:{iterations[1]}", "--", *command]  # fmt: skip
    return {
        "commit": commit(), "date": now(), "system": PROFILER, "mode": "profiling-bias",
        **machine(device, torch.get_num_threads()), "torch": torch.__version__,
        "command": shlex.join(words),
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
