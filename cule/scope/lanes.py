"""Assembles a process's threads into lanes, and finds out for which operation a GPU worked.

A lane is a thread with annotations; the main lane is the thread that opened the recording. Other
threads are torch's own: their calls belong to the lane that waits for them in a backward pass, else
to the main lane.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from cule.scope.events import BACKWARD, NOBODY, UNATTRIBUTED, Call, Key, Mark, Process, Thread, Work
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
    if not process.cut_off:
        # What was open before the recording may well be open after it.
        left += [mark.name for mark in lane.owners.open_at_end if mark.time >= process.start]
    for name in dict.fromkeys(left):
        process.problems.append(
            f"expected operation {name!r} to end before what is around it and before the "
            f"recording, but it was left open on thread {lane.thread.name or lane.thread.number}; "
            "its time counts up to there"
        )


def _inside(intervals: list[tuple[int, int]], time: int) -> bool:
    place = bisect.bisect_right(intervals, (time, 2**63)) - 1
    return place >= 0 and time < intervals[place][1]


def _merge_helpers(lanes: dict[int, Lane], process: Process) -> dict[int, int]:
    """Gives calls of torch's threads to the lane that waits for them; the lane of each thread."""
    waiting = {
        number: [(call.start, call.end) for call in lane.thread.calls if call.name == BACKWARD]
        for number, lane in lanes.items()
    }
    lane_of = {number: number for number in lanes}
    for number, thread in process.threads.items():
        if number in lanes:
            continue
        lane_of[number] = process.main
        for call in thread.calls:
            for waiter, intervals in waiting.items():
                if _inside(intervals, call.start):
                    lanes[waiter].thread.calls.append(call)
                    lane_of[number] = waiter
                    break
    for lane in lanes.values():
        lane.thread.calls.sort(key=lambda call: (call.start, -call.end))
    return lane_of


def _launches(process: Process) -> dict[int, tuple[int, Call]]:
    """The thread and the call of each correlation."""
    return {
        call.correlation: (number, call)
        for number, thread in process.threads.items()
        for call in thread.calls
        if call.correlation
    }


def _replayed(process: Process) -> dict[int, int]:
    """The graph of each correlation that launched one."""
    graphs = {}
    for thread in process.threads.values():
        launches = [c for c in thread.calls if "GraphLaunch" in c.name]
        starts = [call.start for call in launches]
        for replay in thread.replays:
            begin = bisect.bisect_left(starts, replay.start)
            for call in launches[begin : bisect.bisect_right(starts, replay.end)]:
                graphs[call.correlation] = replay.graph
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
    lane_of = _merge_helpers(lanes, process)
    for work in process.work:
        number, call = launches.get(work.correlation, (process.main, None))
        lane = lanes[lane_of.get(number, process.main)]
        if call is not None:
            work.launched = call.start
            work.key = lane.owners.at(call.start)
        lane.work.append(work)
    _own_graph_work(process, _replayed(process))
    return list(lanes.values())
