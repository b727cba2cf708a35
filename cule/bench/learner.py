"""The learner of the modes with batches: the Nature CNN acts, and learns from what was played."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from cule.bench.systems import nature_features

# An update is of so many steps of all envs, in so many minibatches.
STEPS, MINIBATCHES = 16, 4
DISCOUNT, VALUE_COEFFICIENT, ENTROPY_COEFFICIENT = 0.99, 0.5, 0.01
# Calls before a function's work is captured, in which libraries choose and allocate.
WARM_UP = 3


def captured(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """The function; its kernels on a GPU are captured now, and start together at each call.

    It is called a few times meanwhile.
    """
    if device.type != "cuda":
        return function
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            function()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


class Batch:
    """What the learner is told of a batch of envs, and the actions that it draws.

    Args:
        size: how many envs.
        device: the learner's; tensors of the host are pinned if it is a GPU.

    Attributes:
        observations: (size, 4, 84, 84) uint8 on the device.
        places: (2, size) int64 on the device: for each env its next step, modulo STEPS, and its
            number.
        ends: (2, size) float32 on the device: the reward of its last action, and whether that
            ended an episode.
        actions: (size,) int64 on the host.
    """

    def __init__(self, size: int, device: torch.device):
        pin = device.type == "cuda"
        self.observations = torch.zeros((size, 4, 84, 84), dtype=torch.uint8, device=device)
        self._places = torch.zeros((2, size), dtype=torch.int64, pin_memory=pin)
        self._ends = torch.zeros((2, size), pin_memory=pin)
        self.actions = torch.zeros(size, dtype=torch.int64, pin_memory=pin)
        self.places, self.ends = self._places.to(device), self._ends.to(device)

    def show(
        self, observations: torch.Tensor, steps: np.ndarray, ids: np.ndarray,
        rewards: torch.Tensor, over: torch.Tensor,
    ) -> None:  # fmt: skip
        """Copies what has come to the device, without waiting for it."""
        self.observations.copy_(observations, non_blocking=True)
        for row, values in zip(self._places, (steps, ids), strict=True):
            row.copy_(torch.from_numpy(values))
        for row, told in zip(self._ends, (rewards, over), strict=True):
            row.copy_(told)
        self.places.copy_(self._places, non_blocking=True)
        self.ends.copy_(self._ends, non_blocking=True)


class Learner:
    """An actor-critic. It draws actions, and after each STEPS steps learns from them once.

    Acting for a batch and an update are each captured once on a GPU. So the host starts either at
    once, for a small batch as for a large one.

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
        # By a batch's size: its tensors, and what acts for it.
        self._batches: dict[int, tuple[Batch, Callable[[], None]]] = {}
        if not learns:
            return
        parameters = [*self.features.parameters(), *self.heads.parameters()]
        self.optimizer = torch.optim.Adam(parameters, 2.5e-4, capturable=device.type == "cuda")
        shape = (STEPS, num_envs)
        self.observations = torch.zeros((*shape, 4, 84, 84), dtype=torch.uint8, device=device)
        self.actions = torch.zeros(shape, dtype=torch.int64, device=device)
        self.rewards = torch.zeros(shape, device=device)
        self.values = torch.zeros(shape, device=device)
        self.over = torch.zeros(shape, dtype=torch.bool, device=device)
        self.played = np.zeros(num_envs, np.int64)
        self._update: Callable[[], None] | None = None

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
        size = len(ids)
        if size not in self._batches:
            batch = Batch(size, self.device)
            self._batches[size] = batch, captured(lambda: self._act(batch), self.device)
        batch, act = self._batches[size]
        steps = self.played[ids] % STEPS if self.learns else np.zeros(size, np.int64)
        batch.show(observations, steps, ids.astype(np.int64), rewards, over)
        act()
        if self.learns:
            self.played[ids] += 1
        self._wait()
        actions = batch.actions.numpy().copy()
        if self.learns and self.played.sum() >= (self.updates + 1) * STEPS * self.num_envs:
            if self._update is None:
                self._update = captured(self._learn, self.device)
            self._update()
            self.updates += 1
        return actions

    def _wait(self) -> None:
        """Waits for the device; a busy thread would take a CPU from the envs."""
        if self.device.type == "cuda":
            done = torch.cuda.Event(blocking=True)
            done.record()
            done.synchronize()

    def _act(self, batch: Batch) -> None:
        """Draws a batch's actions, and keeps what is learned from."""
        with torch.no_grad():
            log_pi, values = self._outputs(batch.observations)
            # Samples by a race of exponentials, as torch.multinomial would wait for the device.
            actions = (log_pi - torch.empty_like(log_pi).exponential_().log()).argmax(dim=1)
            batch.actions.copy_(actions, non_blocking=True)
            if not self.learns:
                return
            (steps, envs), (rewards, over) = batch.places, batch.ends
            before = (steps - 1) % STEPS
            self.rewards[before, envs], self.over[before, envs] = rewards.sign(), over.bool()
            self.observations[steps, envs] = batch.observations
            self.actions[steps, envs], self.values[steps, envs] = actions, values

    def _learn(self) -> None:
        """One pass over the steps that are kept, except the last, with n-step returns."""
        returns = torch.zeros_like(self.rewards)
        following = self.values[-1]
        for step in reversed(range(STEPS - 1)):
            following = self.rewards[step] + DISCOUNT * following * ~self.over[step]
            returns[step] = following
        count = (STEPS - 1) * self.num_envs
        # randperm would wait for the device.
        for chosen in torch.rand(count, device=self.device).argsort().chunk(MINIBATCHES):
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
