"""Reads the trace of torch.profiler, which Kineto writes in Chrome's format.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. What
Kineto puts into it is in output_json.cpp and CuptiActivity.cpp of
https://github.com/pytorch/kineto/tree/main/libkineto/src.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from cule.errors import InvalidValue
from cule.scope.events import Call, Process, Work

# Kineto's categories, by what they are here.
CALL_LEVELS = {"cpu_op": "backend", "cuda_runtime": "cuda_api", "cuda_driver": "cuda_api"}
WORK_KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
# Calls that return when the GPU has done something.
WAITING = frozenset((
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy",
    "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cudaMemcpy2D",
))  # fmt: skip
COPIES = frozenset(("cudaMemcpyAsync", "cudaMemcpy2DAsync", "cuMemcpyDtoHAsync_v2"))


def read_trace(path: Path) -> dict[str, Any]:
    """The trace as JSON has it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or no trace.
    """
    try:
        content = gzip.decompress(path.read_bytes())
        trace = json.loads(content)
        if not isinstance(trace["traceEvents"], list):
            raise InvalidValue("its traceEvents are no list")
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError, LookupError, TypeError) as problem:
        raise InvalidValue(
            f"expected a trace of torch.profiler, got {path}: {problem}"
        ) from problem
    return trace


def _time(microseconds: float, base: int) -> int:
    return base + round(microseconds * 1000)


def _work(event: dict[str, Any], kind: str, base: int) -> Work:
    about = event.get("args", {})
    start = _time(event["ts"], base)
    grid: tuple[int, ...] = ()
    if kind == "kernel":
        grid = (*about.get("grid", ()), *about.get("block", ()))
    return Work(
        start, start + round(event.get("dur", 0) * 1000), event["name"], kind,
        device=int(about.get("device", 0)), stream=int(about.get("stream", 0)),
        correlation=int(about.get("correlation", 0)), grid=grid, bytes=int(about.get("bytes", 0)),
        node=int(about.get("graph node id", 0)),
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


def add_trace(process: Process, trace: dict[str, Any]) -> None:
    """Adds a trace's calls and work to a process; those outside its window are left out."""
    base = int(trace.get("baseTimeNanoseconds", 0))
    for event in trace["traceEvents"]:
        category = event.get("cat")
        if event.get("ph") != "X":
            continue
        if category in CALL_LEVELS:
            start = _time(event["ts"], base)
            call = Call(
                start, start + round(event.get("dur", 0) * 1000), CALL_LEVELS[category],
                event["name"], int(event.get("args", {}).get("correlation", 0)),
            )  # fmt: skip
            if call.end > process.start and call.start < process.end:
                process.thread(_thread(process, int(event["tid"]))).calls.append(call)
        elif category in WORK_KINDS:
            work = _work(event, WORK_KINDS[category], base)
            if work.end > process.start and work.start < process.end:
                process.work.append(work)
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
