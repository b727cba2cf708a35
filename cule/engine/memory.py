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
        device: the device of the tensors.
        batch: the addresses of the tensors, and plain numbers.
        tensors: the tensors, by the names of the batch's fields.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.batch = _core.Batch()
        self.tensors: dict[str, torch.Tensor] = {}

    def place(self, name: str, tensor: torch.Tensor) -> None:
        """Adds a tensor, whose address becomes the batch's field of this name."""
        self.tensors[name] = tensor
        setattr(self.batch, name, (tensor.data_ptr(), tensor.nbytes))

    def place_array(self, name: str, array: np.ndarray) -> None:
        """Copies an array to the device; the copy becomes the batch's field of this name."""
        self.place(name, self.keep_array(name, array))

    def keep_array(self, name: str, array: np.ndarray) -> torch.Tensor:
        """Adds a copy of an array's bytes on the device, without setting a field."""
        copied = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).copy())
        self.tensors[name] = copied.to(self.device)
        return self.tensors[name]

    def place_zeros(self, fields: Fields) -> None:
        """Makes tensors of zeros, which become the batch's fields.

        Raises:
            RuntimeError: the device has too little memory; on a GPU, torch.OutOfMemoryError.
        """
        for name, (shape, dtype) in fields.items():
            self.place(name, torch.zeros(shape, dtype=dtype, device=self.device))

    @property
    def bytes(self) -> int:
        """The bytes of all tensors; those that share memory count once."""
        storages = (tensor.untyped_storage() for tensor in self.tensors.values())
        return sum({one.data_ptr(): one.nbytes() for one in storages}.values())

    def set_numbers(self, numbers: Mapping[str, int | float | bool]) -> None:
        """Sets fields of the batch that are not addresses."""
        for name, number in numbers.items():
            setattr(self.batch, name, number)
