"""The files of a recording: three for each process, in one folder, and two for each further part.

NAME.process.json describes the process. It is written at the start, and again when the recording is
complete. NAME.marks.jsonl has the lists of its threads, which a thread of its own appends twice a
second while the program runs: so a program that is killed leaves its annotations.
NAME.activities.json.gz is torch.profiler's trace. The second part's are NAME.part1.marks.jsonl and
NAME.part1.activities.json.gz (parts.py).
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cule.disk.claims import Claim
from cule.disk.files import append, content_of, replacing
from cule.disk.json_lines import DAMAGE, read_lines
from cule.errors import InvalidValue
from cule.scope.about import VERSION, graphs_of, parse_about
from cule.scope.children import titles
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


def marks_path(folder: Path, name: str, part: int = 0) -> Path:
    """The file with the lists of a process's threads, of a part."""
    return folder / f"{name}{_of_part(part)}{_MARKS}"


def activities_path(folder: Path, name: str, part: int = 0) -> Path:
    """The file with torch.profiler's trace, of a part."""
    return folder / f"{name}{_of_part(part)}{_ACTIVITIES}"


def _of_part(number: int) -> str:
    return f".part{number}" if number else ""


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
    for kind in (_MARKS, _ACTIVITIES):
        for path_of_part in folder.glob(f"{name}.part*{kind}"):
            path_of_part.unlink(missing_ok=True)


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

    Args:
        path: the file.
        collected: the lists.
        offset: of their times, as of Collected.news.
        on_round: called each time after something may have been written, by a thread of its own.

    Attributes:
        problem: the error after which nothing is written any more; None: there was none.
    """

    def __init__(self, path: Path, collected: Collected, offset: int, on_round: Callable[[], None]):
        self.path, self.collected, self.offset = path, collected, offset
        self.problem: OSError | None = None
        self._on_round, self._writing = on_round, threading.Lock()
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
            self._on_round()

    def write(self, next_path: Path | None = None) -> None:
        """Appends what is new; notes the problem if it cannot.

        Args:
            next_path: the file to which what comes later is appended; None: the same.
        """
        with self._writing:
            entries = self.collected.news(self.offset)
            path, self.path = self.path, next_path or self.path
            if not entries or self.problem is not None:
                return
            try:
                append(path, "".join(json.dumps(entry) + "\n" for entry in entries).encode())
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


def _cut_off(process: Process, part: Part) -> None:
    """Ends the window of a process that was killed at the last thing it noted."""
    times = [mark.time for thread in process.threads.values() for mark in thread.marks]
    process.start = min(times, default=part.after)
    process.end = max([process.start, *times])
    process.activities_missing = process.cut_off = True
    seconds = process.seconds + part.seconds_before
    what = f"of its last {process.seconds:.1f} s annotations" if part.number else "annotations"
    process.problems.append(
        f"expected a complete recording of process {process.name}, got one that was cut off after "
        f"{seconds:.1f} s, as when a program is killed: the report has {what} only, so that "
        "their time counts as Python's"
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


@dataclass(frozen=True)
class Part:
    """A part of a process's recording; recordings that are not long have one.

    Attributes:
        folder: the recording's folder.
        name: the process, as files call it.
        about: its description.
        called: the process, as the report calls it.
        number: the part's place.
        window: its begin and its end; None where the program was killed before the end.
        asked: when the wait for the GPU began at its end; None: it is not known.
        is_last: there is no part after it.
        seconds_before: how long the parts before it are together.
        after: the end of the part before it; 0: there is none.
    """

    folder: Path
    name: str
    about: dict[str, Any]
    called: str
    number: int
    window: tuple[int, int] | None
    asked: int | None
    is_last: bool
    seconds_before: float
    after: int

    def read(self) -> Process:
        """Its events; its problems are sentences."""
        return _read_part(self)


def _parts_of(folder: Path, name: str, about: dict[str, Any], called: str) -> list[Part]:
    """The parts of a process's recording."""
    complete, window = about.get("state") == "complete", about.get("window")
    windows = [((start, end), asked) for start, end, asked in about.get("parts") or []]
    found: list[tuple[tuple[int, int] | None, int | None]] = list(windows)
    if not found and complete:
        found = [(window or (0, 0), about.get("asked"))]
    if not complete:
        found.append((None, None))
    before, ends = [0.0], [0]
    for (start, end), _ in windows:
        before.append(before[-1] + (end - start) / 1e9)
        ends.append(end)
    return [
        Part(folder, name, about, called, number, edges, asked, number == len(found) - 1,
             before[number], ends[number])
        for number, (edges, asked) in enumerate(found)
    ]  # fmt: skip


def parts_in(folder: Path) -> list[list[Part]]:
    """The parts of each process's recording.

    Raises:
        ValueError: there is no recording, or a process's file is damaged.
    """
    names = names_in(folder)
    abouts = [_read_about(about_path(folder, name)) for name in names]
    called = titles(names, abouts)
    return [
        _parts_of(folder, *of_process) for of_process in zip(names, abouts, called, strict=True)
    ]


def parts_of(folders: Sequence[Path]) -> list[list[Part]]:
    """The parts of each process of several recordings, as of one.

    Processes that are called alike are told apart by their machines, or where that does not do by
    the places of their folders, counted from 1.

    Raises:
        ValueError: as parts_in.
    """
    processes = [
        (parts, parts[0].called, parts[0].about.get("host"), place)
        for place, folder in enumerate(folders, 1)
        for parts in parts_in(folder)
    ]
    called = Counter(name for _, name, _, _ in processes)
    on_host = Counter((name, host) for _, name, host, _ in processes)
    found = []
    for parts, own, host, place in processes:
        where = host if host and on_host[own, host] == 1 else str(place)
        name = own if called[own] == 1 else f"{own}@{where}"
        found.append([replace(part, called=name) for part in parts])
    return found


def _read_part(part: Part) -> Process:
    about, name = part.about, part.name
    start, end = part.window or (0, 0)
    process = Process(part.called, start, end, about["main"], about=about, folder=part.folder)
    process.goes_on = not part.is_last
    if not part.number:
        process.problems += about.get("problems", [])
    process.graphs = graphs_of(about)
    if about.get("thread_before_fork") is not None:
        process.pthreads[about["thread_before_fork"]] = process.main
    _read_marks(process, marks_path(part.folder, name, part.number))
    if part.window is None:
        _cut_off(process, part)
    path = activities_path(part.folder, name, part.number)
    if part.window is not None and path.exists():
        try:
            add_trace(process, path)
        except (OSError, ValueError) as problem:
            process.problems.append(str(problem))
            process.activities_missing = True
    elif part.window is not None and "activities" in about.get("instruments", ()):
        process.activities_missing = True
    process.end = window_end(process.end, part.asked, [one.end for one in process.work])
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


def read_process(folder: Path, name: str) -> Process:
    """A process whose recording has one part.

    Raises:
        ValueError: its file is damaged.
    """
    [part] = _parts_of(folder, name, _read_about(about_path(folder, name)), name)
    return part.read()
