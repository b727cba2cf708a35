"""What is evaluated: a function from observations to log-probabilities, with its memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import nn

from cule.train.algorithm import Algorithm, Nets
from cule.train.lowering.attributes import Attributes
from cule.train.lowering.method_checks import check_scores
from cule.train.nn.memory import Carry, carrying, memories_of


class Policy:
    """A policy.

    Args:
        scores: maps (n, 4, 84, 84) uint8 to log-probabilities (n, num_actions).
        nets: its networks by name, whose memories it needs to go on in an episode.
        attributes: what `scores` may change besides; None: not known, so that a CUDA graph never
            takes the place of a call.
    """

    def __init__(
        self,
        scores: Callable[[torch.Tensor], torch.Tensor],
        nets: Mapping[str, nn.Module] | None = None,
        attributes: Attributes | None = None,
    ):
        self.scores, self.attributes, self.nets = scores, attributes, {**(nets or {})}
        self.memories = tuple(memories_of(self.nets).values())

    def begin(self, episodes: int, device: torch.device) -> Episodes:
        """Begins so many episodes, which are played side by side."""
        return Episodes(self, episodes, device)


class Episodes:
    """Episodes that are played with a policy, one step after the other.

    Args:
        policy: the policy.
        count: how many episodes.
        device: where the policy computes.
    """

    def __init__(self, policy: Policy, count: int, device: torch.device):
        self._policy = policy
        self._states = {
            memory: torch.zeros(count, *memory.shape, device=device) for memory in policy.memories
        }

    def scores(
        self,
        observations: torch.Tensor,
        which: np.ndarray | None = None,
        started: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The log-probabilities of the next actions, (n, num_actions).

        Args:
            observations: (n, 4, 84, 84) uint8, on the device.
            which: (n,) int64, the numbers of these episodes; None: they are all.
            started: (n,) bool, where an episode begins anew; None: nowhere.
        """
        rows = slice(None) if which is None else torch.from_numpy(which).to(observations.device)
        first = {
            memory: functools.partial(state.__getitem__, rows)
            for memory, state in self._states.items()
        }
        if started is None:
            started = torch.zeros(len(observations), dtype=torch.bool, device=observations.device)
        begins = started.unsqueeze(0)
        with carrying(Carry(first, lambda: begins)) as carry:
            scores = self._policy.scores(observations)
        for memory, states in self._states.items():
            state = carry.after(memory)
            if state is not None:
                states[rows] = state
        return scores


def policy_from(
    algorithm: Algorithm[Any], nets: Nets, context: AbstractContextManager[Any]
) -> Policy:
    """The policy of an algorithm's `scores`.

    Args:
        algorithm: the algorithm.
        nets: the networks that it gets.
        context: in which it computes.
    """

    def scores(observations: torch.Tensor) -> torch.Tensor:
        with context:
            values = algorithm.scores(nets, observations)
        return check_scores(values, len(observations), algorithm.num_actions)

    return Policy(scores, vars(nets), Attributes(algorithm, list(vars(nets).values())))
