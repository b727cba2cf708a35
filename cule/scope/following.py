"""A recording follows the processes that its program starts: its own side of that.

A process that is followed learns by an environment variable, or by its memory if it is a fork, into
which folder to record (follower.py). It records while a file is there, which is as long as the
window of the first process, the root.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cule.scope.about import VERSION
from cule.scope.startup.sitecustomize import FOLDER, VARIABLE

# How long a root waits for the processes that it follows to write their recordings.
SECONDS_TO_END = 20.0
_SECONDS_BETWEEN_LOOKS = 0.02


@dataclass(frozen=True)
class Follow:
    """What a process has to know to be recorded with the one that started it.

    Attributes:
        folder: the recording's folder, absolute.
        root: the name of the process whose window it is.
        boundaries: as of Recorder.
        packages: those after whose import a new Python is recorded, besides torch.
        instruments: as of Recorder.
    """

    folder: str
    root: str
    boundaries: tuple[str, ...]
    packages: tuple[str, ...]
    instruments: tuple[str, ...]

    @property
    def window(self) -> Path:
        """The file that is there while the root's window is open."""
        return Path(self.folder) / f"{self.root}.window"

    def as_text(self) -> str:
        """All of it, for the environment variable."""
        return json.dumps({**vars(self), "version": VERSION})

    @staticmethod
    def parse(text: str) -> Follow:
        """The inverse of `as_text`."""
        values = json.loads(text)
        return Follow(
            values["folder"], values["root"], tuple(values["boundaries"]),
            tuple(values["packages"]), tuple(values["instruments"]),
        )  # fmt: skip


class Following:
    """The root's side.

    Args:
        follow: what the others have to know.
    """

    def __init__(self, follow: Follow):
        self.follow = follow
        self._before: dict[str, str | None] = {}
        self._set: dict[str, str] = {}

    def start(self) -> None:
        """Python processes that are started from now on know of the recording."""
        paths = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._set = {VARIABLE: self.follow.as_text(), "PYTHONPATH": os.pathsep.join(paths)}
        self._before = {name: os.environ.get(name) for name in self._set}
        os.environ.update(self._set)

    def open(self) -> None:
        """The window begins.

        Raises:
            OSError: the folder cannot be written.
        """
        self.follow.window.touch()

    def close(self) -> None:
        """The window ends, and so do the recordings of the others."""
        with suppress(OSError):
            self.follow.window.unlink(missing_ok=True)
        for name, before in self._before.items():
            if os.environ.get(name) != self._set[name]:
                continue  # the program has changed it since
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before

    def wait(self) -> None:
        """Waits until the others have written their recordings, or ended, or too long."""
        deadline = time.monotonic() + SECONDS_TO_END
        while any(map(_writes, self._of_others())) and time.monotonic() < deadline:
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _of_others(self) -> list[dict[str, Any]]:
        """The descriptions of the others."""
        found = []
        for path in Path(self.follow.folder).glob(f"{self.follow.root}.*.process.json"):
            with suppress(OSError, ValueError):
                about = json.loads(path.read_bytes())
                if about.get("root") == self.follow.root:
                    found.append(about)
        return found


def _writes(about: dict[str, Any]) -> bool:
    """Whether a process of this machine that still records lives."""
    if about["state"] == "complete":
        return False
    try:
        state = Path(f"/proc/{about['pid']}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
