"""Frames on the device, each stored once; stacks are gathered when they are read.

A ring buffer of `length` slots holds the newest frames of every env. A stack of four is read from
four slots. In place of frames of an earlier episode, a stack reads one more slot, which is always
black, as in cule and ale-py. Gathering is one indexing call. Frames are kept as 64-bit words, so
that it moves 8 pixels at a time.
"""

from __future__ import annotations

import torch
from torch import nn

from cule.train.envs.emulator import STACK

HEIGHT, WIDTH = 84, 84
WORDS = HEIGHT * WIDTH // 8


class FrameRing(nn.Module):
    """The newest frames of each env. It is a module, so that a state_dict has its buffers.

    Args:
        length: the number of slots; a stack can be read until one of the three slots before its
            newest is overwritten.
        num_envs: envs.
        device: where it is kept.

    Attributes:
        words: (length + 1, num_envs, 882) int64, the pixels; slot `length` is black.
        age: (length, num_envs) int64, how many frames of the same episode came before, at most 3.
    """

    def __init__(self, length: int, num_envs: int, device: torch.device):
        super().__init__()
        self.length, self.num_envs = length, num_envs
        self.register_buffer(
            "words", torch.zeros((length + 1, num_envs, WORDS), dtype=torch.int64, device=device)
        )
        self.register_buffer(
            "age", torch.zeros((length, num_envs), dtype=torch.int64, device=device)
        )
        self.register_buffer(
            "_back", torch.arange(STACK - 1, -1, -1, device=device), persistent=False
        )

    def write(self, slot: torch.Tensor, frames: torch.Tensor, started: torch.Tensor) -> None:
        """Puts the next frame of every env into a slot.

        Args:
            slot: (1,) int64 on the device, the slot after the last written one.
            frames: (num_envs, 1, 84, 84) uint8.
            started: (num_envs,) bool: the frame is the first of an episode.
        """
        before = self.age.index_select(0, (slot - 1) % self.length)
        age = (before + 1).clamp_(max=STACK - 1).masked_fill_(started, 0)
        self.age.index_copy_(0, slot, age)
        self.words.index_copy_(
            0, slot, frames.reshape(1, self.num_envs, -1).contiguous().view(torch.int64)
        )

    def stacks(self, slots: torch.Tensor, envs: torch.Tensor) -> torch.Tensor:
        """The stacks whose newest frames are in `slots` of `envs`: (..., 4, 84, 84) uint8, newest
        last.

        Args:
            slots: int64, broadcast against `envs`.
            envs: int64.
        """
        slots, envs = torch.broadcast_tensors(slots, envs)
        age = self.age[slots, envs].unsqueeze(-1)
        sources = ((slots.unsqueeze(-1) - self._back) % self.length).masked_fill_(
            self._back > age, self.length
        )
        words = self.words[sources, envs.unsqueeze(-1)]
        return words.view(torch.uint8).unflatten(-1, (HEIGHT, WIDTH))
