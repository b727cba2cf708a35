"""The processes that a recorded one starts: a report has them, or names those that are missing."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from cule.scope.events import Process

# How many processes a sentence names.
NAMED = 4


class Children:
    """Notes each Python process that this one starts, from `install` to `uninstall`.

    They are those of multiprocessing (and so of torch.multiprocessing, DataLoader and
    concurrent.futures), forks, and Pythons that subprocess runs.

    Attributes:
        started: their names by their pids.
    """

    def __init__(self) -> None:
        self.started: dict[int, str] = {}
        self._replaced: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Begins to note."""
        self._after(os, "fork", self._forked)
        # After the fork that multiprocessing makes, as the process has a name then.
        self._after(BaseProcess, "start", self._began)
        self._after(subprocess.Popen, "__init__", self._ran)

    def uninstall(self) -> None:
        """Notes no more."""
        while self._replaced:
            where, name, before = self._replaced.pop()
            setattr(where, name, before)

    def begin(self) -> None:
        """The window begins: those that have ended are not of it, and older ones that live are."""
        self.started = {pid: name for pid, name in self.started.items() if _lives(pid)}
        for process in multiprocessing.active_children():
            self._began(None, process)

    def _after(self, where: Any, name: str, note: Callable[..., None]) -> None:
        function = getattr(where, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            note(result, *args, **kwargs)
            return result

        self._replaced.append((where, name, function))
        setattr(where, name, call)

    def _forked(self, pid: int) -> None:
        if pid:
            self.started[pid] = "a fork"

    def _began(self, _: Any, process: BaseProcess) -> None:
        if process.pid is not None:
            self.started[process.pid] = process.name

    def _ran(self, _: Any, process: subprocess.Popen, *__: Any, **___: Any) -> None:
        command = process.args
        first = command if isinstance(command, (str, bytes, os.PathLike)) else next(iter(command))
        program = Path(os.fsdecode(first)).name
        if program.startswith("python") or program == Path(sys.executable).name:
            self.started[process.pid] = program


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def titles(names: Sequence[str], abouts: Sequence[dict[str, Any]]) -> list[str]:
    """What processes are called in a report: those that another one started have titles.

    Args:
        names: as their files call them.
        abouts: their descriptions.
    """
    of = [about.get("title") for about in abouts]
    own = {name for name, title in zip(names, of, strict=True) if title is None}
    count = Counter(of)
    return [
        name if title is None
        # A recording's own process may have such a name, too.
        else title if count[title] == 1 and title not in own
        else f"{title}-{about.get('pid')}"
        for name, about, title in zip(names, abouts, of, strict=True)
    ]  # fmt: skip


def in_order(processes: list[Process]) -> list[Process]:
    """Each process before those that it started, which come in the order of their begins.

    Where damaged files say that processes started each other in a circle, none of them did.
    """
    below: dict[str | None, list[Process]] = {}
    for process in sorted(processes, key=lambda one: one.start, reverse=True):
        below.setdefault(process.parent, []).append(process)
    found: dict[int, Process] = {}
    waiting = below.get(None, [])
    while len(found) < len(processes):
        if not waiting:
            left = next(one for one in processes if id(one) not in found)
            left.parent, waiting = None, [left]
        process = waiting.pop()
        if id(process) not in found:
            found[id(process)] = process
            waiting += below.get(process.name, [])
    return list(found.values())


def find_parents(processes: list[Process]) -> None:
    """Says of each process which of the others started it, and which of its own are missing."""
    name_of_root = {(one.folder, one.about.get("name")): one.name for one in processes}
    recorded = {(one.about.get("host"), one.about.get("pid")): one for one in processes}
    for process in processes:
        host = process.about.get("host")
        above = recorded.get((host, process.about.get("parent")))
        process.parent = None if above is None else above.name
        if above is None and (root := process.about.get("root")) is not None:
            # What started it is not recorded, as multiprocessing's fork server.
            process.parent = name_of_root.get((process.folder, root))
        children = process.about.get("children", {}).items()
        missing = [
            f"{name} (pid {pid})" for pid, name in children if (host, int(pid)) not in recorded
        ]
        if not missing:
            continue
        named = ", ".join(missing[:NAMED])
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        process.problems.append(
            f"expected recordings of all {len(children)} processes that {process.name} started, "
            f"got none of {named}{more}: the report has nothing of them. Recorded are forks, and "
            "Pythons that start with their parent's environment; others by `with "
            "scope.record(FOLDER):` in each, with this folder"
        )
