"""Playing: a policy chooses, the envs step, the rollout keeps it; nothing leaves the device."""

from __future__ import annotations

import torch
from torch import nn

from examples.a2c_vtrace.model import sample
from examples.a2c_vtrace.rollout import Rollout
from examples.common.emulator import Env
from examples.common.episodes import Episodes


class Player(nn.Module):
    """Plays with a policy. A module, so that the buffers of its parts are saved with a state_dict.

    Args:
        env: the envs.
        policy: (n, 4, 84, 84) uint8 to log-probabilities (n, num_actions) and values.
        rollout: where steps go.
        gamma: the discount of a step.
    """

    def __init__(self, env: Env, policy: nn.Module, rollout: Rollout, gamma: float):
        super().__init__()
        # Not registered: whoever learns the policy's weights saves them.
        object.__setattr__(self, "policy", policy)
        self.env, self.rollout, self.gamma = env, rollout, gamma
        self.episodes = Episodes(env.num_envs, env.device)

    def begin(self, seed: int) -> None:
        """Resets the envs."""
        frames, infos = self.env.reset(seed=seed)
        self.episodes.begin(infos)
        self.rollout.begin(frames)

    @torch.no_grad()
    def warm_up(self) -> None:
        """Makes what is compiled on first use, without playing."""
        self.policy(self.rollout.observations())

    @torch.no_grad()
    def step(self) -> None:
        """Plays one step in every env."""
        log_probabilities, _ = self.policy(self.rollout.observations())
        actions = sample(log_probabilities)
        frames, rewards, terminated, truncated, infos = self.env.step(actions)
        started = self.episodes.follow(terminated, truncated, infos)
        step = {
            "actions": actions,
            "log_mu": log_probabilities.gather(1, actions.unsqueeze(1)).squeeze(1),
            "rewards": rewards,
            "discounts": self.gamma * (~terminated).float(),
            "played": ~started,
        }
        self.rollout.append(step, frames, started)
