"""Where tensors over time are kept: rings on the device, frames once each, or rings on the host.

Slots are int64 tensors on the device, so that reads and writes can be captured in CUDA graphs.
Frames of an earlier episode are replaced by one more slot that is always black, as in cule and
ale-py.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, cast

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.nn import kernels
from cule.train.plan.program import NOTHING, Recurrent


class Store(Protocol):
    """What keeps the newest values of a Recurrent."""

    length: int

    def begin(self, value: Any) -> None:
        """Puts the initial value at index 0 and all before it."""

    def read(self, slots: torch.Tensor) -> torch.Tensor:
        """The values in some slots (n,): (n, *shape)."""

    def take(self, slots: torch.Tensor, envs: torch.Tensor) -> torch.Tensor:
        """The values of some envs in some slots; both int64, broadcast against each other."""

    def write(self, slots: torch.Tensor, value: Any) -> None:
        """Puts values (n, *shape) into slots (n,)."""

    def state_dict(self) -> dict[str, Any]:
        """What it holds."""

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Restores what state_dict() returned."""


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


class Ring(nn.Module):
    """A ring of values. It is a module, so that a state_dict has its buffer.

    Args:
        recurrent: whose values.
        length: slots.
        device: where they are used.
        host: keep them in the host's memory.

    Attributes:
        values: (length, *shape).
    """

    values: torch.Tensor

    def __init__(self, recurrent: Recurrent, length: int, device: torch.device, *, host: bool):
        super().__init__()
        self.length = length
        shape = (length, *recurrent.shape)
        made = (
            host_memory(shape, recurrent.dtype, device)
            if host
            else torch.zeros(shape, dtype=recurrent.dtype, device=device)
        )
        self.register_buffer("values", made)
        if recurrent.initial is not NOTHING:
            self.begin(recurrent.initial)

    def begin(self, value: Any) -> None:
        """Puts the initial value into all slots."""
        self.values.copy_(torch.as_tensor(value, dtype=self.values.dtype).expand_as(self.values))

    def read(self, slots: torch.Tensor) -> torch.Tensor:
        """(n, *shape)."""
        return self.values.index_select(0, slots)

    def take(self, slots: torch.Tensor, envs: torch.Tensor) -> torch.Tensor:
        """The values at slots and envs, broadcast."""
        return self.values[slots, envs]

    def write(self, slots: torch.Tensor, value: Any) -> None:
        """Puts values into slots."""
        if not torch.can_cast(value.dtype, self.values.dtype):
            raise InvalidValue(
                f"expected values of {self.values.dtype} to be kept, got some of {value.dtype}"
            )
        shape = (len(slots), *self.values.shape[1:])
        self.values.index_copy_(0, slots, value.to(self.values.dtype).reshape(shape))


class FrameRing(nn.Module):
    """The newest frames of each env, from which stacks are gathered when they are read.

    Frames are kept as 64-bit words, so that gathering moves 8 pixels at a time.

    Args:
        recurrent: of shape (num_envs, *frame), uint8; a frame has a multiple of 8 pixels.
        length: the number of slots.
        device: where they are used.
        host: keep the pixels in the host's memory.

    Attributes:
        words: (length + 1, num_envs, pixels / 8) int64, the pixels; slot `length` is black.
        age: (length, num_envs) int64, how many frames of the same episode came before, at most
            stack - 1.
        deferred: whether what is taken is put together only where it is used.
    """

    words: torch.Tensor
    age: torch.Tensor
    back: torch.Tensor
    envs: torch.Tensor

    def __init__(self, recurrent: Recurrent, length: int, device: torch.device, *, host: bool):
        super().__init__()
        self.length = length
        self.num_envs, *self.frame = recurrent.shape
        self.oldest = recurrent.stack - 1
        # Over the bus each frame is read once.
        self.deferred = recurrent.deferred and not host
        shape = (length + 1, self.num_envs, math.prod(self.frame) // 8)
        words = (
            host_memory(shape, torch.int64, device)
            if host
            else torch.zeros(shape, dtype=torch.int64, device=device)
        )
        self.register_buffer("words", words)
        age = torch.zeros((length, self.num_envs), dtype=torch.int64, device=device)
        self.register_buffer("age", age)
        back = torch.arange(self.oldest, -1, -1, device=device)
        self.register_buffer("back", back, persistent=False)
        envs = torch.arange(self.num_envs, device=device)
        self.register_buffer("envs", envs, persistent=False)

    def begin(self, value: Any) -> None:
        """Puts the first frames of all envs, (num_envs, 1, *frame) uint8, into slot 0."""
        started = torch.ones(self.num_envs, dtype=torch.bool, device=self.age.device)
        self.write(torch.zeros(1, dtype=torch.int64, device=self.age.device), (value, started))

    def write(self, slots: torch.Tensor, value: Any) -> None:
        """Puts the next frame of every env into a slot.

        Args:
            slots: (1,) int64 on the device, the slot after the last written one.
            value: frames (num_envs, 1, *frame) uint8, and started (num_envs,) bool: the
                frame is the first of an episode.
        """
        frames, started = value
        words = frames.reshape(1, self.num_envs, -1).contiguous().view(torch.int64)
        if kernels.serve(self.words):
            from cule.train.nn.kernels import frames as fused

            fused.add(self.words, self.age, slots, words[0], started, self.oldest)
            return
        before = self.age.index_select(0, (slots - 1) % self.length)
        age = (before + 1).clamp_(max=self.oldest).masked_fill_(started, 0)
        self.age.index_copy_(0, slots, age)
        self.words.index_copy_(0, slots, words)

    def read(self, slots: torch.Tensor) -> torch.Tensor:
        """The stacks of all envs: (n, num_envs, stack, *frame)."""
        return self.take(slots.unsqueeze(1), self.envs)

    def take(self, slots: torch.Tensor, envs: torch.Tensor) -> torch.Tensor:
        """The stacks whose newest frames are in `slots` of `envs`, newest last.

        Returns:
            (..., stack, *frame) uint8.
        """
        slots, envs = torch.broadcast_tensors(slots, envs)
        if kernels.serve(self.words):
            from cule.train.nn.kernels import frames as fused

            found = fused.Stacks(self, slots, envs)
            return found if self.deferred else found.whole()
        age = self.age[slots, envs].unsqueeze(-1)
        sources = ((slots.unsqueeze(-1) - self.back) % self.length).masked_fill_(
            self.back > age, self.length
        )
        words = self.words[sources, envs.unsqueeze(-1)]
        return words.view(torch.uint8).unflatten(-1, self.frame)


class RingPart(Ring):
    """Some envs' values of a ring, in the same memory.

    Args:
        whole: the ring.
        envs: which envs.
    """

    def __init__(self, whole: Ring, envs: slice):
        nn.Module.__init__(self)
        self.length = whole.length
        self.register_buffer("values", whole.values[:, envs])


class FrameRingPart(FrameRing):
    """Some envs' frames, in the same memory.

    Args:
        whole: the frames of all envs.
        envs: which envs.
    """

    def __init__(self, whole: FrameRing, envs: slice):
        nn.Module.__init__(self)
        self.length, self.frame, self.oldest = whole.length, whole.frame, whole.oldest
        self.deferred = whole.deferred
        self.register_buffer("words", whole.words[:, envs])
        self.register_buffer("age", whole.age[:, envs])
        self.num_envs = self.age.shape[1]
        self.register_buffer("back", whole.back)
        self.register_buffer("envs", torch.arange(self.num_envs, device=self.age.device))


def part_of(store: Store, envs: slice) -> Store:
    """A store of some envs' values, in the same memory."""
    if isinstance(store, FrameRing):
        return cast(Store, FrameRingPart(store, envs))
    assert isinstance(store, Ring)
    return cast(Store, RingPart(store, envs))


def make_store(
    recurrent: Recurrent, length: int, device: torch.device, *, host: bool = False
) -> Store:
    """The store that a Recurrent needs."""
    kind = FrameRing if recurrent.stack > 1 else Ring
    return cast(Store, kind(recurrent, length, device, host=host))


def bytes_of(recurrent: Recurrent, length: int) -> int:
    """The bytes of a store."""
    if recurrent.stack == 1:
        return recurrent.slot_bytes * length
    return recurrent.slot_bytes * (length + 1) + 8 * recurrent.shape[0] * length


class Window:
    """Several indices of a Recurrent, oldest first, gathered when they are asked for.

    Attributes:
        store: where they are.
        slots: (length,) int64 on the device.
    """

    def __init__(self, store: Store, slots: torch.Tensor):
        self.store, self.slots = store, slots

    def __len__(self) -> int:
        return len(self.slots)

    def all(self) -> torch.Tensor:
        """Everything: (length, *shape)."""
        return self.store.read(self.slots)

    def of(self, envs: torch.Tensor) -> torch.Tensor:
        """All indices of some envs (B,): (length, B, ...)."""
        return self.store.take(self.slots.unsqueeze(1), envs)

    def at(self, places: torch.Tensor, envs: torch.Tensor) -> torch.Tensor:
        """Some indices, by their places 0 .. length - 1 in the window, of some envs, broadcast."""
        return self.store.take(self.slots[places], envs)
