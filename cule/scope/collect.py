"""The lists that threads append to during a recording: annotations, calls, replays of graphs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import perf_counter_ns, time_ns
from typing import Any

from cule.scope.annotations import Annotation, open_annotations
from cule.scope.events import (
    KINDS,
    LEVELS,
    Call,
    Mark,
    Process,
    Replay,
    check_time,
    span,
    text,
    whole,
)

# Pairs of readings from which the clock's offset is found: the pair that was read fastest counts.
READINGS = 50


def clock_offset() -> int:
    """The offset of `perf_counter_ns()` from nanoseconds since the Unix epoch."""
    best, offset = 2**63, 0
    for _ in range(READINGS):
        before = perf_counter_ns()
        now = time_ns()
        after = perf_counter_ns()
        if after - before < best:
            best, offset = after - before, now - (before + after) // 2
    return offset


@dataclass(eq=False)
class ThreadLists:
    """The lists of a thread. Times are those of `perf_counter_ns`.

    Attributes:
        number: the operating system's id of the thread.
        thread: the thread.
        marks: begins and ends of annotations: time, whether it is a begin, kind, name.
        calls: calls into libraries: start, end, level, name.
        replays: replays of graphs: start, end, number of the graph.
        waits: calls that wait for a process or thread and have not returned: start, name.
    """

    number: int
    thread: threading.Thread
    marks: list[tuple[int, bool, str, str]] = field(default_factory=list)
    calls: list[tuple[int, int, str, str]] = field(default_factory=list)
    replays: list[tuple[int, int, int]] = field(default_factory=list)
    waits: list[tuple[int, str]] = field(default_factory=list)


class Collected:
    """The lists of all threads, and a listener that appends annotations to them."""

    def __init__(self) -> None:
        # Numbers of threads, by their identities, which Python does not know right after a fork.
        self.numbers: dict[int | None, int] = {}
        self._lists: list[ThreadLists] = []
        # Of each thread: the system gives a new thread the identity of one that has ended.
        self._local = threading.local()

    def _add(self, number: int, thread: threading.Thread) -> ThreadLists:
        lists = ThreadLists(number, thread)
        self._lists.append(lists)
        return lists

    def here(self) -> ThreadLists:
        """The lists of this thread."""
        lists: ThreadLists | None = getattr(self._local, "lists", None)
        if lists is None:
            lists = self._add(threading.get_native_id(), threading.current_thread())
            self._local.lists = lists
        return lists

    def note_open(self, but: Annotation | None = None) -> None:
        """Notes the annotations that are open already, on all threads.

        Args:
            but: one that begins now and is noted by itself.
        """
        now = perf_counter_ns()
        for number, (thread, opened) in open_annotations().items():
            native = self.numbers.get(number, thread.native_id)
            if opened and native is not None:
                # Its lists in `here` are others, of the same number.
                lists = self._add(native, thread)
                lists.marks += [(now, True, one.kind, one.name) for one in opened if one is not but]

    def note_waits(self) -> None:
        """Notes the waits that have not ended, on all threads, as if they ended now."""
        now = perf_counter_ns()
        for lists in list(self._lists):
            lists.calls += [(begun, now, "waiting", name) for begun, name in lists.waits]

    def began(self, annotation: Annotation) -> None:
        """Appends a begin; takes the time last, so that this call counts to what is around it."""
        marks = self.here().marks
        marks.append((perf_counter_ns(), True, annotation.kind, annotation.name))

    def ended(self, annotation: Annotation) -> None:
        """Appends an end; takes the time first, for the same reason."""
        now = perf_counter_ns()
        self.here().marks.append((now, False, annotation.kind, annotation.name))

    def news(self, offset: int) -> list[dict[str, Any]]:
        """The entries since the last call, as JSON has them; other threads may go on appending.

        Nothing of them is kept.

        Args:
            offset: the result of clock_offset(), which is added to all times.
        """
        entries = []
        for lists in list(self._lists):
            ended = not lists.thread.is_alive()
            entry: dict[str, Any] = {
                "thread": lists.number, "pthread": lists.thread.ident, "name": lists.thread.name,
            }  # fmt: skip
            for name, times in (("marks", 1), ("calls", 2), ("replays", 2)):
                fresh = getattr(lists, name)[:]
                # Nothing else takes from the front, and others append at the end.
                del getattr(lists, name)[: len(fresh)]
                entry[name] = [
                    [*(time + offset for time in one[:times]), *one[times:]] for one in fresh
                ]
            if entry["marks"] or entry["calls"] or entry["replays"]:
                entries.append(entry)
            elif ended:
                self._lists.remove(lists)
        return entries


def add_entry(process: Process, entry: dict[str, Any]) -> None:
    """Adds what `news` gave to a process.

    Raises:
        LookupError, OverflowError, TypeError, ValueError: it is damaged.
    """
    marks = [
        Mark(check_time(time), bool(begins), text(kind, KINDS), text(name))
        for time, begins, kind, name in entry["marks"]
    ]
    calls = [
        Call(*span(start, end), text(level, LEVELS), text(name))
        for start, end, level, name in entry["calls"]
    ]
    replays = [Replay(*span(start, end), whole(graph)) for start, end, graph in entry["replays"]]
    number, pthread, name = whole(entry["thread"]), whole(entry["pthread"]), text(entry["name"])
    process.pthreads[pthread & 0xFFFF_FFFF] = number
    thread = process.thread(number)
    thread.name = name
    thread.marks += marks
    assert isinstance(thread.calls, list), "a trace comes after the threads' own lists"
    thread.calls += calls
    thread.replays += replays
