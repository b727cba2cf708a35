"""The host's memory as tensors that a device's kernels read and write over the bus."""

from __future__ import annotations

import torch


def host_memory(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros in the host's memory that `device` reads and writes over the bus.

    On a GPU the memory is pinned. CUDA gives pinned memory one address for host and device, so that
    a tensor of the device can be made of it, and its kernels work on it.
    """
    if device.type != "cuda":
        return torch.zeros(shape, dtype=dtype)
    pinned = torch.zeros(shape, dtype=dtype, pin_memory=True)
    return on_device(pinned, device)


class _Pinned:
    """Describes pinned memory by the CUDA array interface, which Numba's documentation defines."""

    def __init__(self, pinned: torch.Tensor):
        self.pinned = pinned
        flat = pinned.numel() * pinned.element_size()
        self.__cuda_array_interface__ = {
            "shape": (flat,), "typestr": "|u1", "data": (pinned.data_ptr(), False), "version": 2,
        }  # fmt: skip


def on_device(pinned: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The same memory as a tensor of a GPU."""
    flat = torch.as_tensor(_Pinned(pinned), device=device)
    return flat.view(pinned.dtype).view(pinned.shape)
