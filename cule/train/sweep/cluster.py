"""Shared by the executors of clusters: their packages, the sweep's identity, a training's task."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cule.disk.files import replacing
from cule.train.sweep.jobs import Job, words_of
from cule.train.sweep.node import IDENTITY, STOP, Task


def identity_in(folder: Path) -> str:
    """The word that tells a sweep's folder from all others; it is made if there is none.

    Raises:
        OSError: the folder cannot be read or written.
    """
    path = folder / IDENTITY
    if not path.exists():
        with replacing(path) as file:
            file.write(secrets.token_hex(16).encode())
    return path.read_text()


def task_of(
    job: Job, sweep: Path, identity: str, device: str, *, shared: bool, outcome: str = ""
) -> Task:
    """A job as a machine of a cluster gets it. An older request to stop it is taken back.

    Args:
        job: the training.
        sweep: the sweep's folder, from the root.
        identity: as of `identity_in`.
        device: "cpu" or "cuda".
        shared: refuse machines that do not see the folder.
        outcome: as of Task.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = sweep / job.name
    (folder / STOP).unlink(missing_ok=True)
    words = words_of(job, folder, device)
    return Task(job.name, words, str(sweep), identity, os.getcwd(), shared, outcome)
