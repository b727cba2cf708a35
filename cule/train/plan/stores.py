"""Stores of tensors over time: rings in the device's or the host's memory.

Slots are int64 tensors on the device, so that reads and writes can be captured in CUDA graphs.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import torch
from torch import nn

from cule.devices.host_memory import host_memory
from cule.errors import InvalidValue
from cule.train.plan.program import NOTHING, Recurrent


class Store(Protocol):
    """Memory for the newest values of a Recurrent."""

    length: int

    def begin(self, value: Any) -> None:
        """Puts the initial value at index 0 and all before it."""

    def read(self, slots: torch.Tensor) -> torch.Tensor:
        """The values in some slots (n,): (n, *shape)."""

    def take(self, slots: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The values of some rows in some slots; both int64, broadcast against each other."""

    def write(self, slots: torch.Tensor, value: Any) -> None:
        """Puts values (n, *shape) into slots (n,)."""

    def part(self, rows: slice) -> Store:
        """A store of some rows' values, in the same memory."""

    def state_dict(self) -> dict[str, Any]:
        """Its content."""

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Restores what state_dict() returned."""


class Ring(nn.Module):
    """A ring of values. It is a module, so that a state_dict has its buffer.

    Args:
        recurrent: the Recurrent whose values it stores.
        length: how many slots it has.
        device: the device that reads and writes them.
        host: whether the values are in the host's memory.

    Attributes:
        values: (length, *shape).
    """

    values: torch.Tensor

    def __init__(self, recurrent: Recurrent, length: int, device: torch.device, *, host: bool):
        super().__init__()
        self.length = length
        shape = (length, *recurrent.shape)
        values = (
            host_memory(shape, recurrent.dtype, device)
            if host
            else torch.zeros(shape, dtype=recurrent.dtype, device=device)
        )
        self.register_buffer("values", values)
        if recurrent.initial is not NOTHING:
            self.begin(recurrent.initial)

    def begin(self, value: Any) -> None:
        """Puts the initial value into all slots."""
        self.values.copy_(torch.as_tensor(value, dtype=self.values.dtype).expand_as(self.values))

    def read(self, slots: torch.Tensor) -> torch.Tensor:
        """The values in slots (n,): (n, *shape)."""
        return self.values.index_select(0, slots)

    def take(self, slots: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The values at slots and rows, broadcast."""
        return self.values[slots, rows]

    def write(self, slots: torch.Tensor, value: Any) -> None:
        """Puts values into slots."""
        if not torch.can_cast(value.dtype, self.values.dtype):
            raise InvalidValue(
                f"expected values of {self.values.dtype} to be kept, got some of {value.dtype}"
            )
        shape = (len(slots), *self.values.shape[1:])
        self.values.index_copy_(0, slots, value.to(self.values.dtype).reshape(shape))

    def part(self, rows: slice) -> Ring:
        """As Store.part."""
        part = Ring.__new__(Ring)
        nn.Module.__init__(part)
        part.length = self.length
        part.register_buffer("values", self.values[:, rows])
        return part

    @staticmethod
    def bytes_of(recurrent: Recurrent, length: int) -> int:
        """Bytes of so many slots."""
        return recurrent.slot_bytes * length


def make_store(
    recurrent: Recurrent, length: int, device: torch.device, *, host: bool = False
) -> Store:
    """The store that a Recurrent needs."""
    kind = recurrent.store or Ring
    return cast(Store, kind(recurrent, length, device, host=host))


def bytes_of(recurrent: Recurrent, length: int) -> int:
    """The bytes of a store."""
    return int((recurrent.store or Ring).bytes_of(recurrent, length))


class Window:
    """Several indices of a Recurrent, oldest first, gathered when they are asked for.

    A window whose length depends on the time always has as many as it can have at most. Those after
    its end are 0.

    Attributes:
        store: the store that has them.
        slots: (length,) int64 on the device: their slots.
        count: (1,) int64 on the device: how many come before its end; None: all.
    """

    def __init__(self, store: Store, slots: torch.Tensor, count: torch.Tensor | None = None):
        self.store, self.slots, self.count = store, slots, count

    @property
    def valid(self) -> torch.Tensor:
        """(length,) bool: which come before its end."""
        places = torch.arange(len(self.slots), device=self.slots.device)
        return (
            torch.ones_like(places, dtype=torch.bool)
            if self.count is None
            else (places < self.count)
        )

    def _before_end(self, values: torch.Tensor, places: torch.Tensor | None = None) -> torch.Tensor:
        """Values (*places, ...) with 0 for places past the end; by default all places in order."""
        if self.count is None:
            return values
        valid = self.valid if places is None else places < self.count
        return values * valid.view(*valid.shape, *[1] * (values.dim() - valid.dim()))

    def __len__(self) -> int:
        return len(self.slots)

    def all(self) -> torch.Tensor:
        """All values: (length, *shape)."""
        return self._before_end(self.store.read(self.slots))

    def of(self, rows: torch.Tensor) -> torch.Tensor:
        """All indices of some rows (B,): (length, B, ...)."""
        return self._before_end(self.store.take(self.slots.unsqueeze(1), rows))

    def at(self, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Some indices, by their places 0 .. length - 1 in the window, of some rows, broadcast."""
        values = self.store.take(self.slots[places], rows)
        if self.count is None:
            return values
        return self._before_end(values, torch.broadcast_tensors(places, rows)[0])
