"""Processes made by hand, for tests of what works on recordings."""

from __future__ import annotations

from collections.abc import Sequence

from cule.scope.events import Call, Mark, Process, Thread, Work

MAIN, HELPER = 1, 2


def marks(*spans: tuple[int, int, str], kind: str = "operation") -> list[Mark]:
    """Begins and ends of annotations from (start, end, name), in the order of time."""
    found = []
    for place, (start, end, name) in enumerate(spans):
        found.append(((start, 1, place), Mark(start, True, kind, name)))
        found.append(((end, 0, -place), Mark(end, False, kind, name)))
    return [mark for _, mark in sorted(found, key=lambda one: one[0])]


def process(
    end: int,
    of_main: Sequence[Mark] = (),
    calls: Sequence[Call] = (),
    work: Sequence[Work] = (),
    helper: Sequence[Call] = (),
    start: int = 0,
) -> Process:
    """A process with a main thread, and a thread of torch's."""
    made = Process("main", start, end, MAIN)
    made.threads[MAIN] = Thread(MAIN, "MainThread", list(of_main), list(calls))
    if helper:
        made.threads[HELPER] = Thread(HELPER, "", [], list(helper))
    made.work = sorted(work, key=lambda one: (one.start, one.end))
    return made


def kernel(start: int, end: int, correlation: int = 0, stream: int = 7, **more: object) -> Work:
    """A kernel."""
    return Work(start, end, "kernel", stream=stream, correlation=correlation, **more)


def launch(start: int, end: int, correlation: int, name: str = "cudaLaunchKernel") -> Call:
    """A launch."""
    return Call(start, end, "cuda_api", name, correlation)


def wait(start: int, end: int, name: str = "cudaStreamSynchronize") -> Call:
    """A wait for the GPU."""
    return Call(start, end, "cuda_api", name, waits_until=end)
