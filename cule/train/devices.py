"""The device on which a program computes."""

from __future__ import annotations

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


def choose_algorithms(*, repeatable: bool, bounded: bool) -> None:
    """Says how cuDNN chooses its algorithms; by default it tries them, and takes the fastest.

    Args:
        repeatable: only those that give the same numbers each time. Some others add up gradients in
            any order.
        bounded: do not try them. For that torch makes a workspace as large as that of the largest,
            whose size nothing bounds: hundreds of MB for a small network.
    """
    if repeatable or bounded:
        torch.backends.cudnn.benchmark = False
    if repeatable:
        torch.backends.cudnn.deterministic = True
