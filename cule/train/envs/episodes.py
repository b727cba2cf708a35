"""Finds the steps that begin an episode and the scores of finished episodes, on the device.

Of several players the score is the first one's.
"""

from __future__ import annotations

import torch
from torch import nn


class Episodes(nn.Module):
    """Follows every env's episodes. It is a module, so that a state_dict has its buffers.

    Args:
        num_envs: how many envs there are; they reset in NEXT_STEP mode.
        device: the device of their results.
    """

    done: torch.Tensor
    score: torch.Tensor
    score_sum: torch.Tensor
    score_count: torch.Tensor
    told: torch.Tensor

    def __init__(self, num_envs: int, device: torch.device):
        super().__init__()

        def place(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
            self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=device))

        # Whether the last step reported the end of an episode or a life.
        place("done", (num_envs,), torch.bool)
        place("score", (num_envs,), torch.float32)
        place("score_sum", (), torch.float64)
        place("score_count", (), torch.int64)
        # Of the episodes that had not ended at the last call of take_scores, their scores until
        # then, all together.
        place("told", (), torch.float64)

    def begin(self) -> None:
        """Starts after a reset of all envs."""
        self.done.zero_()
        self.score.zero_()
        self.told.zero_()

    def follow(
        self,
        rewards: torch.Tensor,
        terminated: torch.Tensor,
        truncated: torch.Tensor,
        infos: dict[str, torch.Tensor],
        envs: slice = slice(None),
    ) -> torch.Tensor:
        """Takes the results of a step.

        Args:
            rewards: (n,), as the step returned them; of several players (n, num_players).
            terminated: (n,) bool.
            truncated: (n,) bool.
            infos: the entries `raw_reward`, of the shape of `rewards`, and `new_game`, (n,), if the
                step returned them.
            envs: the n envs that took the step.

        Returns:
            (num_envs,) bool: the step reset the env. The infos' `new_game` says so, as a lost life
            may be reported as an end without a reset. Of envs whose infos lack it, the step after
            each end resets.
        """
        done, score = self.done[envs], self.score[envs]
        started = infos["new_game"].clone() if "new_game" in infos else done.clone()
        self.score_sum += (score * started).sum()
        self.score_count += started.sum()
        gained = infos.get("raw_reward", rewards)
        gained = gained[:, 0] if gained.dim() > 1 else gained
        score.add_(gained).masked_fill_(started, 0.0)
        torch.logical_or(terminated, truncated, out=done)
        return started

    def take_scores(self) -> torch.Tensor:
        """Sums of unclipped rewards and scores since the last call.

        Returns:
            (4,) float64: sum and number of the scores of the episodes that ended, the sum of all
            rewards, and the sum of what unfinished episodes have scored until now.
        """
        running = self.score.sum(dtype=torch.float64)
        rewards = self.score_sum + running - self.told
        scores = torch.stack([self.score_sum, self.score_count.double(), rewards, running])
        self.told.copy_(running)
        self.score_sum.zero_()
        self.score_count.zero_()
        return scores
