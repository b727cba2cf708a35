"""CUDA graphs of functions that take and return nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch

# Calls before a function is captured, in which libraries choose kernels and memory.
CALLS_BEFORE_CAPTURE = 3


class Graphed:
    """A function captured as a CUDA graph after some calls, and replayed from then on.

    Args:
        function: works on the current CUDA stream, on tensors that stay where they are, and waits for nothing.
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
            # A stream of its own: cuBLAS's workspace belongs to the capture's stream, and is given up with the first of
            # its graphs (https://github.com/pytorch/pytorch/issues/193402). Only this thread has to keep still
            # meanwhile.
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"):
                self.function()
            self.graph = graph
        self.graph.replay()
