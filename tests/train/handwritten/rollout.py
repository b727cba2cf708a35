"""The rollout buffer: the last steps, on the device. The player writes, the learner reads."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cule.train.envs.emulator import STACK
from handwritten.steps import StepRing


@dataclass
class Batch:
    """T steps of B envs, T + 1 observations.

    Attributes:
        observations: (T + 1, B, 4, 84, 84) uint8.
        actions: (T, B) int64.
        log_mu: (T, B) float32, log-probabilities of the actions under the policy that chose them.
        rewards: (T, B) float32.
        discounts: (T, B) float32.
        played: (T, B) bool; False if the step reset the env.
    """

    observations: torch.Tensor
    actions: torch.Tensor
    log_mu: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor
    played: torch.Tensor


class Rollout(StepRing):
    """A ring buffer with the actions and their log-probabilities under the policy that played.

    Args:
        num_envs: envs.
        n_steps: T, the steps of a batch.
        ahead: how many steps may be written while a batch that ends before them is read.
        device: where it is kept.
    """

    def __init__(self, num_envs: int, n_steps: int, ahead: int, device: torch.device):
        # A batch reads T + 1 frames and the three before them.
        super().__init__(
            n_steps + STACK + ahead, num_envs, device, actions=torch.int64, log_mu=torch.float32
        )
        self.n_steps = n_steps
        self.register_buffer("_steps", torch.arange(-n_steps, 1, device=device), persistent=False)

    def batch(self, end: torch.Tensor, envs: torch.Tensor) -> Batch:
        """The T steps of `envs` (B,) int64 before position `end` (1,) int64."""
        slots = ((end + self._steps) % self.length).unsqueeze(1)
        parts = {
            name: getattr(self, name)[slots[:-1], envs]
            for name in ("actions", "log_mu", "rewards", "discounts", "played")
        }
        return Batch(observations=self.frames.stacks(slots, envs), **parts)
