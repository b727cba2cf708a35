"""Tensors whose addresses are the fields of a batch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from cule import _core
from cule.engine.layout import Fields


class Memory:
    """The memory of a batch on one device.

    Attributes:
        device: where it is.
        batch: the addresses of the tensors, and plain numbers.
        tensors: by the names of the batch's fields.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.batch = _core.Batch()
        self.tensors: dict[str, torch.Tensor] = {}

    def place(self, name: str, tensor: torch.Tensor) -> None:
        """Keeps a tensor, whose memory becomes the batch's field of this name."""
        self.tensors[name] = tensor
        setattr(self.batch, name, (tensor.data_ptr(), tensor.nbytes))

    def place_array(self, name: str, array: np.ndarray) -> None:
        """Copies an array's bytes to the device; they become the batch's field of this name."""
        self.place(name, self.keep_array(name, array))

    def keep_array(self, name: str, array: np.ndarray) -> torch.Tensor:
        """Keeps a copy of an array's bytes on the device, which no field of the batch names."""
        copied = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).copy())
        self.tensors[name] = copied.to(self.device)
        return self.tensors[name]

    def place_zeros(self, fields: Fields) -> None:
        """Makes the tensors of a layout.

        Raises:
            RuntimeError: the device has too little memory; on a GPU, torch.OutOfMemoryError.
        """
        for name, (shape, dtype) in fields.items():
            self.place(name, torch.zeros(shape, dtype=dtype, device=self.device))

    def set_numbers(self, numbers: Mapping[str, int | float | bool]) -> None:
        """Sets the batch's fields that are no addresses."""
        for name, number in numbers.items():
            setattr(self.batch, name, number)
