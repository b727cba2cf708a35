"""Times iterations before they are recorded, as a reference for the recording.

Recording costs time on the CPU, which the correction takes out. It can also change how a graph
runs: its nodes are watched one by one, so that some no longer run side by side. CUDA events around
operations show how long these took before.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

import torch

from cule.scope.activities import uses_gpu
from cule.scope.annotations import listen, stop_listening
from cule.scope.light import Light

# How many iterations before the recording are timed.
ITERATIONS = 8


class Reference:
    """Times iterations, and the operations in them by CUDA events.

    Attributes:
        result: milliseconds of an iteration, on average (`iteration`) and of each (`times`), and of
            its outer operations (`operations`); None before `end`, and where there was no
            iteration.
    """

    def __init__(self) -> None:
        self.result: dict[str, Any] | None = None
        self._begins: list[int] = []

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def note(self) -> None:
        """An iteration begins, with the first of which timing begins; called by a listener."""
        if not self._begins:
            # Only now is it known whether the program uses a GPU.
            self._device = torch.device("cpu")
            if uses_gpu():
                self._device = torch.device("cuda", torch.cuda.current_device())
            self._light = Light(self._device, every=1)
            listen(self._light)
            self._wait()
        self._begins.append(perf_counter_ns())

    def end(self) -> None:
        """Ends timing, at the begin of an iteration."""
        if not self._begins:
            return
        self._wait()
        ends = [*self._begins[1:], perf_counter_ns()]
        stop_listening(self._light)
        times = [(end - begin) / 1e6 for begin, end in zip(self._begins, ends, strict=True)]
        self.result = {
            "iterations": len(times), "iteration": sum(times) / len(times), "times": times,
            "operations": self._light.milliseconds(),
        }  # fmt: skip

    def abandon(self) -> None:
        """Ends without a result, in the middle of an iteration."""
        if self._begins:
            stop_listening(self._light)
