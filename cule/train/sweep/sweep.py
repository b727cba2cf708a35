"""Many trainings as processes on few devices."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
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
from cule.train.run.stopper import Stopper
from cule.train.sweep.jobs import Job, JobState, last_lines, result_in, start
from cule.train.sweep.table import what_is_left

JOBS, RESULTS, LOCK = "sweep.json", "results.jsonl", "sweep.lock"
# The exit status of a program that a signal has stopped, as a shell has it of Ctrl-C.
STOPPED = 130
# A training that fails is started once more.
MOST_STARTS = 2
# For each training on a device so many others may be started or evaluated. If the CPU is slower
# with evaluations than a device with trainings, the device waits only after so many.
BESIDE = 4
# Seconds: between two looks at the processes, between two at their logs, and how long the
# processes of a killed sweep may take to end.
POLL, LOOK, PATIENCE = 0.1, 1.0, 10.0


class Sweep:
    """Many trainings on few devices.

    Args:
        jobs: the trainings, in the order in which they start.
        folder: each has a folder in it, named after it.
        devices: such as "cuda:0", "cuda:1".
        per_device: how many train on a device at the same time.
        beside: for each of them so many others may start or be evaluated. 0: the next starts
            when one has ended, so that nothing disturbs what is measured.

    Attributes:
        states: how far each job is.
        interrupted: a signal has stopped the sweep.

    Raises:
        ValueError: a job or a number is wrong, or the folder has jobs of the same names with other
            commands.
    """

    def __init__(
        self, jobs: Sequence[Job], folder: Path, devices: Sequence[str], per_device: int = 1,
        beside: int = BESIDE,
    ):  # fmt: skip
        self.folder, self.beside = folder, beside
        self.slots = [device for _ in range(per_device) for device in devices]
        self.states = [JobState(job) for job in jobs]
        self.interrupted = False
        self._running: dict[subprocess.Popen[bytes], JobState] = {}
        if not jobs or not self.slots:
            raise InvalidValue(
                "expected a training and a device or more, and one or more on each, got "
                f"{len(jobs)} trainings, {len(devices)} devices and {per_device} on each"
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
            name, command = state.job.name, list(state.job.command)
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
                self._work(stopper, lock, show)
            finally:
                for process in self._running:  # only after an error
                    process.kill()
                    process.wait()
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

    # The loop -------------------------------------------------------------------------------------

    def _work(
        self, stopper: Stopper, lock: int, show: Callable[[Sequence[JobState]], None]
    ) -> None:
        """Starts jobs and waits for them until all have ended, or a signal has stopped them."""
        looked, stopping = 0.0, False
        while True:
            if stopper.wanted and not stopping:
                stopping = True
                for process in self._running:
                    process.terminate()
            if not stopping:
                self._fill(lock)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                for state in self._running.values():
                    state.look(self.folder_of(state))
                show(self.states)
            if not self._running:
                return
            time.sleep(POLL)
            for process in [one for one in self._running if one.poll() is not None]:
                self._end(process, stopper)

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
        free, places, startup = list(self.slots), self.beside * self.slots, self._startup
        for state in self._running.values():
            assert state.device is not None
            if state.trained_in(startup) and state.device in places:
                places.remove(state.device)
            elif state.device in free:
                free.remove(state.device)
        waiting = [state for state in self.states if state.state == "waiting"]
        for state, device in zip(waiting, free, strict=False):
            folder = self.folder_of(state)
            state.begin(folder, device)
            process = start(state.job, folder, device, [lock], self._turns(device))
            self._running[process] = state

    def _turns(self, device: str) -> list[Path]:
        """The files of a device's turns, of which each training has one while it trains."""
        name = device.replace(":", "-")
        count = self.slots.count(device)
        return [self.folder.absolute() / f"turn-{name}-{number}.lock" for number in range(count)]

    def _end(self, process: subprocess.Popen[bytes], stopper: Stopper) -> None:
        """Notes how a training has ended."""
        state = self._running.pop(process)
        folder = self.folder_of(state)
        state.look(folder)
        state.seconds_left = None
        row = result_in(folder) if process.returncode == 0 else None
        if row is not None:
            state.finish(row)
            self._write()
        elif stopper.wanted:
            state.state = "stopped"
        elif state.starts < MOST_STARTS:
            state.state = "waiting"
        else:
            state.state = "failed"
            state.problem = last_lines(folder) or f"exit status {process.returncode}"
            self._write()


def devices_of(gpus: Sequence[int], device: str | None) -> list[str]:
    """The devices to train on.

    Args:
        gpus: numbers of GPUs; empty: all.
        device: "cpu", to train there even if there is a GPU; else None.

    Raises:
        ValueError: there is no such GPU.
    """
    if device == "cpu" and gpus:
        raise InvalidValue("expected gpus or device cpu, got both")
    if device == "cpu" or (not gpus and default_device() == "cpu"):
        return ["cpu"]
    count = torch.cuda.device_count()
    if wrong := [number for number in gpus if not 0 <= number < count]:
        raise InvalidValue(f"expected gpus below {count}, which are here, got {wrong[0]}")
    return [f"cuda:{number}" for number in gpus or range(count)]


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
