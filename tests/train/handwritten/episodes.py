"""Finds the steps that begin an episode and the scores of finished episodes, on the device."""

from __future__ import annotations

import torch
from torch import nn


class Episodes(nn.Module):
    """Follows every env's episodes. It is a module, so that a state_dict has its buffers.

    Args:
        num_envs: envs, which reset in NEXT_STEP mode.
        device: where their infos are.
    """

    def __init__(self, num_envs: int, device: torch.device):
        super().__init__()

        def place(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
            self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=device))

        # Whether the last step reported the end of an episode or a life, and the frame number after
        # it.
        place("done", (num_envs,), torch.bool)
        place("frame", (num_envs,), torch.int32)
        place("score", (num_envs,), torch.float32)
        place("score_sum", (), torch.float64)
        place("score_count", (), torch.int64)

    def begin(self, infos: dict[str, torch.Tensor]) -> None:
        """Starts after a reset of all envs, which gave these infos."""
        self.done.zero_()
        self.score.zero_()
        self.frame.copy_(infos["episode_frame_number"])

    def follow(
        self, terminated: torch.Tensor, truncated: torch.Tensor, infos: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        """Takes the results of a step.

        Returns:
            (num_envs,) bool: whether the step reset the env. `episode_frame_number` tells, as it
            decreases only at a reset; a lost life may be reported as an end without one.
        """
        started = self.done & (infos["episode_frame_number"] <= self.frame)
        self.score_sum += (self.score * started).sum()
        self.score_count += started.sum()
        self.score.add_(infos["reward"]).masked_fill_(started, 0.0)
        torch.logical_or(terminated, truncated, out=self.done)
        self.frame.copy_(infos["episode_frame_number"])
        return started

    def take_scores(self) -> torch.Tensor:
        """(2,) float64: the sum of the unclipped scores of the episodes that ended since the last
        call, and their number."""
        scores = torch.stack([self.score_sum, self.score_count.double()])
        self.score_sum.zero_()
        self.score_count.zero_()
        return scores
