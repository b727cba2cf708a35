"""The light mode: milliseconds of each operation, all the time, for the training log.

CUDA events at the ends of operations give the GPU's time from one to the other; without a GPU the
CPU's clock does. Only some iterations are timed, and the host never waits. Operations inside
captured graphs and inside other operations are not timed: record the program to see them.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from time import perf_counter_ns
from types import TracebackType
from typing import Any

import torch

from cule.scope.annotations import Annotation, listen, stop_listening

# Of so many iterations one is timed.
EVERY = 16


class _Clock:
    """The CPU's clock, in place of a CUDA event."""

    def __init__(self) -> None:
        self.time = 0

    def record(self) -> None:
        self.time = perf_counter_ns()

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: _Clock) -> float:
        return (end.time - self.time) / 1e6


class Light:
    """Times the operations of this thread.

    It is a context manager: it times from the begin of the block to its end.

    Args:
        device: where the operations compute.
        every: of so many iterations one is timed; the first is not.
    """

    def __init__(self, device: torch.device, every: int = EVERY):
        self._every, self._thread = every, threading.get_ident()
        self._device = device
        self._seen = 0
        self._timing = False
        self._depth = 0
        self._begin: Any = None
        self._free: list[Any] = []
        # Iterations that were timed: the events at the ends of each operation.
        self._waiting: deque[list[tuple[str, Any, Any]]] = deque()
        self._sums: dict[str, float] = defaultdict(float)
        self._timed = 0

    def __enter__(self) -> Light:
        listen(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stop_listening(self)

    def _event(self) -> Any:
        """An event to record; None while a graph is captured."""
        on_gpu = self._device.type == "cuda"
        if on_gpu and torch.cuda.is_current_stream_capturing():
            return None
        if self._free:
            return self._free.pop()
        return torch.cuda.Event(enable_timing=True) if on_gpu else _Clock()

    def _give_up(self) -> None:
        """Does not time this iteration: a graph is captured in it."""
        self._timing = False
        for _, begin, end in self._waiting.pop():
            self._free += (begin, end)

    def began(self, annotation: Annotation) -> None:
        """An annotation has begun."""
        if annotation.kind == "operation":
            if not self._timing or threading.get_ident() != self._thread:
                return
            self._depth += 1
            if self._depth == 1:
                self._begin = self._event()
                if self._begin is None:
                    self._give_up()
                else:
                    self._begin.record()
        elif annotation.kind == "iteration" and threading.get_ident() == self._thread:
            self._seen += 1
            self._timing = self._seen % self._every == 0
            if self._timing:
                self._depth = 0
                self._waiting.append([])

    def ended(self, annotation: Annotation) -> None:
        """An annotation has ended."""
        if not self._timing or threading.get_ident() != self._thread:
            return
        if annotation.kind == "iteration":
            self._timing = False
        elif annotation.kind == "operation" and self._depth:
            self._depth -= 1
            if self._depth == 0:
                end = self._event()
                if end is None:
                    self._give_up()
                    return
                end.record()
                self._waiting[-1].append((annotation.name, self._begin, end))

    def _collect(self) -> None:
        """Adds up the iterations that the GPU has done."""
        done = len(self._waiting) - self._timing
        for _ in range(done):
            iteration = self._waiting[0]
            if not all(end.query() for _, _, end in iteration):
                return
            self._waiting.popleft()
            self._timed += 1
            for name, begin, end in iteration:
                self._sums[name] += begin.elapsed_time(end)
                self._free += (begin, end)

    def milliseconds(self) -> dict[str, float]:
        """Milliseconds of each operation in an iteration, on average since the last call.

        Empty if no iteration was timed. Does not wait for the GPU.
        """
        self._collect()
        timed, sums = self._timed, dict(self._sums)
        self._timed = 0
        self._sums.clear()
        return {name: round(total / timed, 4) for name, total in sums.items()} if timed else {}
