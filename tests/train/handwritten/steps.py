"""A ring buffer of the newest steps of every env, on the device: observations, actions, rewards.

Slot t of the ring holds the frame x_t, the action a_t, the reward r_t, the discount gamma_t (0 if
x_{t+1} is terminal), and whether the step was played or reset the env. The position is on the
device, so that writing and reading can be captured in CUDA graphs.
"""

from __future__ import annotations

import torch
from torch import nn

from handwritten.frames import FrameRing

# The parts of a step that all learners keep.
STEP = {"rewards": torch.float32, "discounts": torch.float32, "played": torch.bool}


class StepRing(nn.Module):
    """The ring buffer. It is a module, so that a state_dict has its tensors.

    Args:
        length: the number of slots.
        num_envs: the number of envs.
        device: where it is kept.
        kept: names and dtypes of further parts of a step.

    Attributes:
        position: (1,) int64 on the device, steps played; slot position % length holds the newest
            frame.
        frames: the frames, stored once. rewards, discounts, played and the other parts: (length,
        num_envs).
    """

    def __init__(self, length: int, num_envs: int, device: torch.device, **kept: torch.dtype):
        super().__init__()
        self.length, self.num_envs = length, num_envs
        self.frames = FrameRing(length, num_envs, device)
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64, device=device))
        for name, dtype in (kept | STEP).items():
            self.register_buffer(name, torch.zeros((length, num_envs), dtype=dtype, device=device))
        self.register_buffer("_envs", torch.arange(num_envs, device=device), persistent=False)

    def begin(self, frames: torch.Tensor) -> None:
        """Puts the first frames of all envs, (num_envs, 1, 84, 84) uint8, at the position."""
        started = torch.ones(self.num_envs, dtype=torch.bool, device=frames.device)
        self.frames.write(self.position % self.length, frames, started)

    def observations(self) -> torch.Tensor:
        """The observations at the position: (num_envs, 4, 84, 84) uint8."""
        return self.frames.stacks(self.position % self.length, self._envs)

    def append(
        self, step: dict[str, torch.Tensor], frames: torch.Tensor, started: torch.Tensor
    ) -> None:
        """Writes a step that began at the position, and the frames after it, and moves on by one.

        Args:
            step: the parts of the step by name, (num_envs,) each.
            frames: (num_envs, 1, 84, 84) uint8.
            started: (num_envs,) bool: the frame is the first of an episode.
        """
        slot = self.position % self.length
        for name, values in step.items():
            ring = getattr(self, name)
            ring.index_copy_(0, slot, values.to(ring.dtype).unsqueeze(0))
        self.position += 1
        self.frames.write(self.position % self.length, frames, started)
