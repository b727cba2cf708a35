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

        place("score", (num_envs,), torch.float32)
        place("score_sum", (), torch.float64)
        place("score_count", (), torch.int64)

    def begin(self) -> None:
        """Starts after a reset of all envs."""
        self.score.zero_()

    def follow(self, infos: dict[str, torch.Tensor]) -> torch.Tensor:
        """Takes the results of a step.

        Returns:
            (num_envs,) bool: whether the step reset the env; a lost life may be reported as an end
            without a reset.
        """
        started = infos["new_game"].clone()
        self.score_sum += (self.score * started).sum()
        self.score_count += started.sum()
        self.score.add_(infos["raw_reward"]).masked_fill_(started, 0.0)
        return started

    def take_scores(self) -> torch.Tensor:
        """(2,) float64: the sum of the unclipped scores of the episodes that ended since the last
        call, and their number."""
        scores = torch.stack([self.score_sum, self.score_count.double()])
        self.score_sum.zero_()
        self.score_count.zero_()
        return scores
