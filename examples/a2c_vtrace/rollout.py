"""What was played lately: a ring on the device that players write and learners read.

Slot t of the ring holds the frame x_t that was seen, and what became of it: the action a_t, its log-probability, the
reward r_t, the discount gamma_t (0 where x_{t+1} is terminal), and whether the step was played at all or reset the env.
The position is kept on the device, so that writing and reading can be captured in CUDA graphs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from examples.common.emulator import STACK
from examples.common.frames import FrameRing


@dataclass
class Batch:
    """T steps of B envs, T + 1 observations.

    Attributes:
        observations: (T + 1, B, 4, 84, 84) uint8.
        actions: (T, B) int64.
        log_mu: (T, B) float32, log-probabilities of the actions under the policy that chose them.
        rewards: (T, B) float32.
        discounts: (T, B) float32.
        played: (T, B) bool; False where the step reset the env.
    """

    observations: torch.Tensor
    actions: torch.Tensor
    log_mu: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor
    played: torch.Tensor


class Rollout(nn.Module):
    """The ring. A module, so that its buffers are saved with a state_dict.

    Args:
        num_envs: envs.
        n_steps: T, the steps of a batch.
        ahead: steps that may be written while a batch that ends at the position before them is read.
        device: where it is kept.
    """

    def __init__(self, num_envs: int, n_steps: int, ahead: int, device: torch.device):
        super().__init__()
        self.num_envs, self.n_steps = num_envs, n_steps
        # A batch reads T + 1 frames and the three before them.
        self.length = n_steps + STACK + ahead
        self.frames = FrameRing(self.length, num_envs, device)

        def place(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
            self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=device))

        place("position", (1,), torch.int64)
        place("actions", (self.length, num_envs), torch.int64)
        place("log_mu", (self.length, num_envs), torch.float32)
        place("rewards", (self.length, num_envs), torch.float32)
        place("discounts", (self.length, num_envs), torch.float32)
        place("played", (self.length, num_envs), torch.bool)
        self.register_buffer("_envs", torch.arange(num_envs, device=device), persistent=False)
        self.register_buffer("_steps", torch.arange(-n_steps, 1, device=device), persistent=False)

    def begin(self, frames: torch.Tensor) -> None:
        """Puts the first frames of all envs, (num_envs, 1, 84, 84) uint8, at the position."""
        started = torch.ones(self.num_envs, dtype=torch.bool, device=frames.device)
        self.frames.write(self.position % self.length, frames, started)

    def observations(self) -> torch.Tensor:
        """What is seen at the position: (num_envs, 4, 84, 84) uint8."""
        return self.frames.stacks(self.position % self.length, self._envs)

    def append(self, step: dict[str, torch.Tensor], frames: torch.Tensor, started: torch.Tensor) -> None:
        """Writes what became of the position's observation, and the frames that followed; moves on by one.

        Args:
            step: (num_envs,) each: actions, log_mu, rewards, discounts and played.
            frames: (num_envs, 1, 84, 84) uint8.
            started: (num_envs,) bool: the frame is the first of an episode.
        """
        slot = self.position % self.length
        for name, values in step.items():
            ring = getattr(self, name)
            ring.index_copy_(0, slot, values.to(ring.dtype).unsqueeze(0))
        self.position += 1
        self.frames.write(self.position % self.length, frames, started)

    def batch(self, end: torch.Tensor, envs: torch.Tensor) -> Batch:
        """The T steps of `envs` (B,) int64 that lead to position `end` (1,) int64."""
        slots = ((end + self._steps) % self.length).unsqueeze(1)
        parts = {
            name: getattr(self, name)[slots[:-1], envs]
            for name in ("actions", "log_mu", "rewards", "discounts", "played")
        }
        return Batch(observations=self.frames.stacks(slots, envs), **parts)
