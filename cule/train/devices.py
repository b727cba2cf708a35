"""The device on which a program computes."""

from __future__ import annotations

import gc
from types import TracebackType

import torch

from cule.devices.device import find_device


def choose_device(name: str | None) -> torch.device:
    """The device of this name, by default a GPU if there is one.

    On a GPU torch is set up for speed: float32 products may use TensorFloat-32, and cuDNN
    benchmarks its algorithms.

    Raises:
        ValueError: the device does not exist.
    """
    device = find_device(name)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
    return device


def multiprocessors_of(device: torch.device, sharing: int) -> int:
    """A GPU's multiprocessors for each of so many trainings that share it."""
    return torch.cuda.get_device_properties(device).multi_processor_count // sharing


def compute_deterministically() -> None:
    """Lets cuDNN use only algorithms that give the same numbers each time.

    By default it chooses the fastest by trying them, and some add up gradients in any order.
    """
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


class BytesKept:
    """Counts the bytes that a `with` block allocates on a GPU and keeps.

    Python collects no garbage in the block: what objects from before give back would be subtracted.

    Args:
        device: where to count; on a CPU nothing is counted.

    Attributes:
        bytes: how many, after the block.
    """

    def __init__(self, device: torch.device):
        self.bytes = 0
        self._device = device

    def _allocated(self) -> int:
        return torch.cuda.memory_allocated(self._device) if self._device.type == "cuda" else 0

    def __enter__(self) -> BytesKept:
        self._collects = gc.isenabled()
        gc.disable()
        self._before = self._allocated()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bytes = self._allocated() - self._before
        if self._collects:
            gc.enable()
