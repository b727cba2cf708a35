"""The user's folder of what can be made again: games compiled for a GPU, tuned settings."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cule.disk import descriptors
from cule.disk.claims import Claim
from cule.disk.files import replacing
from cule.errors import InvalidValue

# How long a process waits for another one that makes the same file.
MOST_SECONDS = 600.0
_SECONDS_BETWEEN_LOOKS = 0.05


def nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def cache_folder() -> Path:
    """The folder: CULE_CACHE_DIR, or `cule` in the user's cache folder.

    A user without a home, or with one that cannot be written, as in a container that runs under any
    number, has one among the temporary files. Nothing is read from it that is another user's.
    """
    if named := os.environ.get("CULE_CACHE_DIR"):
        return Path(named)
    with suppress(RuntimeError):  # neither HOME nor the list of users has a home
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
        folder /= "cule"
        if folder.is_dir() or os.access(nearest(folder), os.W_OK):
            return folder
    return Path(tempfile.gettempdir()) / f"cule-{descriptors.user()}"


def make_folder(folder: Path) -> None:
    """Makes the cache, which only the user can read, and a folder in it.

    Raises:
        OSError: they cannot be made.
    """
    cache_folder().parent.mkdir(parents=True, exist_ok=True)
    cache_folder().mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)


def digest_of(key: Any) -> str:
    """The end of a file's name, by the values of a dataclass for which it is kept."""
    text = json.dumps(dataclasses.asdict(key), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def keep(path: Path, content: bytes) -> None:
    """Writes a file of the cache. It is this user's, even where there was one of another's.

    Raises:
        OSError: it cannot be written.
    """
    make_folder(path.parent)
    path.unlink(missing_ok=True)  # else one of another user's would keep its owner
    with replacing(path) as file:
        file.write(content)


@contextmanager
def making(path: Path, what: str) -> Iterator[None]:
    """In the block this process makes a file, and no other process of those that could.

    It waits for one that makes it now, but not for ever. Where there are no claims, as in a folder
    that cannot be written, several may make it.

    Args:
        path: the file.
        what: what it is, in words.
    """
    claim, deadline = None, time.monotonic() + MOST_SECONDS
    while claim is None and time.monotonic() < deadline:
        try:
            claim = Claim(path.with_suffix(".lock"), what)
        except InvalidValue:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        except OSError:
            break
    try:
        yield
    finally:
        if claim is not None:
            claim.release()
