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
        result: milliseconds of an iteration (`iteration`) and of its outer operations
            (`operations`); None before `end`, and where there was no iteration.
    """

    def __init__(self) -> None:
        self.result: dict[str, Any] | None = None

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def begin(self) -> None:
        """Begins to time; called by a listener at the begin of an iteration."""
        # Only now is it known whether the program uses a GPU.
        self._device = torch.device("cpu")
        if uses_gpu():
            self._device = torch.device("cuda", torch.cuda.current_device())
        self._light = Light(self._device, every=1)
        listen(self._light)
        self._wait()
        self._begun = perf_counter_ns()

    def end(self, iterations: int) -> None:
        """Ends timing, after so many iterations."""
        self._wait()
        passed = perf_counter_ns() - self._begun
        stop_listening(self._light)
        if iterations:
            self.result = {
                "iterations": iterations, "iteration": passed / 1e6 / iterations,
                "operations": self._light.milliseconds(),
            }  # fmt: skip
