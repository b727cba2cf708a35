"""Frames of envs, each stored once, from which the stacks of observations are gathered.

Frames of an earlier episode are replaced by one more slot that is always black, as in cule and
ale-py.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import nn

from cule.devices.host_memory import host_memory
from cule.train.nn import kernels
from cule.train.plan.program import Recurrent


class FrameRing(nn.Module):
    """The newest frames of each env, from which stacks are gathered when they are read.

    Frames are stored as 64-bit words, so that gathering moves 8 pixels at a time.

    Args:
        recurrent: of shape (num_envs, *frame), uint8; a frame has a multiple of 8 pixels.
        length: the number of slots.
        device: the device that reads and writes them.
        host: whether the pixels are in the host's memory.

    Attributes:
        words: (length + 1, num_envs, pixels / 8) int64, the pixels; slot `length` is black.
        age: (length, num_envs) int64, how many frames of the same episode came before, at most
            stack - 1.
        deferred: whether reads return stacks that are put together only where they are used.
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

    def part(self, rows: slice) -> FrameRing:
        """As Store.part."""
        part = FrameRing.__new__(FrameRing)
        nn.Module.__init__(part)
        part.length, part.frame, part.oldest = self.length, self.frame, self.oldest
        part.deferred = self.deferred
        part.register_buffer("words", self.words[:, rows])
        part.register_buffer("age", self.age[:, rows])
        part.num_envs = part.age.shape[1]
        part.register_buffer("back", self.back)
        part.register_buffer("envs", torch.arange(part.num_envs, device=self.age.device))
        return part

    @classmethod
    def black(cls, recurrent: Recurrent, device: torch.device) -> FrameRing:
        """A ring of one slot in which all frames are black, with the memory of one env's."""
        first = dataclasses.replace(recurrent, shape=(1, *recurrent.shape[1:]))
        ring = cls(first, 1, device, host=False)
        ring.num_envs = recurrent.shape[0]
        ring.words = ring.words.expand(-1, ring.num_envs, -1)
        ring.age = torch.zeros((1, ring.num_envs), dtype=torch.int64, device=device)
        ring.envs = torch.arange(ring.num_envs, device=device)
        return ring

    @staticmethod
    def bytes_of(recurrent: Recurrent, length: int) -> int:
        """Bytes of so many slots."""
        return recurrent.slot_bytes * (length + 1) + 8 * recurrent.shape[0] * length

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

            stacks = fused.Stacks(self, slots, envs)
            return stacks if self.deferred else stacks.whole()
        age = self.age[slots, envs].unsqueeze(-1)
        sources = ((slots.unsqueeze(-1) - self.back) % self.length).masked_fill_(
            self.back > age, self.length
        )
        words = self.words[sources, envs.unsqueeze(-1)]
        return words.view(torch.uint8).unflatten(-1, self.frame)
