"""Many trainings on few devices, or on a cluster: one loop, which knows only executor.py."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from cule.devices.device import default_device
from cule.disk.files import content_of, replacing
from cule.disk.forms import formed
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.programs.results import command_line
from cule.train.distributed.gpu_lock import lock_one_of
from cule.train.distributed.slices import slices
from cule.train.run.stopper import Stopper
from cule.train.sweep.executor import BESIDE, STOPPED, Executor, Handle, Local
from cule.train.sweep.jobs import Job, JobState, last_lines, result_in
from cule.train.sweep.node import JOB_LOCK, SUBMITTED
from cule.train.sweep.table import what_is_left

JOBS, RESULTS, LOCK = "sweep.json", "results.jsonl", "sweep.lock"
# A training that fails is started once more. One whose machine is lost has not failed.
MOST_STARTS, MOST_LOSSES = 2, 10
# Seconds: between two looks at the processes, between two at their logs, and how long the
# processes of a killed sweep may take to end.
POLL, LOOK, PATIENCE = 0.1, 1.0, 10.0


class Sweep:
    """Many trainings on few devices, or on a cluster.

    Args:
        jobs: the trainings, in the order in which they start.
        folder: each has a folder in it, named after it.
        devices: such as "cuda:0", "cuda:1"; "cuda:0,1" for trainings of two processes.
        per_device: how many train on a device at the same time.
        beside: for each of them so many others may start or be evaluated. 0: the next starts
            when one has ended, so that nothing disturbs what is measured. So it is with
            trainings of several processes, which take no turns.
        executor: starts trainings elsewhere, in place of the four above.
        losses: how often a training is started again because its machine was lost.

    Attributes:
        states: how far each job is.
        interrupted: a signal has stopped the sweep.

    Raises:
        ValueError: a job or a number is wrong, or the folder has jobs of the same names with other
            commands.
    """

    def __init__(
        self, jobs: Sequence[Job], folder: Path, devices: Sequence[str] = (), per_device: int = 1,
        beside: int = BESIDE, executor: Executor | None = None, losses: int = MOST_LOSSES,
    ):  # fmt: skip
        self.folder, self.losses = folder, losses
        if executor is None:
            several = any(job.processes > 1 for job in jobs)
            executor = Local(devices, per_device, 0 if several else beside)
        elif devices:
            raise InvalidValue(f"expected devices or an executor, got both: {', '.join(devices)}")
        self.executor = executor
        self.slots = executor.slots(len(jobs))
        self.states = [JobState(job) for job in jobs]
        self.interrupted = False
        self._running: dict[Handle, JobState] = {}
        if not jobs or not self.slots:
            raise InvalidValue(
                "expected a training and a device or more, and one or more on each, got "
                f"{len(jobs)} trainings and {len(self.slots)} places"
            )
        for job in jobs:
            job.check()
        names = [job.name for job in jobs]
        if twice := {name for name in names if names.count(name) > 1}:
            raise InvalidValue(f"expected jobs of different names, got {', '.join(sorted(twice))}")
        self._known_jobs()

    def _known_jobs(self) -> dict[str, list[str]]:
        """The commands of the folder's jobs and of these, by name.

        Raises:
            ValueError: one is in the folder with another command.
        """
        path = self.folder / JOBS
        try:
            known = formed(json.loads(content_of(path)), dict[str, list[str]])
        except FileNotFoundError:
            known = {}
        except (OSError, *DAMAGE) as problem:
            raise InvalidValue(f"expected {path} as a sweep writes it, got {problem}") from problem
        for state in self.states:
            name, command = state.job.name, state.job.identity
            if known.setdefault(name, command) != command:
                raise InvalidValue(
                    f"expected {name} in {self.folder} with the settings that it has there "
                    f"({' '.join(known[name])}), got {' '.join(command)}: name another folder"
                )
        return known

    def folder_of(self, state: JobState) -> Path:
        """A job's folder."""
        return self.folder / state.job.name

    def run(self, show: Callable[[Sequence[JobState]], None] | None = None) -> list[dict[str, Any]]:
        """Runs all jobs that are not finished.

        SIGINT and SIGTERM stop it: each training writes a checkpoint first.

        Args:
            show: called about once a second with all states, and at the end.

        Returns:
            The finished jobs' rows of results, in the order of the jobs. "job" is the job's name. A
            job that failed has a row with "job", "command" and "error", its last lines; a job that
            was stopped has none. The folder's results.jsonl has the same rows.

        Raises:
            ValueError: another sweep uses the folder.
            OSError: the folder cannot be written.
        """
        show = show or (lambda states: None)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked() as lock, Stopper() as stopper:
            with replacing(self.folder / JOBS) as file:
                file.write((json.dumps(self._known_jobs(), indent=1) + "\n").encode())
            for state in self.states:
                if row := result_in(self.folder_of(state)):
                    state.finish(row)
            try:
                left = [state.job for state in self.states if state.state == "waiting"]
                self.executor.open(self.folder, left)
                self._wait_for_others()
                self._work(stopper, lock, show)
            finally:
                # Only after an error. What outlives the sweep is found again by the next one.
                for handle in () if self.executor.adopts else self._running:
                    handle.kill()
                self.executor.close()
        self.interrupted = stopper.wanted
        self._write()
        show(self.states)
        return self.rows

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of results that `run` returns."""
        rows = []
        for state in self.states:
            job = state.job
            if state.row is not None:
                rows.append({"job": job.name, **state.row})
            elif state.state == "failed":
                error = state.problem
                rows.append({"job": job.name, "command": " ".join(job.command), "error": error})
        return rows

    def _write(self) -> None:
        with replacing(self.folder / RESULTS) as file:
            file.write("".join(json.dumps(row) + "\n" for row in self.rows).encode())

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Holds the folder's lock. Each training holds it too, for as long as it lives.

        Raises:
            ValueError: another sweep has it, or trainings of a sweep that was killed.
        """
        end = time.monotonic() + PATIENCE
        descriptor = lock_one_of([self.folder / LOCK], lambda: time.monotonic() > end)
        if descriptor is None:
            raise InvalidValue(f"expected a folder that no other sweep uses, got {self.folder}")
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _wait_for_others(self) -> None:
        """Waits for trainings of killed sweeps, which other machines may still end.

        Raises:
            ValueError: one goes on, or another executor has it.
        """
        end = time.monotonic() + PATIENCE
        for state in self.states:
            folder = self.folder_of(state)
            if state.state != "waiting" or self.executor.adopts:
                continue
            if (folder / SUBMITTED).exists():
                raise InvalidValue(
                    f"expected to go on with the executor that has {state.job.name} in its queue, "
                    f"got {self.executor.name}: {folder / SUBMITTED} says which; delete that file "
                    "once nothing is in the queue any more"
                )
            if (folder / JOB_LOCK).exists():
                lock = lock_one_of([folder / JOB_LOCK], lambda: time.monotonic() > end)
                if lock is None:
                    raise InvalidValue(
                        f"expected a folder in which nothing trains, got {folder}, in which a "
                        "training of another sweep has not ended"
                    )
                os.close(lock)

    # The loop -------------------------------------------------------------------------------------

    def _work(
        self, stopper: Stopper, lock: int, show: Callable[[Sequence[JobState]], None]
    ) -> None:
        """Starts jobs and waits for them until all have ended, or a signal has stopped them."""
        looked, stopping = 0.0, False
        while True:
            if stopper.wanted and not stopping:
                stopping = True
                for handle in self._running:
                    handle.terminate()
            if not stopping:
                self._fill(lock)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                for handle, state in self._running.items():
                    self._look(handle, state)
                show(self.states)
            if not self._running:
                return
            time.sleep(POLL)
            for handle in [one for one in self._running if one.poll() is not None]:
                self._end(handle, stopper)

    def _look(self, handle: Handle, state: JobState) -> None:
        """Notes where a training is, and how far."""
        state.place = handle.place
        state.state = "queued" if handle.place is None else "running"
        state.notes += handle.notes
        handle.notes.clear()
        state.look(self.folder_of(state))

    @property
    def _startup(self) -> float:
        """Seconds from the start of a training's process to that of the training, as far as known.

        What a training itself calls its start, `startup_seconds`, lacks the imports before it.
        """
        known = [state.startup for state in self.states if state.startup is not None]
        return statistics.median(known) if known else 0.0

    def _fill(self, lock: int) -> None:
        """Starts jobs on devices that have room, or will have when the jobs have started."""
        # Those that are started or evaluated have places, too; if none is left they keep that of a
        # training.
        free, places = list(self.slots), self.executor.beside * self.slots
        startup = self._startup
        for state in self._running.values():
            assert state.device is not None
            if state.trained_in(startup) and state.device in places:
                places.remove(state.device)
            elif state.device in free:
                free.remove(state.device)
        waiting = [state for state in self.states if state.state == "waiting"]
        for state, slot in zip(waiting, free, strict=False):
            folder = self.folder_of(state)
            state.begin(folder, slot)
            self._running[self.executor.start(state.job, folder, slot, lock)] = state

    def _end(self, handle: Handle, stopper: Stopper) -> None:
        """Notes how a training has ended."""
        state = self._running.pop(handle)
        folder = self.folder_of(state)
        self._look(handle, state)
        state.seconds_left, status = None, handle.poll()
        row = result_in(folder) if status == 0 else None
        if row is not None:
            state.finish(row)
            self._write()
        elif stopper.wanted:
            state.state = "stopped"
        elif handle.lost and state.losses < self.losses:
            state.losses += 1
            state.state = "waiting"
            state.notes.append(handle.problem)
        elif not handle.lost and state.starts - state.losses < MOST_STARTS:
            state.state = "waiting"
        else:
            state.state = "failed"
            state.problem = handle.problem or last_lines(folder) or f"exit status {status}"
            self._write()


def devices_of(gpus: Sequence[int], device: str | None, each: int = 1) -> list[str]:
    """The devices to train on.

    Args:
        gpus: numbers of GPUs, or of MIG slices where there are any; empty: all.
        device: "cpu", to train there even if there is a GPU; else None.
        each: GPUs of a training; "cuda:0,1" are two.

    Raises:
        ValueError: there is no such GPU, or some would be left over.
    """
    if device == "cpu" and gpus:
        raise InvalidValue("expected gpus or device cpu, got both")
    if device == "cpu" or (not gpus and default_device() == "cpu"):
        return ["cpu"]
    count = len(slices()) or torch.cuda.device_count()
    if wrong := [number for number in gpus if not 0 <= number < count]:
        raise InvalidValue(f"expected gpus below {count}, which are here, got {wrong[0]}")
    numbers = list(gpus or range(count))
    if len(numbers) % each:
        raise InvalidValue(
            f"expected a number of GPUs that gpus_per_training ({each}) divides, got {len(numbers)}"
        )
    groups = [numbers[first : first + each] for first in range(0, len(numbers), each)]
    return [f"cuda:{','.join(map(str, group))}" for group in groups]


def report_end(sweep: Sweep) -> int:
    """Writes to stderr what failed, and how a sweep that was stopped goes on; the exit status."""
    failed = [state for state in sweep.states if state.state == "failed"]
    for state in failed:
        folder = sweep.folder_of(state)
        sys.stderr.write(f"{state.job.name} failed, {folder} has all:\n{state.problem}\n")
    if sweep.interrupted:
        left = what_is_left(sweep.states)
        again = command_line() or "run the sweep again"
        sys.stderr.write(f"Stopped: {left}. To go on: {again}\n")
        return STOPPED
    return int(bool(failed))
