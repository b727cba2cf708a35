"""A recording as a row of benchmarks/results, and as JSON lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from cule.programs.results import PROFILER, commit, cpu_name, now
from cule.scope.depths import gpu_use
from cule.scope.events import LEVELS, RESOURCES
from cule.scope.overlaps import overlaps_of
from cule.scope.recording import Recording


def json_rows(recording: Recording) -> list[dict[str, Any]]:
    """All rows as JSON has them; `table` says which table a row is of.

    Raises:
        ValueError: a file is damaged.
    """
    processes = [one.process for one in recording.processes]
    tables: dict[str, Sequence[Any]] = {
        "breakdown": recording.breakdown(), "transitions": recording.transitions(),
        "gpu": recording.gpu(), "gpu_use": gpu_use(processes),
        "memory": recording.memory(),
        "overlap": [row for process in processes for row in overlaps_of(process)],
    }  # fmt: skip
    rows: list[dict[str, Any]] = [
        {"table": "process", "process": one.process.name, "parent": one.process.parent,
         "seconds": one.seconds,
         "recorded_seconds": one.recorded_seconds, "iterations": one.process.iterations,
         "problems": one.process.problems}
        for one in recording.processes
    ]  # fmt: skip
    return rows + [
        {"table": name, **dataclasses.asdict(row)}
        for name, found in tables.items()
        for row in found
    ]


def _operations(recording: Recording, name: str, count: int) -> dict[str, dict[str, float]]:
    """Milliseconds an iteration of each operation of a process."""
    operations: dict[str, dict[str, float]] = {}
    columns = ("milliseconds", *RESOURCES, *LEVELS, "hidden", "gpu_work", "kernels", "transitions")
    for row in recording.breakdown():
        if row.process != name:
            continue
        of = operations.setdefault(row.operation, dict.fromkeys(columns, 0.0))
        milliseconds = 1e3 * row.seconds / count
        for column in ("milliseconds", row.resource, *filter(None, [row.level])):
            of[column] += milliseconds
        of["hidden"] += 1e3 * row.hidden_seconds / count
        of["transitions"] += row.transitions / count
    for work in recording.gpu():
        if work.process == name:
            of = operations.setdefault(work.operation, dict.fromkeys(columns, 0.0))
            of["gpu_work"] += 1e3 * work.seconds / count
            of["kernels"] += work.kernels / count
    return {
        operation: {column: round(value, 5) for column, value in of.items()}
        for operation, of in operations.items()
    }


def results_row(recording: Recording) -> dict[str, Any]:
    """The row of the first process's main lane: benchmarks/results/README.md says what is in it.

    Raises:
        ValueError: a file is damaged.
    """
    first = recording.processes[0]
    about, count = first.process.about, max(first.process.iterations, 1)
    use = gpu_use([one.process for one in recording.processes])
    return {
        "commit": commit(), "date": now(), "system": PROFILER, "mode": "profile",
        "device_name": use[0].gpu if use else cpu_name(), "cuda": about.get("cuda"),
        "torch": about.get("torch"), "command": about.get("command"),
        "processes": len(recording.processes), "iterations": first.process.iterations,
        "iteration_milliseconds": round(1e3 * first.seconds / count, 5),
        "recorded_milliseconds": round(1e3 * first.recorded_seconds / count, 5),
        "reference": about.get("reference"),
        "operations": _operations(recording, first.process.name, count),
        "gpu_use": [dataclasses.asdict(one) for one in use],
        "problems": recording.problems,
    }  # fmt: skip
