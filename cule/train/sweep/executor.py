"""Where a sweep's trainings run: the seam between its one loop and the machines.

An executor starts a training and gives a handle, of which the loop asks nothing but whether it has
ended. What a training has achieved is in its folder. `Local` starts processes on this machine; Ray
and Slurm are in files of their own (on_ray.py, on_slurm.py).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cule.train.sweep.jobs import Job, start

# For each training on a device so many others may be started or evaluated. If the CPU is slower
# with evaluations than a device with trainings, the device waits only after so many.
BESIDE = 4
# The exit status of a program that a signal has stopped, as a shell has it of Ctrl-C.
STOPPED = 130


class Handle(Protocol):
    """A training that was started.

    Attributes:
        place: where it runs, in a word; None: it waits for a place.
        lost: it has ended because its machine has, which is no failure of its own.
        problem: why it ended, if its output cannot say so.
        notes: what the user should hear about it; the loop takes them away.
    """

    place: str | None
    lost: bool
    problem: str
    notes: list[str]

    def poll(self) -> int | None:
        """The exit status; None: it waits or runs. Once it is known it stays."""

    def terminate(self) -> None:
        """Asks the training to write a checkpoint and to end; one that waits ends at once."""

    def kill(self) -> None:
        """Ends it without a checkpoint, and waits for that as long as can be waited."""


class Executor(Protocol):
    """Starts trainings. Its constructor refuses what it cannot honour.

    Attributes:
        name: its name among the choices of --executor.
        beside: how many trainings may start or be evaluated for each that trains.
        adopts: trainings outlive the sweep that started them, and `start` finds them again.
    """

    name: str
    beside: int
    adopts: bool

    def slots(self, count: int) -> list[str]:
        """The names of the places for a number of trainings; a place has one at a time."""

    def open(self, folder: Path, jobs: Sequence[Job]) -> None:
        """Gets ready, before the first start and with the lock of the sweep's folder.

        Args:
            folder: the sweep's.
            jobs: the trainings that are not finished.

        Raises:
            ValueError: trainings of another sweep are in the way.
        """

    def start(self, job: Job, folder: Path, slot: str, lock: int) -> Handle:
        """Starts a training, or finds it again.

        Args:
            job: what to train.
            folder: its folder.
            slot: one of `slots`.
            lock: the descriptor that has the lock of the sweep's folder. Trainings that must end
                before another sweep begins inherit it.

        Raises:
            OSError: the folder cannot be written, or there is no memory for the process.
        """

    def close(self) -> None:
        """Ends what `open` and the constructor have begun."""


class LocalHandle:
    """A training as a process of this machine.

    Args:
        process: the process.
        place: its device.

    Attributes:
        pid: the process's number.
    """

    lost, problem = False, ""

    def __init__(self, process: subprocess.Popen[bytes], place: str):
        self._process, self.pid = process, process.pid
        self.place: str | None = place
        self.notes: list[str] = []

    def poll(self) -> int | None:
        """The process's exit status; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Sends SIGKILL, and waits for the end."""
        self._process.kill()
        self._process.wait()


class Local:
    """Processes on this machine's devices, which end with the sweep.

    Args:
        devices: such as "cuda:0"; "cuda:0,1" for trainings of two processes.
        per_device: how many train on a device at the same time.
        beside: as of Sweep.
    """

    name, adopts = "local", False

    def __init__(self, devices: Sequence[str], per_device: int = 1, beside: int = BESIDE):
        self._slots = [device for _ in range(per_device) for device in devices]
        self.beside = beside
        self._folder = Path()

    def slots(self, count: int) -> list[str]:
        """The devices, each as often as trainings may train there."""
        return list(self._slots)

    def open(self, folder: Path, jobs: Sequence[Job]) -> None:
        """Notes the sweep's folder, which has the files of the turns."""
        self._folder = folder.absolute()

    def start(self, job: Job, folder: Path, slot: str, lock: int) -> LocalHandle:
        """Starts a training as a process.

        Raises:
            OSError: the folder cannot be written, or there is no memory for the process.
        """
        return LocalHandle(start(job, folder, slot, [lock], self._turns(job, slot)), slot)

    def _turns(self, job: Job, device: str) -> list[Path]:
        """The files of a device's turns, of which each training has one while it trains.

        There is none for several processes, which would have to take it together.
        """
        if job.processes > 1:
            return []
        name = device.replace(":", "-")
        count = self._slots.count(device)
        return [self._folder / f"turn-{name}-{number}.lock" for number in range(count)]

    def close(self) -> None:
        """There is nothing to end."""
