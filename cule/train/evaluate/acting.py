"""Chooses the actions of episodes that are played side by side, on a GPU with a CUDA graph."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import torch

from cule.devices.host_memory import on_device
from cule.train.evaluate.policy import Policy
from cule.train.lowering.peak_bytes import PeakBytes
from cule.train.nn.models import sample
from cule.train.plan.graphs import CALLS_BEFORE_CAPTURE, CudaStreams

# Of the threads of an evaluation one at a time uses the GPU, as none may while another captures.
_one_at_a_time = threading.Lock()


class Acting:
    """Chooses actions, step by step.

    On a GPU a step is one CUDA graph after the first steps, if the policy's `scores` can be
    captured: it does not wait for the GPU, and changes nothing but tensors there. Else Python and
    launches take most of a step.

    Args:
        policy: the policy.
        shown: (n, 4, 84, 84) uint8, the newest observations; pinned if the device is a GPU.
        device: where the policy computes.
        seed: of the actions.
        greedy: take the most probable action.
        graphs: whether a step may be captured.
    """

    def __init__(
        self, policy: Policy, shown: torch.Tensor, device: torch.device, *, seed: int,
        greedy: bool, graphs: bool,
    ):  # fmt: skip
        self._shown, self._greedy = shown, greedy
        self._episodes = policy.begin(len(shown), device)
        self._generator = torch.Generator(device).manual_seed(seed)
        self._on_gpu, self._calls = device.type == "cuda", 0
        # What is compared to find out whether there can be a graph; None: there is none.
        self._attributes = policy.attributes if graphs else None
        self._replay: Callable[[], None] | None = None
        if self._on_gpu:
            self._device, self._rows = device, torch.arange(len(shown), device=device)
            chosen = torch.zeros(len(shown), dtype=torch.int64, pin_memory=True)
            self._chosen, self._written = chosen.numpy(), on_device(chosen, device)
            self._read = on_device(shown, device)

    def __call__(self, playing: np.ndarray) -> np.ndarray:
        """The next actions of episodes whose numbers are `playing`: (len(playing),) int64."""
        if not self._on_gpu:
            return self._choose(self._shown[torch.from_numpy(playing)], playing).numpy()
        with _one_at_a_time:
            if self._replay is not None:
                self._replay()
            else:
                self._act()
            torch.cuda.current_stream(self._device).synchronize()
        return self._chosen[playing]

    def close(self) -> None:
        """Frees the graph."""
        if self._replay is not None:
            with _one_at_a_time:
                self._replay = None

    def _choose(self, observations: torch.Tensor, which: np.ndarray | None) -> torch.Tensor:
        scores = self._episodes.scores(observations, which)
        return scores.argmax(dim=1) if self._greedy else sample(scores, self._generator)

    def _step(self) -> None:
        """Chooses for all, also those whose episode is over.

        For a batch of another size cuDNN would look for its fastest kernels again.
        """
        # Kernels read and write the host's memory: copies would wait for it in a graph.
        observations = self._read.index_select(0, self._rows)
        self._written.index_copy_(0, self._rows, self._choose(observations, None))

    def _act(self) -> None:
        """A step without a graph; the last one of those finds out whether there can be one."""
        self._calls += 1
        if self._attributes is None or self._calls < CALLS_BEFORE_CAPTURE:
            self._step()
            return
        before, seen = self._attributes.state_dict(), PeakBytes()
        with seen:
            self._step()
        if self._attributes.are_alike_on_host(before) and not seen.waits:
            self._replay = CudaStreams(self._device, 0).capture(self._step, self._generator)
        else:
            self._attributes = None
