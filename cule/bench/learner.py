"""The learner of the modes with batches: the Nature CNN acts, and learns from what was played."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from cule.bench.systems import nature_features

# An update is of so many steps of all envs, in so many minibatches.
STEPS, MINIBATCHES = 16, 4
DISCOUNT, VALUE_COEFFICIENT, ENTROPY_COEFFICIENT = 0.99, 0.5, 0.01


class Learner:
    """An actor-critic. It draws actions, and after each STEPS steps learns from them once.

    Args:
        num_actions: how many there are.
        num_envs: of all batches.
        device: where it computes.
        learns: whether it learns, or only acts.

    Attributes:
        updates: how many there were.
    """

    def __init__(self, num_actions: int, num_envs: int, device: torch.device, *, learns: bool):
        self.device, self.num_envs, self.learns, self.updates = device, num_envs, learns, 0
        self.features = nature_features().to(device)
        self.heads = nn.Linear(512, num_actions + 1).to(device)
        if not learns:
            return
        parameters = [*self.features.parameters(), *self.heads.parameters()]
        self.optimizer = torch.optim.Adam(parameters, 2.5e-4)
        shape = (STEPS, num_envs)
        self.observations = torch.zeros((*shape, 4, 84, 84), dtype=torch.uint8, device=device)
        self.actions = torch.zeros(shape, dtype=torch.int64, device=device)
        self.rewards = torch.zeros(shape, device=device)
        self.values = torch.zeros(shape, device=device)
        self.over = torch.zeros(shape, dtype=torch.bool, device=device)
        self.played = np.zeros(num_envs, np.int64)

    def _outputs(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probabilities (n, num_actions) and values (n,)."""
        heads = self.heads(self.features(observations.float() / 255.0))
        return heads[:, :-1].log_softmax(dim=1), heads[:, -1]

    def act(
        self, ids: np.ndarray, observations: torch.Tensor, rewards: torch.Tensor, over: torch.Tensor
    ) -> np.ndarray:
        """Actions for a batch of envs, (n,) int64 on the host, for which it waits.

        Args:
            ids: (n,) which envs.
            observations: theirs, (n, 4, 84, 84) uint8, on the host.
            rewards: (n,) what their last actions led to.
            over: (n,) whether these ended an episode.
        """
        shown = observations.to(self.device, non_blocking=True)
        with torch.no_grad():
            log_pi, values = self._outputs(shown)
            # Samples by a race of exponentials, as torch.multinomial would wait for the device.
            actions = (log_pi - torch.empty_like(log_pi).exponential_().log()).argmax(dim=1)
        if self.learns:
            self._keep(ids, shown, actions, values, rewards, over)
        return actions.cpu().numpy()

    def _keep(
        self, ids: np.ndarray, observations: torch.Tensor, actions: torch.Tensor,
        values: torch.Tensor, rewards: torch.Tensor, over: torch.Tensor,
    ) -> None:  # fmt: skip
        steps = torch.from_numpy(self.played[ids] % STEPS).to(self.device, non_blocking=True)
        envs = torch.from_numpy(ids.astype(np.int64)).to(self.device, non_blocking=True)
        before = (steps - 1) % STEPS
        self.rewards[before, envs] = rewards.to(self.device).float().sign()
        self.over[before, envs] = over.to(self.device)
        self.observations[steps, envs] = observations
        self.actions[steps, envs], self.values[steps, envs] = actions, values
        self.played[ids] += 1
        if self.played.sum() >= (self.updates + 1) * STEPS * self.num_envs:
            self._learn()
            self.updates += 1

    def _learn(self) -> None:
        """One pass over the steps that are kept, except the last, with n-step returns."""
        returns = torch.zeros_like(self.rewards)
        following = self.values[-1]
        for step in reversed(range(STEPS - 1)):
            following = self.rewards[step] + DISCOUNT * following * ~self.over[step]
            returns[step] = following
        count = (STEPS - 1) * self.num_envs
        for chosen in torch.randperm(count, device=self.device).chunk(MINIBATCHES):
            log_pi, values = self._outputs(self.observations.flatten(0, 1)[chosen])
            targets = returns.flatten()[chosen]
            taken = log_pi.gather(1, self.actions.flatten()[chosen].unsqueeze(1)).squeeze(1)
            entropy = -(log_pi.exp() * log_pi).sum(1).mean()
            policy_loss = -((targets - values).detach() * taken).mean()
            value_loss = 0.5 * (targets - values).square().mean()
            loss = policy_loss + VALUE_COEFFICIENT * value_loss - ENTROPY_COEFFICIENT * entropy
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
