"""Measures cases: emulation and inference by cule.bench, trainings by cule.train.sweep."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any

from tqdm import tqdm

from cule.bench import cases as bench
from cule.bench.measure import Worker
from cule.bench.rows import RowMaker
from cule.devices.device import find_device
from cule.disk.json_lines import read_lines
from cule.programs import results
from cule.train.command import options_of
from cule.train.logs.log import LOG
from cule.train.logs.rows import append_row
from cule.train.sweep.jobs import Job, JobState
from cule.train.sweep.sweep import Sweep, report_end
from cule.train.sweep.table import Live
from examples.a2c_vtrace.paper import rows
from examples.a2c_vtrace.paper.cases import Case
from examples.a2c_vtrace.paper.steps import measure_steps


@dataclass(frozen=True)
class Budget:
    """Where cases are measured, and how long.

    Attributes:
        devices: "cpu", or GPUs such as "cuda:0".
        seconds: of each system in a case, or of a training.
        rounds: into how many these are divided, except for trainings.
        warmup_steps: at least so many steps come before, except for trainings.
        steps: of figure 3.
        num_threads: CPU threads of each system.
        folder: trainings have folders in it.
        results: file to which rows are appended.
        progress: show progress.
    """

    devices: Sequence[str]
    seconds: float
    rounds: int
    warmup_steps: int
    steps: int
    num_threads: int
    folder: Path
    results: Path
    progress: bool


def left(cases: Iterable[Case], path: Path) -> list[Case]:
    """The cases without a row of this commit in a file of results.

    Raises:
        OSError: the file cannot be read.
    """
    commit = results.commit()
    found = [] if not path.exists() or not path.stat().st_size else rows.read([path])
    known = [row for row in found if row.values.get("commit") == commit]
    return rows.left_over(cases, known)


def measure(cases: Sequence[Case], budget: Budget) -> int:
    """Measures cases and appends each row as soon as there is one.

    Returns:
        The exit status: 1 if a case failed, 130 if a signal stopped it.

    Raises:
        OSError: a file or folder cannot be written.
        ValueError: a setting is wrong.
    """
    emulated = [case for case in cases if case.module is None]
    failed = _emulate(emulated, budget) if emulated else 0
    for several in (False, True):
        some = [case for case in cases if case.module and (case.gpus > 1) == several]
        status = _train(some, budget, several) if some else 0
        if status > 1:
            return status
        failed |= status
    return failed


# Emulation and inference --------------------------------------------------------------------------


def _emulate(cases: Sequence[Case], budget: Budget) -> int:
    """Measures cases without training; 1 if one failed. Those on the CPU come one by one."""
    on_gpu = [case for case in cases if case.wanted[0]["engine"] == "cule"]
    on_cpu = [case for case in cases if case not in on_gpu]
    bar = tqdm(total=len(cases), unit="case", disable=not budget.progress, file=sys.stderr)
    with bar:
        slots = _run(on_gpu, budget, budget.devices, bar) if on_gpu else []
        return int(any([*slots, *_run(on_cpu, budget, budget.devices[:1], bar)]))


def _run(cases: Sequence[Case], budget: Budget, devices: Sequence[str], bar: tqdm) -> list[bool]:
    """Measures cases, one at a time on each device; whether each failed."""
    waiting: SimpleQueue[Case | None] = SimpleQueue()
    for case in [*cases, *[None] * len(devices)]:
        waiting.put(case)
    stopped = Event()

    def work(device: str) -> list[bool]:
        failures = []
        with Worker() as worker:
            while not stopped.is_set() and (case := waiting.get()) is not None:
                bar.set_description(case.name)
                problem = _rows_of(case, budget, device, worker)
                if problem is not None:
                    bar.write(f"paper: {case.name}: {problem}", file=sys.stderr)
                failures.append(problem is not None)
                bar.update()
        return failures

    with ThreadPoolExecutor(len(devices)) as pool:
        try:
            return [failed for some in pool.map(work, devices) for failed in some]
        finally:
            # After Ctrl-C the pool waits for its threads, which would go on to the last case.
            stopped.set()


def _rows_of(case: Case, budget: Budget, device: str, worker: Worker) -> str | None:
    """Measures a case and appends its rows; what went wrong, or None."""
    wanted = case.wanted[-1]
    engine, load = wanted["engine"], wanted["mode"]
    on_cpu = engine != "cule"
    if load == "step-by-step":
        place = "cpu" if on_cpu else device
        outcome = worker.call(
            measure_steps, wanted["game"], wanted["num_envs"], budget.steps, place,
            budget.num_threads,
        )  # fmt: skip
        if isinstance(outcome, str):
            return outcome
        append_row(outcome, budget.results)
        return None
    inference = load == "with-policy"
    asked = bench.Case(
        game=wanted["game"], num_envs=wanted["num_envs"],
        device="cpu" if on_cpu and not inference else device, mode=load, frameskip=4,
        num_threads=budget.num_threads, seconds=budget.seconds, rounds=budget.rounds,
        warmup_steps=budget.warmup_steps,
        against_ale=any(values["engine"] == "ale-py" for values in case.wanted),
        env_groups=int(on_cpu and inference),
    )  # fmt: skip
    outcome = worker.measure(asked)
    if isinstance(outcome, str):
        return outcome
    for row in RowMaker(find_device(asked.device)).rows(asked, outcome):
        append_row(dataclasses.asdict(row), budget.results)
    return None


# Trainings ----------------------------------------------------------------------------------------


def job_of(case: Case, budget: Budget) -> Job:
    """A training, under torchrun if it needs several GPUs."""
    assert case.module is not None
    settings = {
        **case.options,
        "max_seconds": budget.seconds,
        "num_threads": budget.num_threads,
    }
    torchrun = (
        ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.gpus))
        if case.gpus > 1
        else ()
    )
    return Job(case.name, (*torchrun, "-m", case.module, *options_of(settings)))


def _train(cases: Sequence[Case], budget: Budget, several: bool) -> int:
    """Trains, one at a time on each device, or on all devices together; the exit status."""
    folder = budget.folder / results.commit()
    devices = [budget.devices[0].partition(":")[0]] if several else budget.devices
    sweep = Sweep([job_of(case, budget) for case in cases], folder, devices, beside=0)
    appended: set[str] = set()

    def look(states: Sequence[JobState]) -> None:
        show(states)
        for state in states:
            if state.row is not None and state.job.name not in appended:
                appended.add(state.job.name)
                row = {**state.row, "evaluations": _evaluations(folder / state.job.name)}
                append_row(row, budget.results, once=True)

    show: Callable[[Sequence[JobState]], Any] = (
        Live(sys.stderr) if budget.progress else lambda states: None
    )
    sweep.run(look)
    return report_end(sweep)


def _evaluations(folder: Path) -> list[dict[str, float]]:
    """Seconds, frames and score of a training's evaluations."""
    lines = read_lines(folder / LOG, lambda line: (line["kind"], line)).good
    return [
        {"seconds": line["seconds"], "frames": line["frames"], "score": line["test_score"]}
        for kind, line in lines
        if kind == "evaluation"
    ]
