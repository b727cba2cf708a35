"""Frames of a ring: stacks read, and a new frame added, in one pass each.

cule/train/nn/frame_ring.py describes a ring and its parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
import triton
import triton.language as tl
from torch.utils._pytree import tree_map_only

BLOCK = 1024


class FrameRing(Protocol):
    """The attributes of a FrameRing (cule/train/nn/frame_ring.py) that stacks use."""

    words: torch.Tensor
    age: torch.Tensor
    frame: list[int]
    oldest: int


@triton.jit
def newest_of(
    place, age, slots, envs, slot_row, slot_column, env_row, env_column, columns, age_slot
) -> Any:
    """The slot and the env of a stack's newest frame, and how many frames came before it."""
    row, column = place // columns, place % columns
    slot = tl.load(slots + row * slot_row + column * slot_column)
    env = tl.load(envs + row * env_row + column * env_column)
    return slot, env, tl.load(age + slot * age_slot + env)


@triton.jit
def begin_of(frame, slot, env, before, length, word_slot, word_env, depth: tl.constexpr) -> Any:
    """The first word of a frame of a stack, 0 being the oldest; black for one of another episode.

    slot, env and before are the results of `newest_of`; the others are the ring's layout.
    """
    back = depth - 1 - frame
    source = (slot - back + depth * length) % length
    source = tl.where(back > before, length, source)
    return source * word_slot + env * word_env


@triton.jit
def _stacks(
    words, age, slots, envs, stacks, slot_row, slot_column, env_row, env_column,
    columns, length, word_slot, word_env, age_slot, size, depth: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program is a frame of a stack."""
    place, frame = tl.program_id(0), tl.program_id(1)
    slot, env, before = newest_of(
        place, age, slots, envs, slot_row, slot_column, env_row, env_column, columns, age_slot
    )
    begin = begin_of(frame, slot, env, before, length, word_slot, word_env, depth)
    end = (place.to(tl.int64) * depth + frame) * size
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        word = tl.load(words + begin + at, at < size)
        tl.store(stacks + end + at, word, at < size)


def stacks(
    words: torch.Tensor, age: torch.Tensor, slots: torch.Tensor, envs: torch.Tensor, depth: int
) -> torch.Tensor:
    """The stacks whose newest frames are in `slots` of `envs`, newest last.

    Args:
        words: (length + 1, num_envs, size) int64, contiguous in its last dimension.
        age: (length, num_envs) int64, contiguous in its last dimension.
        slots: (r,) or (r, c) int64.
        envs: int64 in the shape of `slots`.
        depth: frames of a stack.

    Returns:
        (*slots.shape, depth, size) int64.
    """
    size = words.shape[2]
    result = words.new_empty((*slots.shape, depth, size))
    _stacks[(slots.numel(), depth)](
        words, age, slots, envs, result, *layout_of(words, age, slots, envs), size, depth, BLOCK
    )
    return result


def layout_of(
    words: torch.Tensor, age: torch.Tensor, slots: torch.Tensor, envs: torch.Tensor
) -> tuple[int, ...]:
    """The strides and sizes of the tensors of `stacks` that its kernel needs."""
    if slots.dim() == 1:
        slots, envs = slots.unsqueeze(1), envs.unsqueeze(1)
    return (
        *slots.stride(), *envs.stride(), slots.shape[1], len(age), *words.stride()[:2],
        age.stride(0),
    )  # fmt: skip


# What learning does with stacks before a network reads them.
VIEWS = (
    torch.Tensor.__getitem__, torch.Tensor.view, torch.Tensor.reshape, torch.Tensor.flatten,
    torch.Tensor.unflatten,
)  # fmt: skip


class Stacks(torch.Tensor):
    """Stacks of a ring's frames, which are put together only if they have to be.

    A first layer reads the ring itself (layers.py's `centred_patches`). All other functions get a
    tensor of the whole stacks, with the frames that the ring has at that moment: its slots change
    only between operations of a plan.

    Args:
        ring: the ring.
        slots: (r,) or (r, c) int64, the slots of the newest frames.
        envs: int64 in the shape of `slots`.
        leading: another shape with as many stacks; None: the shape of `slots`.

    Attributes:
        shape: (*leading, stack, *frame), by default (*slots.shape, stack, *frame); uint8.
        held: the whole stacks, once they are put together.
    """

    ring: FrameRing
    slots: torch.Tensor
    envs: torch.Tensor
    held: torch.Tensor | None

    @staticmethod
    def __new__(
        cls, ring: FrameRing, slots: torch.Tensor, envs: torch.Tensor,
        leading: Sequence[int] | None = None,
    ) -> Stacks:  # fmt: skip
        """See the class."""
        shape = (*(slots.shape if leading is None else leading), ring.oldest + 1, *ring.frame)
        tensor = torch.Tensor._make_wrapper_subclass(
            cls, shape, dtype=torch.uint8, device=ring.words.device
        )
        tensor.ring, tensor.slots, tensor.envs, tensor.held = ring, slots, envs, None
        return tensor

    def whole(self) -> torch.Tensor:
        """A tensor of the stacks."""
        if self.held is None:
            words = stacks(
                self.ring.words, self.ring.age, self.slots, self.envs, self.ring.oldest + 1
            )
            self.held = words.view(torch.uint8).view(self.shape)
        return self.held

    def _shaped(self, function: Any, *args: Any, **kwargs: Any) -> Stacks | None:
        """The same stacks in the shape that a function makes, if that leaves each as it is."""
        shape = function(
            torch.empty((), dtype=torch.uint8).expand(self.shape), *args, **kwargs
        ).shape
        inner = self.shape[len(self.shape) - 1 - len(self.ring.frame) :]
        leading, same = shape[: len(shape) - len(inner)], tuple(shape[-len(inner) :]) == inner
        if not same or math.prod(leading) != self.slots.numel():
            return None
        return Stacks(self.ring, self.slots, self.envs, leading)

    @property
    def _by_rows(self) -> bool:
        """Whether the slots have the same dimensions as the stacks."""
        return self.slots.shape == self.shape[: len(self.shape) - 1 - len(self.ring.frame)]

    def _selected(self, place: int) -> Stacks | None:
        """The stacks at a place of the first of two dimensions, if the slots have the same two."""
        by_rows = self.slots.dim() == 2 and self._by_rows
        return Stacks(self.ring, self.slots[place], self.envs[place]) if by_rows else None

    def _sliced(self, begin: int, end: int, step: int = 1) -> Stacks | None:
        """The stacks at some places of the first dimension, if the slots have the same ones."""
        if not self._by_rows:
            return None
        some = slice(begin, end, step)
        return Stacks(self.ring, self.slots[some], self.envs[some])

    def __repr__(self, **_: Any) -> Any:  # type: ignore[override]
        return repr(self.whole())

    def _viewed(self, function: Any, *args: Any, **kwargs: Any) -> Stacks | None:
        """The result of one of VIEWS, if it is Stacks."""
        if any(isinstance(one, torch.dtype) for one in (*args, *kwargs.values())):
            return None
        if function is not torch.Tensor.__getitem__:
            return self._shaped(function, *args, **kwargs)
        (index,) = args
        if isinstance(index, slice):
            return self._sliced(*index.indices(len(self)))
        return self._selected(index) if type(index) is int else None

    @classmethod
    def __torch_function__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Views without __torch_dispatch__: its first call imports SymPy for one to two seconds."""
        with torch._C.DisableTorchFunctionSubclass():
            if function in VIEWS and isinstance(args[0], Stacks):
                stacks = args[0]._viewed(function, *args[1:], **(kwargs or {}))
                if stacks is not None:
                    return stacks
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        stacks = None
        if function is torch.ops.aten.view.default:
            stacks = args[0]._shaped(function, args[1])
        elif function is torch.ops.aten.select.int and args[1] == 0:
            stacks = args[0]._selected(args[2])
        elif function is torch.ops.aten.slice.Tensor and args[1] == 0:
            stacks = args[0]._sliced(*args[2:])
        if stacks is not None:
            return stacks
        args, kwargs = tree_map_only(Stacks, Stacks.whole, (args, kwargs or {}))
        return function(*args, **kwargs)


@triton.jit
def _add(
    words, age, slots, frames, started, length, word_slot, word_env, age_slot, size,
    oldest: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program is an env."""
    env = tl.program_id(0)
    slot = tl.load(slots)
    before = tl.load(age + (slot - 1 + length) % length * age_slot + env)
    now = tl.where(tl.load(started + env) != 0, 0, tl.minimum(before + 1, oldest))
    tl.store(age + slot * age_slot + env, now)
    begin, source = slot * word_slot + env * word_env, env.to(tl.int64) * size
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(words + begin + at, tl.load(frames + source + at, at < size), at < size)


def add(
    words: torch.Tensor, age: torch.Tensor, slots: torch.Tensor, frames: torch.Tensor,
    started: torch.Tensor, oldest: int,
) -> None:  # fmt: skip
    """Puts the next frame of every env into a slot.

    Args:
        words: (length + 1, num_envs, size) int64, contiguous in its last dimension.
        age: (length, num_envs) int64, contiguous in its last dimension.
        slots: (1,) int64, the slot after the last written one.
        frames: (num_envs, size) int64.
        started: (num_envs,) bool: the frame is the first of an episode.
        oldest: the most that `age` counts.
    """
    num_envs, size = words.shape[1:]
    _add[(num_envs,)](
        words, age, slots, frames, started.view(torch.uint8), len(age),
        *words.stride()[:2], age.stride(0), size, oldest, BLOCK,
    )  # fmt: skip
