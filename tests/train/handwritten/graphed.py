"""CUDA graphs of functions that take and return nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch

# How often a function is called before it is captured: libraries choose kernels and allocate memory
# in these calls.
CALLS_BEFORE_CAPTURE = 3


class Graphed:
    """A function captured as a CUDA graph after some calls, and replayed from then on.

    Args:
        function: works on the current CUDA stream, on tensors that stay where they are, and does
            not wait.
    """

    def __init__(self, function: Callable[[], None]):
        self.function = function
        self.calls, self.graph = 0, None

    def __call__(self) -> None:
        """Does what the function does."""
        self.calls += 1
        if self.graph is None and self.calls <= CALLS_BEFORE_CAPTURE:
            self.function()
            return
        if self.graph is None:
            graph = torch.cuda.CUDAGraph()
            # Each graph is captured on a stream of its own: cuBLAS's workspace belongs to that
            # stream, and is freed with the first graph that was captured on it
            # (https://github.com/pytorch/pytorch/issues/193402). "thread_local" lets other threads
            # use CUDA during the capture.
            with torch.cuda.graph(
                graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"
            ):
                self.function()
            self.graph = graph
        self.graph.replay()
