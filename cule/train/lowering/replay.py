"""Sampling from a replay memory: uniformly, or by priorities that the loss returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.batch import sample
from cule.train.lowering.parts import Parts
from cule.train.nn.sum_tree import SumTree
from cule.train.plan.index import Index
from cule.train.plan.program import Access, Recurrent
from cule.train.plan.stores import Window


@dataclass(frozen=True)
class Sampling:
    """The rows that an update learns from.

    Attributes:
        chosen: the shuffled places of all transitions, or those of what was sampled.
        weights: an update's read of the importance weights; None: there are no priorities.
        priorities: the versions of the priorities; None: there are none.
        version: the version of the priorities that an update samples from.
    """

    chosen: Access
    weights: Access | None = None
    priorities: Recurrent | None = None
    version: Index | None = None

    @property
    def reads(self) -> list[Access]:
        """An update's reads."""
        return [self.chosen] if self.weights is None else [self.chosen, self.weights]


class Priorities:
    """The chances of the steps of a replay memory to be sampled (Schaul et al., 2016).

    A place of the tree belongs to a step of an env, by the step modulo the memory's steps. Steps
    that cannot be sampled have a chance of 0: those that are too old or too new for the memory's
    window, and those that were not played.

    Args:
        p: the parts of the program.
        steps: of the memory's window.

    Attributes:
        highest: () float64, the highest (priority + epsilon) ** alpha so far, at first 1.
    """

    def __init__(self, p: Parts, steps: int):
        replay = p.phase.learning.replay
        assert replay is not None and replay.prioritized is not None
        self.replay, self.rule, self.now = replay, replay.prioritized, p.algorithm.now
        self.period, self.steps = p.phase.learning.period, steps
        self.num_envs = p.num_envs
        self.slots = steps + replay.span + self.period
        self.tree = SumTree(self.slots * p.num_envs, p.device)
        self.highest = torch.ones((), dtype=torch.float64, device=p.device)
        self._envs = torch.arange(p.num_envs, device=p.device)
        self._recent = torch.arange(self.period, device=p.device) - (self.period - 1)

    @property
    def bytes(self) -> int:
        """Bytes on the device."""
        return self.tree.bytes

    def add(self, position: torch.Tensor, played: torch.Tensor) -> None:
        """Takes in the steps of a period, and takes out those that have become too old.

        Args:
            position: (1,) int64, steps played so far.
            played: (period, num_envs) bool, of the steps that can be sampled from now on.
        """
        last = position - self.replay.span + self._recent
        values = (played & (last >= 0).unsqueeze(1)).double() * self.highest
        gone = position - self.steps - 1 + self._recent
        self.tree.set(self._places(gone), torch.zeros_like(values).flatten())
        self.tree.set(self._places(last), values.flatten())

    def _places(self, steps: torch.Tensor) -> torch.Tensor:
        """The tree's places of all envs at some steps."""
        return ((steps % self.slots).unsqueeze(1) * self.num_envs + self._envs).flatten()

    def sample(self, position: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws a step of an env from each of equal shares of the total.

        Args:
            position: (1,) int64, steps played so far.

        Returns:
            (3, minibatch) int64: places in the window, envs and the tree's places; and the
            importance weights, (minibatch,) float32.
        """
        count = self.replay.minibatch
        each = torch.rand(count, dtype=torch.float64, device=position.device)
        shares = (each + torch.arange(count, device=position.device)) / count
        drawn = self.tree.draw(shares)
        back = (position - 1 - drawn // self.num_envs) % self.slots
        chances = self.tree.values(drawn)
        beta = self.rule.beta
        exponent: Any = beta
        if isinstance(beta, str):
            exponent = getattr(self.now, beta).double().clamp(0, 1)
        weights = (chances.min() / chances) ** exponent
        chosen = torch.stack([self.steps - 1 - back, drawn % self.num_envs, drawn])
        return chosen, weights.float()

    def change(self, places: torch.Tensor, priorities: torch.Tensor) -> None:
        """Gives what was sampled other priorities.

        Args:
            places: (minibatch,) int64, the tree's.
            priorities: (minibatch,) float32.
        """
        # A training that returns others ends at the next line of its log (Learner.wrong).
        fine = (priorities >= 0) & priorities.isfinite()
        known = torch.where(fine, priorities, 0.0).double()
        values = (known + self.rule.epsilon) ** self.rule.alpha
        self.tree.set(places, values)
        self.highest.copy_(torch.maximum(self.highest, values.max()))

    def state_dict(self) -> dict[str, Any]:
        """The tree and the highest number."""
        return {"tree": self.tree.state_dict(), "highest": self.highest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what state_dict() returned."""
        self.tree.load_state_dict(state["tree"])
        self.highest.copy_(state["highest"])


def declare_sampling(p: Parts, loop: Mapping[str, Any], stop: Index, steps: int) -> Sampling:
    """Appends the choice of an update's rows in the replay memory.

    Args:
        p: the parts of the program.
        loop: the arguments of `Program.operation` that say when updates are.
        stop: the index after the last step.
        steps: of the memory's window.

    Raises:
        ValueError: beta names no schedule.
    """
    program, replay = p.program, p.phase.learning.replay
    assert replay is not None
    rows = 2 if replay.prioritized is None else 3
    chosen = program.recurrent(
        p.named("sampled"), (rows, replay.minibatch), torch.int64, over="update"
    )
    if replay.prioritized is not None:
        return _declare_prioritized(p, loop, stop, steps, chosen)
    memory = steps + 3

    def function(position: torch.Tensor) -> torch.Tensor:
        return sample(memory, replay.minibatch, p.num_envs, position, replay.span)

    program.operation(
        p.named("sample"),
        function,
        role="learn",
        **loop,
        moments=(stop,),
        writes=[chosen[program.u]],
    )
    return Sampling(chosen[program.u])


def _declare_prioritized(
    p: Parts, loop: Mapping[str, Any], stop: Index, steps: int, chosen: Recurrent
) -> Sampling:
    """Appends what takes in new steps, and what samples by priorities."""
    program, replay = p.program, p.phase.learning.replay
    assert replay is not None and replay.prioritized is not None
    beta = replay.prioritized.beta
    if isinstance(beta, str) and not hasattr(p.algorithm.now, beta):
        known = ", ".join(vars(p.algorithm.now)) or "none"
        raise InvalidValue(
            f"expected beta of Prioritized to be a number or the name of a schedule ({known}), "
            f"got {beta!r}"
        )
    period = p.phase.learning.period
    priorities = program.object(p.named("priorities"), Priorities(p, steps))
    weights = program.recurrent(p.named("weights"), (replay.minibatch,), over="update")
    begin = p.start % period
    # Periods before the first phase of learning, in which steps are only taken in.
    before = (p.start - begin) // period
    added = program.u + p.updates * (program.u - before).at_least(0)
    newest = stop - replay.span + 1

    def add(played: Window, priorities: Priorities, position: torch.Tensor) -> tuple[()]:
        priorities.add(position, played.all())
        return ()

    def sample_by_priority(priorities: Priorities, position: torch.Tensor) -> tuple[Any, ...]:
        return priorities.sample(position)

    played = p.declaration.stored["played"][newest - period : newest]
    program.operation(
        p.named("add priorities"), add, role="learn", every=period, start=begin, moments=(stop,),
        reads=[replace(played, since=0), priorities[added]], writes=[priorities[added + 1]],
    )  # fmt: skip
    version = (program.u // p.updates) * (p.updates + 1) + program.j + (before + 1)
    program.operation(
        p.named("sample"), sample_by_priority, role="learn", **loop, moments=(stop,),
        reads=[priorities[version]], writes=[chosen[program.u], weights[program.u]],
    )  # fmt: skip
    return Sampling(chosen[program.u], weights[program.u], priorities, version)


def declare_new_priorities(
    p: Parts, loop: Mapping[str, Any], sampling: Sampling, learner: Access
) -> None:
    """Appends what gives the rows of an update the priorities that its loss has returned.

    Args:
        p: the parts of the program.
        loop: the arguments of `Program.operation` that say when updates are.
        sampling: how the rows were sampled.
        learner: a read of the learner after the gradient.
    """
    if sampling.priorities is None or sampling.version is None:
        return
    before, after = sampling.priorities[sampling.version], sampling.version + 1

    def function(chosen: torch.Tensor, priorities: Priorities, learner: Any) -> tuple[()]:
        priorities.change(chosen[2], learner.priorities)
        return ()

    p.program.operation(
        p.named("change priorities"), function, role="learn", **loop,
        reads=[sampling.chosen, before, learner], writes=[sampling.priorities[after]],
    )  # fmt: skip
