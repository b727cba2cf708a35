"""More and more self-play workers, a trainer and an evaluator on one device (section 4.3)."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.studies import self_play
from benchmarks.studies.case import Options, body_of, head_of
from cule import scope
from cule.scope import Costs, Recording
from cule.scope.events import LEVELS

STUDY = "scale-up"


def name_of(num_workers: int) -> str:
    """The name of a case."""
    return f"{num_workers} worker{'s' if num_workers > 1 else ''}"


def train(options: Options, num_workers: int, folder: Path) -> None:
    """Trains for some generations, of which those after the warm-up are recorded.

    Args:
        options: of the study.
        num_workers: processes that play against themselves.
        folder: of the recording.
    """
    end = options.warm_up + options.iterations
    with scope.record(folder, iterations=(options.warm_up, end)), ExitStack() as stack:
        workers = [
            stack.enter_context(self_play.process(self_play.worker, options, number))
            for number in range(num_workers)
        ]
        others = [
            stack.enter_context(self_play.process(role, options))
            for role in (self_play.trainer, self_play.evaluator)
        ]
        for pipe in (*workers, *others):
            pipe.recv()
        weights = self_play.weights_of(self_play.policy_of(options))
        for _ in range(end):
            with scope.iteration():
                weights = self_play.generation(weights, workers, others)


def processes_of(recording: Recording) -> list[dict[str, Any]]:
    """What each process did: seconds of its main thread by level, and of its work on GPUs."""
    work: dict[str, float] = {}
    for one in recording.gpu():
        name = one.process.partition(":")[0]
        work[name] = work.get(name, 0) + one.seconds
    found = []
    for one in recording.processes:
        rows = [row for row in recording.breakdown() if row.process == one.process.name]
        levels = {
            level: round(sum(row.seconds for row in rows if row.level == level), 5)
            for level in LEVELS
        }
        operations: dict[str, float] = {}
        for row in rows:
            operations[row.operation] = operations.get(row.operation, 0) + row.seconds
        found.append({
            "process": one.process.name, "seconds": round(one.seconds, 5), **levels,
            "gpu_seconds": round(work.get(one.process.name, 0), 5),
            "operations": {name: round(seconds, 5) for name, seconds in operations.items()},
        })  # fmt: skip
    return found


def row_of(options: Options, num_workers: int, costs: Costs) -> dict[str, Any]:
    """Records a training; returns its row."""
    with tempfile.TemporaryDirectory() as folder:
        train(options, num_workers, Path(folder) / "recording")
        recording = Recording(Path(folder) / "recording", costs)
        says = {"system": "cule", "case": name_of(num_workers), "workers": num_workers}
        return {
            **head_of(STUDY, options, says), **body_of(recording),
            "processes": processes_of(recording),
        }  # fmt: skip
