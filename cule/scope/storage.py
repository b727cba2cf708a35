"""The files of a recording: three for each process, in one folder.

NAME.process.json describes the process. It is written at the start, and again when the recording is
complete. NAME.marks.jsonl has the lists of its threads, which a thread of its own appends twice a
second while the program runs: so a program that is killed leaves its annotations.
NAME.activities.json.gz is torch.profiler's trace.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from cule.disk.claims import Claim
from cule.disk.files import append, content_of, replacing
from cule.disk.json_lines import DAMAGE, read_lines
from cule.errors import InvalidValue
from cule.scope.about import VERSION, graphs_of, parse_about
from cule.scope.children import find_parents, in_order, name_all
from cule.scope.collect import Collected, add_entry
from cule.scope.columns import joined
from cule.scope.events import Process, window_end
from cule.scope.kineto import add_trace, lost_launches

SECONDS_BETWEEN_WRITES = 0.5
_ABOUT, _MARKS, _ACTIVITIES = ".process.json", ".marks.jsonl", ".activities.json.gz"
# The share of launches without work from which the report says so.
LOST_SHARE = 0.01


def about_path(folder: Path, name: str) -> Path:
    """The file that describes a process."""
    return folder / f"{name}{_ABOUT}"


def marks_path(folder: Path, name: str) -> Path:
    """The file with the lists of a process's threads."""
    return folder / f"{name}{_MARKS}"


def activities_path(folder: Path, name: str) -> Path:
    """The file with torch.profiler's trace."""
    return folder / f"{name}{_ACTIVITIES}"


def prepare(folder: Path, name: str, overwrite: bool) -> Claim:
    """Makes the folder, claims it for this process, and deletes its recording that is there.

    Raises:
        ValueError: the folder cannot be made or another process records into it under this name, or
            it has such a recording and `overwrite` is False.
    """
    if not re.fullmatch(r"[\w.-]+", name):
        raise InvalidValue(
            f"expected a process's name of letters, digits, '.', '-' and '_', got {name!r}"
        )
    try:
        claim = Claim(folder / f"{name}.lock", f"a recording of process {name!r}")
        there = about_path(folder, name).exists()
        if there and not overwrite:
            raise InvalidValue(
                f"expected a folder without a recording of process {name!r}, got {folder}, which "
                "has one: name another folder, or overwrite it (--overwrite, overwrite=True)"
            )
        delete(folder, name)
        for other in folder.glob(f"{name}.*{_ABOUT}"):
            if _root_of(other) == name:
                stem = other.name.removesuffix(_ABOUT)
                delete(folder, stem)
                (folder / f"{stem}.lock").unlink(missing_ok=True)
    except OSError as problem:
        raise InvalidValue(
            f"expected a folder that can be written, got {folder}: {problem.strerror}"
        ) from problem
    return claim


def delete(folder: Path, name: str) -> None:
    """Deletes the recording of a process, if there is one.

    Raises:
        OSError: it cannot be deleted.
    """
    for path in (about_path, marks_path, activities_path):
        path(folder, name).unlink(missing_ok=True)


def _root_of(path: Path) -> str | None:
    """The process with which another one was recorded, by the latter's file; None: with none."""
    with suppress(InvalidValue):
        return _read_about(path).get("root")
    return None


def write_about(folder: Path, name: str, about: dict[str, Any]) -> None:
    """Writes the description of a process.

    Raises:
        OSError: it cannot be written.
    """
    with replacing(about_path(folder, name)) as file:
        file.write(json.dumps({"version": VERSION, **about}, indent=1).encode())


class Writer:
    """Appends the lists of threads to a file while the program runs.

    Attributes:
        problem: the error after which nothing is written any more; None: there was none.
    """

    def __init__(self, path: Path, collected: Collected, offset: int):
        self.path, self.collected, self.offset = path, collected, offset
        self.problem: OSError | None = None
        # Held until the end. Not an Event, whose waits a recording notes (waiting.py).
        self._going_on = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="cule.scope", daemon=True)

    def start(self) -> None:
        """Begins to write."""
        self._going_on.acquire()
        self._thread.start()

    def _run(self) -> None:
        while not self._going_on.acquire(timeout=SECONDS_BETWEEN_WRITES):
            self.write()

    def write(self) -> None:
        """Appends what is new; notes the problem if it cannot."""
        entries = self.collected.news(self.offset)
        if not entries or self.problem is not None:
            return
        try:
            append(self.path, "".join(json.dumps(entry) + "\n" for entry in entries).encode())
        except OSError as problem:
            self.problem = problem

    def stop(self) -> None:
        """Appends the rest, and ends."""
        self._going_on.release()
        self._thread.join()
        self.write()


# Reading ------------------------------------------------------------------------------------------


def names_in(folder: Path) -> list[str]:
    """The processes of a recording.

    Raises:
        ValueError: there is no recording.
    """
    names = sorted(path.name.removesuffix(_ABOUT) for path in folder.glob(f"*{_ABOUT}"))
    if not names:
        raise InvalidValue(
            f"expected a folder with a recording of cule.scope, got {folder}, which has none"
        )
    return names


def _read_about(path: Path) -> dict[str, Any]:
    try:
        return parse_about(content_of(path))
    except (OSError, *DAMAGE) as problem:
        raise InvalidValue(f"expected a recording's file, got {path}: {problem}") from problem


def _cut_off(process: Process) -> None:
    """Ends the window of a process that was killed at the last thing it noted."""
    times = [mark.time for thread in process.threads.values() for mark in thread.marks]
    process.start = process.start or min(times, default=0)
    process.end = max([process.start, *times])
    process.activities_missing = process.cut_off = True
    process.problems.append(
        f"expected a complete recording of process {process.name}, got one that was cut off after "
        f"{process.seconds:.1f} s, as when a program is killed: the report has its annotations "
        "only, so all time counts as Python's"
    )


def _read_marks(process: Process, path: Path) -> None:
    if not path.exists():
        return
    lines = read_lines(path, lambda entry: add_entry(process, entry))
    if lines.damaged:
        number, problem = lines.damaged[0]
        process.problems.append(
            f"left out {len(lines.damaged)} damaged lines of {path.name}, the first of them line "
            f"{number}: {problem}"
        )


def read_process(folder: Path, name: str) -> Process:
    """One process of a recording.

    Raises:
        ValueError: its file is damaged.
    """
    about = _read_about(about_path(folder, name))
    start, end = about.get("window") or (0, 0)
    process = Process(name, start, end, about["main"], about=about)
    process.problems += about.get("problems", [])
    process.graphs = graphs_of(about)
    if about.get("thread_before_fork") is not None:
        process.pthreads[about["thread_before_fork"]] = process.main
    _read_marks(process, marks_path(folder, name))
    complete = about.get("state") == "complete"
    if not complete:
        _cut_off(process)
    path = activities_path(folder, name)
    if complete and path.exists():
        try:
            add_trace(process, path)
        except (OSError, ValueError) as problem:
            process.problems.append(str(problem))
            process.activities_missing = True
    elif complete and "activities" in about.get("instruments", ()):
        process.activities_missing = True
    process.end = window_end(process.end, about.get("asked"), [one.end for one in process.work])
    for thread in process.threads.values():
        thread.marks.sort(key=lambda mark: mark.time)
        thread.calls = joined([thread.calls])
    lost, launches = lost_launches(process)
    if lost > LOST_SHARE * launches and not process.activities_missing and process.work:
        process.problems.append(
            f"expected GPU work for each of {launches:,} launches, got none for {lost:,}: Kineto's "
            "memory for it was full; record fewer iterations"
        )
    elif launches and not process.work:
        process.problems.append(
            f"expected GPU work for {launches:,} launches, got none: another profiler may hold "
            "CUPTI (ncu, nsys, a second torch.profiler), or the driver refuses it"
        )
    return process


def read_recording(folder: Path) -> list[Process]:
    """The processes of a recording.

    Raises:
        ValueError: there is no recording, or a file is damaged.
    """
    processes = [read_process(folder, name) for name in names_in(folder)]
    name_all(processes)
    find_parents(processes)
    return in_order(processes)
