"""Assembles a process's threads into lanes, and finds out for which operation a GPU worked.

A lane is a thread with annotations; the main lane is the thread that opened the recording. Other
threads are torch's own: their calls belong to the lane that waits for them in a backward pass, else
to the main lane.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cule.scope.columns import Calls, joined
from cule.scope.events import (
    BACKWARD,
    LEVELS,
    NOBODY,
    UNATTRIBUTED,
    Key,
    Mark,
    Process,
    Thread,
    Work,
)
from cule.scope.nodes import in_words, operations_of


class Owners:
    """The owners of a thread's time: the innermost operation and phase at each time.

    Args:
        marks: the thread's begins and ends of annotations, in the order of time.
        end: the window's end, where open annotations are closed.

    Attributes:
        times: the times at which the owner changes.
        keys: the owner from each of these times on.
        left_open: names of operations that were still open when one around them ended.
        open_at_end: the annotations that are open at the window's end.
    """

    def __init__(self, marks: Sequence[Mark], end: int):
        self.times: list[int] = [0]
        self.keys: list[Key] = [NOBODY]
        self.left_open: list[str] = []
        self.calls: list[tuple[int, Key]] = []
        opened: list[Mark] = []
        for mark in marks:
            if mark.time > end:
                break
            if mark.kind == "iteration":
                continue
            if mark.begins:
                opened.append(mark)
            else:
                self._close(opened, mark)
            key = self._innermost(opened)
            self.times.append(mark.time)
            self.keys.append(key)
            if mark.begins and mark.kind == "operation":
                self.calls.append((mark.time, key))
        self.open_at_end = [mark for mark in opened if mark.kind == "operation"]

    def _close(self, opened: list[Mark], mark: Mark) -> None:
        for place in range(len(opened) - 1, -1, -1):
            if (opened[place].kind, opened[place].name) == (mark.kind, mark.name):
                inside = opened[place + 1 :]
                self.left_open += [other.name for other in inside if other.kind == "operation"]
                # A phase may end before an operation in it does, and the other way round.
                opened[place:] = [other for other in inside if other.kind != mark.kind]
                return

    @staticmethod
    def _innermost(opened: list[Mark]) -> Key:
        names = {"phase": "", "operation": UNATTRIBUTED}
        for mark in opened:
            names[mark.kind] = mark.name
        return Key(names["phase"], names["operation"])

    def at(self, time: int) -> Key:
        """The owner at a time."""
        return self.keys[bisect.bisect_right(self.times, time) - 1]

    def spans(self, start: int, end: int) -> Iterator[tuple[Key, int, int]]:
        """The owners of a window's time, one after the other: owner, begin and end."""
        for key, begun, ended in zip(self.keys, self.times, [*self.times[1:], end], strict=True):
            if max(begun, start) < min(ended, end):
                yield key, max(begun, start), min(ended, end)


@dataclass
class Lane:
    """A thread with annotations, and the work of torch's threads and GPUs for it.

    Attributes:
        name: the process's name; with the thread's, if it is not the main lane.
        thread: the thread, with the calls of torch's threads that it waited for.
        owners: the owner of its time at each time.
        work: the work of GPUs that it launched, in the order of starts.
    """

    name: str
    thread: Thread
    owners: Owners
    work: list[Work] = field(default_factory=list)


def _say_what_was_left_open(process: Process, lane: Lane) -> None:
    left = list(lane.owners.left_open)
    # The window of a process that was started is another one's, and may end in the middle.
    followed = process.about.get("root") is not None
    if not (process.cut_off or process.goes_on or followed):
        # What was open before the recording may well be open after it.
        left += [mark.name for mark in lane.owners.open_at_end if mark.time >= process.start]
    for name in dict.fromkeys(left):
        process.problems.append(
            f"expected operation {name!r} to end before what is around it and before the "
            f"recording, but it was left open on thread {lane.thread.name or lane.thread.number}; "
            "its time counts up to there"
        )


def _inside(begins: np.ndarray, ends: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Whether each time is in the last of some intervals that begins before it."""
    place = np.searchsorted(begins, times, side="right") - 1
    return (place >= 0) & (times < ends[place]) if len(begins) else np.zeros(len(times), bool)


# By the number of a lane: begins and ends of its waits for backward passes.
Waits = dict[int, tuple[np.ndarray, np.ndarray]]


def _backward_waits(lanes: dict[int, Lane]) -> Waits:
    """When each lane waits for a backward pass: begins and ends."""
    waits = {}
    for number, lane in lanes.items():
        calls = Calls.of(lane.thread.calls)
        backward = calls.named(BACKWARD.__eq__)
        waits[number] = calls.start[backward], calls.end[backward]
    return waits


def _own_allocations(lanes: dict[int, Lane], process: Process, waits: Waits) -> None:
    """Gives allocations their owners; those of torch's threads have that of who waits for them."""
    others = [one for one in process.allocations if one.thread not in lanes]
    times = np.array([one.time for one in others], np.int64)
    lane_of = np.full(len(others), process.main)
    for number, (begins, ends) in waits.items():
        lane_of[_inside(begins, ends, times)] = number
    for one, number in zip(others, lane_of.tolist(), strict=True):
        one.key = lanes[number].owners.at(one.time)
    for one in process.allocations:
        if one.thread in lanes:
            one.key = lanes[one.thread].owners.at(one.time)


def _merge_helpers(lanes: dict[int, Lane], process: Process, waits: Waits) -> dict[int, int]:
    """Gives calls of torch's threads to the lane that waits for them; the lane of each thread.

    A wait is none of theirs: it is of one of Python's threads, such as tqdm's.
    """
    lane_of = {number: number for number in lanes}
    given: dict[int, list[Calls]] = {number: [] for number in lanes}
    for number, thread in process.threads.items():
        if number in lanes:
            continue
        lane_of[number], calls, last = process.main, Calls.of(thread.calls), -1
        left = calls.level != LEVELS.index("waiting")
        for waiter, (begins, ends) in waits.items():
            own = np.flatnonzero(left & _inside(begins, ends, calls.start))
            if len(own):
                given[waiter].append(calls.take(own))
                left[own] = False
                if own[-1] > last:
                    lane_of[number], last = waiter, int(own[-1])
    for number, lane in lanes.items():
        lane.thread.calls = joined([lane.thread.calls, *given[number]])
    return lane_of


def _launches(process: Process) -> dict[int, tuple[int, int]]:
    """The thread and the begin of the call of each correlation that the GPU's work has."""
    if not process.work:
        return {}
    wanted = np.array([work.correlation for work in process.work], np.int64)
    found: dict[int, tuple[int, int]] = {}
    for number, thread in process.threads.items():
        calls = Calls.of(thread.calls)
        some = (calls.correlation != 0) & np.isin(calls.correlation, wanted)
        for one, start in zip(
            calls.correlation[some].tolist(), calls.start[some].tolist(), strict=True
        ):
            found[one] = number, start
    return found


def _replayed(process: Process) -> dict[int, int]:
    """The graph of each correlation that launched one."""
    graphs = {}
    for thread in process.threads.values():
        if not thread.replays:
            continue
        calls = Calls.of(thread.calls)
        launches = calls.take(calls.named(lambda name: "GraphLaunch" in name))
        for replay in thread.replays:
            begin = np.searchsorted(launches.start, replay.start, side="left")
            end = np.searchsorted(launches.start, replay.end, side="right")
            for correlation in launches.correlation[begin:end].tolist():
                graphs[correlation] = replay.graph
    return graphs


def _own_graph_work(process: Process, graphs: dict[int, int]) -> None:
    """Gives each replay's work the operations of its nodes."""
    by_launch: dict[int, list[Work]] = {}
    for work in process.work:
        if work.correlation in graphs:
            by_launch.setdefault(work.correlation, []).append(work)
    strange: dict[int, str] = {}
    guessed = total = 0
    for correlation, works in by_launch.items():
        graph = graphs[correlation]
        if graph not in process.graphs:
            continue
        nodes = process.graphs[graph]
        owned = operations_of(works, nodes)
        if owned is None:
            strange[graph] = f"{in_words(nodes)} captured, {in_words(works)} executed"
            continue
        total, guessed = total + len(works), guessed + owned.guessed
        for work, operation in zip(works, owned.operations, strict=True):
            if operation is not None:
                work.key = Key(work.key.phase, operation)
    if strange:
        process.problems.append(
            f"expected the work of {len(strange)} CUDA graphs to be what was captured, got other "
            f"work ({next(iter(strange.values()))}): it belongs to the operations that replayed "
            "the graphs"
        )
    if guessed:
        process.problems.append(
            f"expected all work in CUDA graphs to be what was captured, got {guessed:,} of "
            f"{total:,} that no node is like: they belong to the operation of what came before "
            "them on their streams"
        )


def assemble(process: Process) -> list[Lane]:
    """The lanes of a process, the main one first; gives each work its key and its lane.

    Allocations get their keys, too.

    Appends to `process.problems` what was left open, and graphs that cannot be matched.
    """
    numbers = [process.main] + [
        number
        for number, thread in process.threads.items()
        if thread.marks and number != process.main
    ]
    lanes = {}
    names = Counter(process.thread(number).name for number in numbers if number != process.main)
    for number in numbers:
        thread = process.thread(number)
        own = thread.name or str(number)
        if thread.name and names[thread.name] > 1:
            own = f"{thread.name}-{number}"  # which have rows of their own, too
        name = process.name if number == process.main else f"{process.name}:{own}"
        lanes[number] = Lane(name, thread, Owners(thread.marks, process.end))
        _say_what_was_left_open(process, lanes[number])
    launches = _launches(process)
    waits = _backward_waits(lanes)
    _own_allocations(lanes, process, waits)
    lane_of = _merge_helpers(lanes, process, waits)
    for work in process.work:
        number, launched = launches.get(work.correlation, (process.main, None))
        lane = lanes[lane_of.get(number, process.main)]
        if launched is not None:
            work.launched = launched
            work.key = lane.owners.at(launched)
        lane.work.append(work)
    _own_graph_work(process, _replayed(process))
    return list(lanes.values())
