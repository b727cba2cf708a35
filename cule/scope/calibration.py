"""Calibrates: what the book-keeping costs, here and in a given program.

Small loops (loops.py) say what each piece costs by itself. A program has colder caches and other
CUDA calls. So, given a command, it is run with more and more of the instruments, in turns
(RL-Scope, appendix C.1), and each step's costs are scaled until the corrected time is that of the
uninstrumented runs. Where the step makes no more difference than the runs' own noise, the loops'
figure stays.
"""

from __future__ import annotations

import copy
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from cule.device import default_device
from cule.results import commit, machine, now
from cule.scope.costs import Costs
from cule.scope.events import Process
from cule.scope.loops import measure_loops
from cule.scope.recorder import INSTRUMENTS
from cule.scope.recording import analyse
from cule.scope.storage import names_in, read_process

# The largest and smallest scale of the loops' figures, and the steps of the search.
LEAST_SCALE, MOST_SCALE, SEARCH_STEPS = 0.1, 10.0, 24
# A difference counts if it is larger than so many times the runs' deviation.
NOISE = 2.0
_FIELDS = {
    "annotations": ("annotation",), "boundaries": ("boundary",), "activities": ("operator",),
    "cuda": ("api", "graph_node", "graph_node_gpu"),
}  # fmt: skip


@dataclass
class Runs:
    """The runs of a command with some of the instruments.

    Attributes:
        seconds: the length of each run's window, of its first process.
        processes: what each recorded.
    """

    seconds: list[float] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median length."""
        return statistics.median(self.seconds)

    @property
    def deviation(self) -> float:
        """The median distance from the median."""
        return statistics.median(abs(one - self.median) for one in self.seconds)


def run_in_a_process(command: Sequence[str], options: Sequence[str], **environment: str) -> None:
    """Runs a command under `cule.scope run`, with more variables in its environment.

    Raises:
        RuntimeError: it fails.
    """
    words = [sys.executable, "-m", "cule.scope", "run", *options, "--", *command]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise RuntimeError(f"expected {shlex.join(command)} to end well, got: {said}")


def read_window(folder: Path, command: Sequence[str], iterations: tuple[int, int]) -> Process:
    """The first process of a recording, which has a window.

    Raises:
        RuntimeError: it has none.
    """
    there = folder.is_dir() and any(folder.glob("*.process.json"))
    process = read_process(folder, names_in(folder)[0]) if there else None
    if process is None or process.end <= process.start:
        raise RuntimeError(
            f"expected iterations {iterations[0]} to {iterations[1]} of {shlex.join(command)}, got "
            "none: the training loop marks them by `with scope.iteration():`"
        )
    return process


def run_once(
    command: Sequence[str], iterations: tuple[int, int], instruments: Sequence[str],
    boundaries: Sequence[str], folder: Path,
) -> Process:  # fmt: skip
    """Runs a command until the iterations are recorded, in a process of its own.

    Raises:
        RuntimeError: it fails.
    """
    options = [
        "--out", str(folder), "--overwrite", "--finish",
        "--iterations", f"{iterations[0]}:{iterations[1]}",
        "--instruments", ",".join(instruments) or "none",
        *(f"--boundary={name}" for name in boundaries),
    ]  # fmt: skip
    if "cuda" not in instruments:
        options.append("--no-markers")
    run_in_a_process(command, options)
    return read_window(folder, command, iterations)


def corrected_seconds(process: Process, costs: Costs) -> float:
    """The length of a process's window without the book-keeping."""
    return analyse(copy.deepcopy(process), costs).seconds


def scaled(costs: Costs, instrument: str, scale: float) -> Costs:
    """Costs of which those of one instrument are so many times as large."""
    changed = copy.deepcopy(costs)
    for name in _FIELDS[instrument]:
        setattr(changed, name, getattr(costs, name) * scale)
    if instrument == "cuda":
        changed.apis = {name: cost * scale for name, cost in costs.apis.items()}
    return changed


def fit(runs: Runs, wanted: float, costs: Costs, instrument: str) -> float:
    """The scale at which the corrected time of runs is nearest to what is wanted, seconds.

    The corrected time falls as the costs grow. 1 where the costs make no difference, as when a GPU
    covers them.
    """

    def seconds(scale: float) -> float:
        changed = scaled(costs, instrument, scale)
        return statistics.median(corrected_seconds(one, changed) for one in runs.processes)

    low, high = LEAST_SCALE, MOST_SCALE
    if seconds(low) - seconds(high) <= NOISE * runs.deviation:
        return 1.0
    for _ in range(SEARCH_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if seconds(middle) > wanted else (low, middle)
    return (low * high) ** 0.5


def calibrate(
    command: Sequence[str], iterations: tuple[int, int], boundaries: Sequence[str], repeats: int,
    tell: Callable[[str], None],
) -> Costs:  # fmt: skip
    """What book-keeping costs, in a command if there is one.

    Args:
        command: as of program.program_of; may be empty.
        iterations: of the command, from which to before which one.
        boundaries: as of Recorder.
        repeats: how often the command is run with each set of instruments.
        tell: is called with what is measured next.

    Raises:
        RuntimeError: the command fails.
    """
    tell("small loops")
    costs = measure_loops()
    device = torch.device(default_device())
    costs.about = {
        "date": now(), "commit": commit(), **machine(device, torch.get_num_threads()),
        "loops": {"annotation": costs.annotation, "boundary": costs.boundary,
                  "operator": costs.operator},
    }  # fmt: skip
    if not command:
        return costs
    used = INSTRUMENTS if torch.cuda.is_available() else INSTRUMENTS[:-1]
    steps = [used[:count] for count in range(len(used) + 1)]
    all_runs = [Runs() for _ in steps]
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(repeats):
            for instruments, runs in zip(steps, all_runs, strict=True):
                tell(f"run {turn + 1} with {', '.join(instruments) or 'nothing'}")
                process = run_once(command, iterations, instruments, boundaries, Path(folder))
                runs.seconds.append((process.end - process.start) / 1e9)
                runs.processes.append(process)
    plain = all_runs[0]
    scales = {}
    for place, instrument in enumerate(used, 1):
        before, runs = all_runs[place - 1], all_runs[place]
        noise = NOISE * max(before.deviation, runs.deviation)
        if abs(runs.median - before.median) > noise:
            scales[instrument] = fit(runs, plain.median, costs, instrument)
            costs = scaled(costs, instrument, scales[instrument])
    costs.about |= {
        "command": shlex.join(command), "iterations": list(iterations), "scales": scales,
        "seconds": {", ".join(instruments) or "none": runs.seconds
                    for instruments, runs in zip(steps, all_runs, strict=True)},
    }  # fmt: skip
    return costs
