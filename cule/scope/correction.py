"""Takes the cost of the book-keeping out of a time line, at the points where it was spent.

RL-Scope (appendix C) subtracts each cost from the operation and level where it occurred. That is
enough where nothing runs beside the CPU. Here what came after a cost moves ahead instead: on its
thread at once; work on a GPU as far as its launch and the work before it allow; and a thread that
waits for the GPU goes on when the GPU is done. So a cost that the GPU's work covers shortens
nothing, as in truth.

Waits of threads for each other are not known, except in backward passes (lanes.py).
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from cule.scope.costs import Costs
from cule.scope.events import BOOKKEEPING, Call, Process, Work, window_end
from cule.scope.lanes import Lane


class Removed:
    """The nanoseconds that are taken out of a thread's time, up to each time.

    Args:
        times: the times of all events of the thread.
        before: (time, cost) of costs that were spent right before a time, in nanoseconds.
        after: (time, cost) of costs that were spent right after a time.
    """

    def __init__(
        self,
        times: Sequence[int],
        before: Sequence[tuple[int, float]],
        after: Sequence[tuple[int, float]],
    ):
        self.times = sorted(set(times))
        place = {time: index for index, time in enumerate(self.times)}
        wanted = [0.0] * (len(self.times) + 1)
        for time, cost in before:
            wanted[max(place[time] - 1, 0)] += cost
        for time, cost in after:
            wanted[place[time]] += cost
        self.totals = [0.0]
        left = 0.0
        for index in range(len(self.times) - 1):
            # No more than there is; what is left was spent a little later.
            length = self.times[index + 1] - self.times[index]
            left += wanted[index]
            taken = min(length, left)
            left -= taken
            self.totals.append(self.totals[-1] + taken)

    def by(self, time: int) -> float:
        """The nanoseconds that are taken out before a time."""
        index = bisect.bisect_right(self.times, time) - 1
        if index < 0:
            return 0.0
        if index + 1 < len(self.times):
            taken = self.totals[index + 1] - self.totals[index]
            return self.totals[index] + min(taken, time - self.times[index])
        return self.totals[index]


@dataclass
class Moved:
    """A thread whose time line is being moved.

    Attributes:
        removed: the costs that are taken out of it.
        times: the ends of waits that changed how far the thread moves.
        ahead: how far ahead the thread is from each of these on, without `removed`; may be
            negative.
    """

    removed: Removed
    times: list[int] = field(default_factory=lambda: [0])
    ahead: list[float] = field(default_factory=lambda: [0.0])

    def new(self, time: int) -> float:
        """The corrected time of a time."""
        index = bisect.bisect_right(self.times, time) - 1
        return time - self.removed.by(time) - self.ahead[index]

    def ends_wait(self, time: int, new: float) -> None:
        """From a time on, which moves to `new`, all moves with it."""
        self.times.append(time)
        self.ahead.append(time - self.removed.by(time) - new)


def _removed(
    calls: Sequence[Call], marks: Sequence[tuple[int, bool]], edges: tuple[int, int], costs: Costs,
    nodes: Counter[int],
) -> Removed:  # fmt: skip
    before, after, times = [], [], list(edges)
    for call in calls:
        around = costs.around(call) / 2
        before.append((call.start, around))
        after.append((call.end, around))
        after.append((call.start, costs.inside(call, nodes[call.correlation])))
        times += (call.start, call.end)
    for time, begins in marks:
        (before if begins else after).append((time, costs.annotation / 2))
        times.append(time)
    # What was spent outside the window moves nothing in it.
    start, end = edges
    return Removed(
        times,
        [(time, cost) for time, cost in before if start < time <= end],
        [(time, cost) for time, cost in after if start <= time < end],
    )


class _Gpu:
    """The work that has been moved so far, in the order of its starts."""

    def __init__(self, work: Sequence[Work], costs: Costs, nodes: Counter[int]):
        launched = [one for one in work if one.launched]
        self.latency = min((one.start - one.launched for one in launched), default=0)
        self.costs, self.nodes = costs, nodes
        self.new: dict[int, tuple[float, float]] = {}
        self._on_stream: dict[tuple[int, int], Work] = {}
        self._running: list[tuple[int, int, Work]] = []
        self._ended: Work | None = None

    def ended_by(self, time: int) -> Work | None:
        """The work that ended last by a time; times must not fall from call to call."""
        while self._running and self._running[0][0] <= time:
            _, _, work = heapq.heappop(self._running)
            if self._ended is None or work.end >= self._ended.end:
                self._ended = work
        return self._ended

    def move(self, work: Work, launch: float | None) -> None:
        """Moves work ahead as far as its launch and the work before it allow.

        Args:
            work: the next work in the order of starts.
            launch: the corrected begin of its launch; None: it is not known.
        """
        # What it may have waited for: when that was, and where that has moved to.
        limits: list[tuple[float, float]] = []
        if launch is not None:
            least = min(self.latency, work.start - work.launched)
            limits.append((work.launched + least, launch + least))
        before = self._on_stream.get((work.device, work.stream))
        if before is not None:
            limits.append((before.end, self.new[id(before)][1]))
        other = self.ended_by(work.start)
        if other is not None and all(other.end > was for was, _ in limits):
            limits.append((other.end, self.new[id(other)][1]))
        start = float(work.start)
        if limits:
            gap = work.start - max(was for was, _ in limits)
            if self.nodes[work.correlation] > 1:
                gap = max(min(gap, 0), gap - self.costs.graph_node_gpu)
            start = max(now for _, now in limits) + gap
        length = 0 if work.key.operation == BOOKKEEPING else work.end - work.start
        self.new[id(work)] = start, start + length
        self._on_stream[work.device, work.stream] = work
        heapq.heappush(self._running, (work.end, id(work), work))


def _end_wait(thread: Moved, call: Call, gpu: _Gpu) -> None:
    """Ends a thread's wait for the GPU when the work that it waited for has ended."""
    ended = gpu.ended_by(call.waits_until)
    if ended is None or ended.end <= call.start:
        return  # there was nothing to wait for
    until = call.waits_until
    begun, rest = thread.new(call.start), until - ended.end
    thread.ends_wait(until, max(begun, gpu.new[id(ended)][1]) + rest)


def _move_all(
    threads: dict[int, Moved], thread_of: dict[int, int], work: Sequence[Work],
    waits: Sequence[tuple[int, Call]], gpu: _Gpu,
) -> None:  # fmt: skip
    """Moves work and waits, in the order of time."""
    steps: list[tuple[int, int, int, Work | Call]] = []
    for one in work:
        steps.append((one.start, 1, len(steps), one))
    for number, call in waits:
        thread_of[id(call)] = number
        steps.append((call.waits_until, 0, len(steps), call))
    for _, _, _, what in sorted(steps, key=lambda step: step[:3]):
        if isinstance(what, Call):
            _end_wait(threads[thread_of[id(what)]], what, gpu)
        else:
            thread = threads.get(thread_of.get(id(what), -1))
            known = thread is not None and what.launched
            gpu.move(what, thread.new(what.launched) if thread is not None and known else None)


def _moved(process: Process, lanes: Sequence[Lane], costs: Costs) -> tuple[dict[int, Moved], _Gpu]:
    """Moves all threads, by number, and the work of the GPUs."""
    nodes = Counter(work.correlation for work in process.work if work.correlation)
    edges = (process.start, process.end)
    threads: dict[int, Moved] = {}
    thread_of: dict[int, int] = {}
    waits: list[tuple[int, Call]] = []
    for lane in lanes:
        marks = [(mark.time, mark.begins) for mark in lane.thread.marks]
        lane.thread.calls = calls = list(lane.thread.calls)
        threads[lane.thread.number] = Moved(_removed(calls, marks, edges, costs, nodes))
        waits += [(lane.thread.number, call) for call in calls if call.waits_until]
        # Torch's own threads move with the lane that they work for.
        thread_of |= {id(work): lane.thread.number for work in lane.work}
    gpu = _Gpu(process.work, costs, nodes)
    _move_all(threads, thread_of, process.work, waits, gpu)
    return threads, gpu


def _new_end(process: Process, main: Moved, gpu: _Gpu) -> int:
    """The corrected end of the window."""
    asked = process.about.get("asked")
    return window_end(
        round(main.new(process.end)), None if asked is None else round(main.new(asked)),
        [round(gpu.new[id(work)][1]) for work in process.work],
    )  # fmt: skip


def corrected_seconds(process: Process, lanes: Sequence[Lane], costs: Costs) -> float:
    """The length of a process's window without the book-keeping; nothing changes in place."""
    threads, gpu = _moved(process, lanes, costs)
    return (_new_end(process, threads[process.main], gpu) - process.start) / 1e9


def corrected_operations(process: Process, lanes: Sequence[Lane], costs: Costs) -> dict[str, float]:
    """Seconds of the main thread in each operation itself without the book-keeping.

    Nothing changes in place.
    """
    threads, _ = _moved(process, lanes, costs)
    main, owners = threads[process.main], lanes[0].owners
    found: dict[str, float] = defaultdict(float)
    for key, start, end in owners.spans(process.start, process.end):
        found[key.operation] += (main.new(end) - main.new(start)) / 1e9
    return found


def corrected(process: Process, lanes: Sequence[Lane], costs: Costs) -> None:
    """Takes the book-keeping out of a process, whose times change in place.

    Args:
        process: the process.
        lanes: what lanes.assemble() gave for it.
        costs: of the book-keeping.
    """
    threads, gpu = _moved(process, lanes, costs)
    end = _new_end(process, threads[process.main], gpu)
    for lane in lanes:
        moved = threads[lane.thread.number]
        for call in lane.thread.calls:
            call.start, call.end = round(moved.new(call.start)), round(moved.new(call.end))
            call.waits_until = round(moved.new(call.waits_until)) if call.waits_until else 0
        lane.owners.times = [round(moved.new(time)) if time else 0 for time in lane.owners.times]
        lane.owners.calls = [(round(moved.new(time)), key) for time, key in lane.owners.calls]
    for work in process.work:
        work.start, work.end = map(round, gpu.new[id(work)])
    process.end = end
    for thread in process.threads.values():
        if thread.number in threads:
            moved = threads[thread.number]
            thread.marks = [
                mark._replace(time=round(moved.new(mark.time))) for mark in thread.marks
            ]
