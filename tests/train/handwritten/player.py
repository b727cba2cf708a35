"""Plays: a policy chooses actions, the envs step, and the rollout stores it, all on the device."""

from __future__ import annotations

import torch
from torch import nn

from cule import scope
from cule.train.envs.emulator import Env
from cule.train.nn import draws
from cule.train.nn.models import sample
from handwritten.episodes import Episodes
from handwritten.rollout import Rollout


class Player(nn.Module):
    """Plays with a policy. It is a module, so that a state_dict has the buffers of its parts.

    Args:
        env: the envs.
        policy: (n, 4, 84, 84) uint8 to log-probabilities (n, num_actions) and values.
        rollout: where steps go.
        gamma: the discount of a step.
        seed: of the actions.
    """

    def __init__(self, env: Env, policy: nn.Module, rollout: Rollout, gamma: float, seed: int = 0):
        super().__init__()
        # Not registered as a submodule: the learner saves the policy's weights.
        object.__setattr__(self, "policy", policy)
        self.env, self.rollout, self.gamma, self.seed = env, rollout, gamma, seed
        self.episodes = Episodes(env.num_envs, env.device)

    def begin(self, seed: int) -> None:
        """Resets the envs."""
        frames, _ = self.env.reset(seed=seed)
        self.episodes.begin()
        self.rollout.begin(frames)

    @torch.no_grad()
    def warm_up(self) -> None:
        """Runs the policy, so that what torch compiles on first use is compiled. Plays nothing."""
        self.policy(self.rollout.observations())

    @torch.no_grad()
    def step(self) -> None:
        """Plays one step in every env."""
        with scope.operation("storage"):
            observations = self.rollout.observations()
        with scope.operation("inference"):
            log_probabilities, _ = self.policy(observations)
            with draws.keyed(self.seed, 0, self.rollout.position):
                actions = sample(log_probabilities)
        with scope.operation("simulation"):
            frames, rewards, terminated, _, infos = self.env.step(actions)
        with scope.operation("storage"):
            started = self.episodes.follow(infos)
            step = {
                "actions": actions,
                "log_mu": log_probabilities.gather(1, actions.unsqueeze(1)).squeeze(1),
                "rewards": rewards,
                "discounts": self.gamma * (~terminated).float(),
                "played": ~started,
            }
            self.rollout.append(step, frames, started)
