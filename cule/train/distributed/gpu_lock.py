"""Turns on a device: of a sweep's trainings on it, only so many train at a time.

The next one is started while the last one still trains, so that it is ready in time. If it is ready
earlier, it waits here: two trainings that share a GPU take its time slices in turn, and both take
longer than one after the other. Where several are to train at the same time, each takes as many
multiprocessors for emulation as leave the others theirs.

A turn is the lock of a file. The system releases it when a process ends, however it does.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cule.train.distributed.budgets import environment_without_limits

# The environment's variable with a training's turns: a JSON list of files, any of which will do.
GPU_LOCKS = "CULE_GPU_LOCKS"
POLL = 0.02  # seconds between two attempts


def environment_with(files: Sequence[Path]) -> dict[str, str]:
    """An environment for a training in a new process that has to wait for one of these turns."""
    return environment_without_limits() | {GPU_LOCKS: json.dumps([str(file) for file in files])}


def _files_in(environment: Mapping[str, str]) -> list[Path]:
    return [Path(file) for file in json.loads(environment.get(GPU_LOCKS, "[]"))]


def trainings_at_once(environment: Mapping[str, str] = os.environ) -> int:
    """How many trainings of a sweep train at the same time on this one's device, itself included.

    Args:
        environment: names the files whose locks are turns (GPU_LOCKS).
    """
    return max(1, len(_files_in(environment)))


def lock_one_of(files: Sequence[Path], stopped: Callable[[], bool]) -> int | None:
    """Waits for the lock of one of some files, which are created if they are missing.

    Args:
        files: the files.
        stopped: whether to stop waiting.

    Returns:
        The descriptor that has the lock; None: `stopped` was true before a lock was free.

    Raises:
        OSError: a file cannot be opened, or its file system has no locks.
    """
    while True:
        for file in files:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                os.close(descriptor)
                if not isinstance(problem, BlockingIOError):
                    raise
            else:
                return descriptor
        if stopped():
            return None
        time.sleep(POLL)


class GpuLock:
    """The turn of a training on its device.

    Args:
        environment: names the files whose locks are turns (GPU_LOCKS); without files there is
            nothing to wait for.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ):
        self.files = _files_in(environment)
        self._held: int | None = None

    def acquire(self, stopped: Callable[[], bool]) -> None:
        """Waits for a turn, unless it is stopped.

        Raises:
            OSError: see lock_one_of.
        """
        if self.files and self._held is None:
            self._held = lock_one_of(self.files, stopped)

    def release(self) -> None:
        """Ends the turn, if there is one."""
        if self._held is not None:
            # Processes that were forked meanwhile have the lock, too, until it is released.
            fcntl.flock(self._held, fcntl.LOCK_UN)
            os.close(self._held)
            self._held = None
