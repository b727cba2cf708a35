"""Reads the trace of torch.profiler, which Kineto writes in Chrome's format.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. What
Kineto puts into it is in output_json.cpp and CuptiActivity.cpp of
https://github.com/pytorch/kineto/tree/main/libkineto/src.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any

from cule.disk.files import opened
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.scope.events import Call, Process, Work, check_time, span, text, whole

# Kineto's categories of events, by the level or kind that they have here.
CALL_LEVELS = {"cpu_op": "backend", "cuda_runtime": "cuda_api", "cuda_driver": "cuda_api"}
WORK_KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
# Calls that return when the GPU has done something.
WAITING = frozenset((
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy",
    "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cudaMemcpy2D",
))  # fmt: skip
# A trace packs to a 10th or 20th; what packs to less than a 50th, besides small ones, is none.
MOST_PACKED, SMALL_BYTES = 50, 1 << 24
COPIES = frozenset(("cudaMemcpyAsync", "cudaMemcpy2DAsync", "cuMemcpyDtoHAsync_v2"))


def read_trace(path: Path) -> dict[str, Any]:
    """The trace as JSON has it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or no trace.
    """
    try:
        trace = json.loads(_unpacked(path))
        if not isinstance(trace["traceEvents"], list):
            raise InvalidValue("its traceEvents are no list")
        check_time(trace.setdefault("baseTimeNanoseconds", 0))
    except (EOFError, zlib.error, gzip.BadGzipFile, *DAMAGE) as problem:
        raise InvalidValue(
            f"expected a trace of torch.profiler, got {path}: {problem}"
        ) from problem
    return trace


def _unpacked(path: Path) -> bytes:
    """The content of a packed trace.

    Raises:
        EOFError, OSError, ValueError, zlib.error: it is cut off, or is no trace.
    """
    with opened(path) as packed, gzip.open(packed) as file:
        most = SMALL_BYTES + MOST_PACKED * os.fstat(packed.fileno()).st_size
        content = file.read(most + 1)
    if len(content) > most:
        raise InvalidValue(f"unpacked it has more than {most:,} bytes")
    return content


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


def _add_event(process: Process, event: dict[str, Any], base: int) -> None:
    """Adds an event to a process, unless it is outside its window.

    Raises:
        AttributeError, LookupError, OverflowError, TypeError, ValueError: it is damaged.
    """
    category = event.get("cat")
    if event.get("ph") != "X":
        return
    if category in CALL_LEVELS:
        start = _time(event["ts"], base)
        call = Call(
            *span(start, start + round(event.get("dur", 0) * 1000)), CALL_LEVELS[category],
            text(event["name"]), whole(event.get("args", {}).get("correlation", 0)),
        )  # fmt: skip
        if call.end > process.start and call.start < process.end:
            process.thread(_thread(process, whole(event["tid"]))).calls.append(call)
    elif category in WORK_KINDS:
        work = _work(event, WORK_KINDS[category], base)
        if work.end > process.start and work.start < process.end:
            process.work.append(work)


def add_trace(process: Process, trace: dict[str, Any]) -> None:
    """Adds a trace's calls and work to a process; those outside its window are left out."""
    damaged: list[Exception] = []
    for event in trace["traceEvents"]:
        try:
            _add_event(process, event, trace["baseTimeNanoseconds"])
        except DAMAGE as problem:
            damaged.append(problem)
    if damaged:
        process.problems.append(
            f"left out {len(damaged)} damaged events of torch.profiler's trace, the first of them: "
            f"{damaged[0]}"
        )
    process.work.sort(key=lambda work: (work.start, work.end))
    for thread in process.threads.values():
        thread.calls.sort(key=lambda call: (call.start, -call.end))
    _find_waits(process)


def _find_waits(process: Process) -> None:
    """Notes which calls wait for the GPU, and until when."""
    ends = {work.correlation: work.end for work in process.work if work.correlation}
    for thread in process.threads.values():
        for call in thread.calls:
            if call.level != "cuda_api":
                continue
            if call.name in WAITING:
                call.waits_until = call.end
            elif call.name in COPIES and call.start < ends.get(call.correlation, 0) <= call.end:
                # A copy from or to memory that is not pinned returns when it is done.
                call.waits_until = ends[call.correlation]


def lost_launches(process: Process) -> tuple[int, int]:
    """How many launches have no work, and how many there are.

    Kineto keeps 128 MB of the GPU's activities and drops what comes after them.
    """
    known = {work.correlation for work in process.work}
    launches = [
        call
        for thread in process.threads.values()
        for call in thread.calls
        if call.level == "cuda_api" and "Launch" in call.name and call.end < process.end
    ]
    return sum(call.correlation not in known for call in launches), len(launches)
