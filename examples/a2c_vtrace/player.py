"""Playing: a policy chooses, the envs step, the rollout keeps it, scores are added up; nothing leaves the device."""

from __future__ import annotations

import torch
from torch import nn

from examples.a2c_vtrace.model import sample
from examples.a2c_vtrace.rollout import Rollout
from examples.common.emulator import Env, episode_started


class Player(nn.Module):
    """Plays with a policy. A module, so that its buffers are saved with a state_dict, the rollout's among them.

    Args:
        env: the envs.
        policy: (n, 4, 84, 84) uint8 to log-probabilities (n, num_actions) and values.
        rollout: where steps go.
        gamma: the discount of a step.

    Attributes:
        score_sum, score_count: of the episodes that ended since take_scores() was last called.
    """

    def __init__(self, env: Env, policy: nn.Module, rollout: Rollout, gamma: float):
        super().__init__()
        # Not registered: the learner saves the weights that this policy is a copy of.
        object.__setattr__(self, "policy", policy)
        self.env, self.rollout, self.gamma = env, rollout, gamma

        def place(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
            self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=env.device))

        place("done", (env.num_envs,), torch.bool)
        place("episode_frames", (env.num_envs,), torch.int32)
        place("score", (env.num_envs,), torch.float32)
        place("score_sum", (), torch.float64)
        place("score_count", (), torch.int64)

    def begin(self, seed: int) -> None:
        """Resets the envs."""
        frames, infos = self.env.reset(seed=seed)
        self.episode_frames.copy_(infos["episode_frame_number"])
        self.rollout.begin(frames)

    @torch.no_grad()
    def step(self) -> None:
        """Plays one step in every env."""
        log_probabilities, _ = self.policy(self.rollout.observations())
        actions = sample(log_probabilities)
        frames, rewards, terminated, truncated, infos = self.env.step(actions)
        started = episode_started(self.done, self.episode_frames, infos["episode_frame_number"])
        step = {
            "actions": actions,
            "log_mu": log_probabilities.gather(1, actions.unsqueeze(1)).squeeze(1),
            "rewards": rewards,
            "discounts": self.gamma * (~terminated).float(),
            "played": ~started,
        }
        self.rollout.append(step, frames, started)
        self.score_sum += torch.where(started, self.score, 0.0).sum()
        self.score_count += started.sum()
        self.score.add_(infos["reward"]).masked_fill_(started, 0.0)
        torch.logical_or(terminated, truncated, out=self.done)
        self.episode_frames.copy_(infos["episode_frame_number"])

    def take_scores(self) -> torch.Tensor:
        """(2,) float64: sum and number of the unclipped scores of episodes that ended since the last call."""
        scores = torch.stack([self.score_sum, self.score_count.double()])
        self.score_sum.zero_()
        self.score_count.zero_()
        return scores
