"""What the events of torch.profiler's trace mean, which Kineto writes in Chrome's format.

What it puts into them is in output_json.cpp and CuptiActivity.cpp of
https://github.com/pytorch/kineto/tree/main/libkineto/src.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidType, InvalidValue
from cule.scope.columns import Calls, joined
from cule.scope.events import (
    LEVELS,
    Allocation,
    Process,
    Work,
    check_time,
    span,
    text,
    whole,
)
from cule.scope.trace import Operators, read_operators

# Kineto's categories of events, by the level or kind that they have here.
CALL_LEVELS = {"cpu_op": "backend", "cuda_runtime": "cuda_api", "cuda_driver": "cuda_api"}
MEMORY = "[memory]"
WORK_KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
# Calls that return when the GPU has done something.
WAITING = frozenset((
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy",
    "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cudaMemcpy2D",
))  # fmt: skip
_NUMBERS, _MOST_CORRELATION = (int, float), 1 << 63
_OPERATOR = LEVELS.index(CALL_LEVELS["cpu_op"])
COPIES = frozenset(("cudaMemcpyAsync", "cudaMemcpy2DAsync", "cuMemcpyDtoHAsync_v2"))


def _time(microseconds: float, base: int) -> int:
    return check_time(base + round(microseconds * 1000))


def _work(event: dict[str, Any], kind: str, base: int) -> Work:
    about = event.get("args", {})
    start = _time(event["ts"], base)
    grid: tuple[int, ...] = ()
    if kind == "kernel":
        grid = tuple(map(whole, (*about.get("grid", ()), *about.get("block", ()))))
    device, stream, correlation, size, node = (
        whole(about.get(name, 0))
        for name in ("device", "stream", "correlation", "bytes", "graph node id")
    )
    return Work(
        *span(start, start + round(event.get("dur", 0) * 1000)), text(event["name"]), kind,
        device=device, stream=stream, correlation=correlation, grid=grid, bytes=size, node=node,
    )  # fmt: skip


def _allocation(event: dict[str, Any], process: Process, base: int) -> Allocation:
    about = event["args"]
    on_host = whole(about["Device Type"]) == 0
    device, address, size, total = (
        whole(about[name]) for name in ("Device Id", "Addr", "Bytes", "Total Allocated")
    )
    thread = _thread(process, whole(event["tid"]))
    return Allocation(
        _time(event["ts"], base), thread, -1 if on_host else device, address, size, total
    )


def _thread(process: Process, number: int) -> int:
    """The operating system's number of a thread that Kineto names.

    Until the thread calls an operator, Kineto has the low 32 bits of its pthread_t, as a signed
    number of which it writes the size (`sanitizeTid` in output_json.cpp).
    """
    if number in process.threads:
        return number
    for signed in (number, -number):
        if (found := process.pthreads.get(signed & 0xFFFF_FFFF)) is not None:
            return found
    return number


class _Numbers(dict[Any, int]):
    """The number of each different value, in the order in which they came; they are checked."""

    def __init__(self, check: Callable[[Any], object]):
        super().__init__()
        self._check = check

    def __missing__(self, value: Any) -> int:
        self._check(value)
        self[value] = number = len(self)
        return number


class _CallRows:
    """The calls of a trace, until they are columns of threads."""

    def __init__(self) -> None:
        self.names, self.threads = _Numbers(text), _Numbers(whole)
        self._levels = {cat: LEVELS.index(level) for cat, level in CALL_LEVELS.items()}
        # Begins and lengths in microseconds, levels, names, threads, correlations.
        self.columns: tuple[list[Any], ...] = ([], [], [], [], [], [])

    def add(self, event: dict[str, Any], category: str) -> None:
        """Adds a call.

        Raises:
            AttributeError, LookupError, TypeError, ValueError: it is damaged.
        """
        begin, length, about = event["ts"], event.get("dur", 0), event.get("args")
        if about is None or category == "cpu_op":
            about = {}
        correlation = about.get("correlation", 0)
        if not (type(begin) in _NUMBERS and type(length) in _NUMBERS):
            raise InvalidType(f"{repr((begin, length))[:40]} are no times")
        if type(correlation) is not int or abs(correlation) >= _MOST_CORRELATION:
            raise InvalidValue(f"{repr(correlation)[:40]} is no correlation")
        name, thread = self.names[event["name"]], self.threads[event["tid"]]
        values = begin, length, self._levels[category], name, thread, correlation
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)

    def add_to(self, process: Process, base: int, operators: Operators) -> list[Exception]:
        """Gives threads their calls within the process's window; returns what is damaged.

        Args:
            process: the process.
            base: the nanoseconds that the trace leaves out of times.
            operators: more calls.
        """
        names = [self.names[name] for name in operators.names]
        threads, of_thread = np.unique(operators.threads, return_inverse=True)
        numbers = [self.threads[thread] for thread in threads.tolist()]
        count = len(operators.begins)
        more = (
            operators.begins, operators.lengths, np.full(count, _OPERATOR),
            np.array(names, np.int64)[operators.name], np.array(numbers, np.int64)[of_thread],
            np.zeros(count),
        )  # fmt: skip
        kinds = (np.float64, np.float64, np.int8, np.int32, np.int64, np.int64)
        begin, length, level, name, thread, correlation = (
            np.concatenate([np.array(column, kind), others.astype(kind)])
            for column, others, kind in zip(self.columns, more, kinds, strict=True)
        )
        start, lasts = np.rint(begin * 1000.0), np.rint(length * 1000.0)
        good = (start >= -base) & (lasts >= 0) & (start + lasts < 2.0**62)  # also no NaN
        damaged = [_error_of(begin[row], length[row], base) for row in np.flatnonzero(~good)]
        starts = np.where(good, start, 0).astype(np.int64) + base
        ends = starts + np.where(good, lasts, 0).astype(np.int64)
        within = good & (ends > process.start) & (starts < process.end)
        calls = Calls(
            starts, ends, level, name, correlation, np.zeros_like(starts), list(self.names)
        )
        for place, number in enumerate(map(whole, self.threads)):
            own = calls.take(within & (thread == place))
            if len(own):
                its = process.thread(_thread(process, number))
                its.calls = joined([its.calls, own])
        return damaged


def _error_of(begin: Any, length: Any, base: int) -> Exception:
    """Why an event's times are none."""
    try:
        start = _time(float(begin), base)
        span(start, start + round(float(length) * 1000))
    except DAMAGE as problem:
        return problem
    return InvalidValue(f"{begin} is no time")


def add_trace(process: Process, path: Path) -> None:
    """Adds a trace's calls, work and allocations to a process.

    Calls and work outside its window are left out.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or no trace.
    """
    trace, operators = read_operators(path)
    base, calls, damaged = trace["baseTimeNanoseconds"], _CallRows(), list[Exception]()
    shared: dict[Any, Any] = {}
    for event in trace["traceEvents"]:
        try:
            if event.get("ph") == "i" and event.get("name") == MEMORY:
                process.allocations.append(_allocation(event, process, base))
            if event.get("ph") != "X":
                continue
            category = event.get("cat")
            if category in CALL_LEVELS:
                calls.add(event, category)
            elif category in WORK_KINDS:
                work = _work(event, WORK_KINDS[category], base)
                if work.end > process.start and work.start < process.end:
                    # Kernels have few names and grids, of which each is one object.
                    work.name = shared.setdefault(work.name, work.name)
                    work.grid = shared.setdefault(work.grid, work.grid)
                    process.work.append(work)
        except DAMAGE as problem:
            damaged.append(problem)
    damaged += calls.add_to(process, base, operators)
    if damaged:
        process.problems.append(
            f"left out {len(damaged)} damaged events of torch.profiler's trace, the first of them: "
            f"{damaged[0]}"
        )
    process.work.sort(key=lambda work: (work.start, work.end))
    process.allocations.sort(key=lambda one: one.time)
    _find_waits(process)


def _find_waits(process: Process) -> None:
    """Notes which calls wait for the GPU, and until when."""
    ended = {work.correlation: work.end for work in process.work if work.correlation}
    for thread in process.threads.values():
        thread.calls = calls = Calls.of(thread.calls)
        on_api = calls.on("cuda_api")
        waiting = on_api & calls.named(WAITING.__contains__)
        calls.waits_until[waiting] = calls.end[waiting]
        # A copy from or to memory that is not pinned returns when it is done.
        for place in np.flatnonzero(on_api & calls.named(COPIES.__contains__)):
            end = ended.get(int(calls.correlation[place]), 0)
            if calls.start[place] < end <= calls.end[place]:
                calls.waits_until[place] = end


def lost_launches(process: Process) -> tuple[int, int]:
    """How many launches have no work, and how many there are.

    Kineto keeps 128 MB of the GPU's activities and drops what comes after them.
    """
    known = np.array([work.correlation for work in process.work], np.int64)
    lost = launched = 0
    for thread in process.threads.values():
        calls = Calls.of(thread.calls)
        launches = calls.on("cuda_api") & calls.named(lambda name: "Launch" in name)
        launches &= calls.end < process.end
        launched += int(launches.sum())
        lost += int((~np.isin(calls.correlation[launches], known)).sum())
    return lost, launched
