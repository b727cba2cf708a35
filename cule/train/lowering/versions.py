"""Versions of networks that several learnings train: which update of which comes before which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from cule.train.plan.index import Index, constant

Step = TypeVar("Step", int, Index)


def rounds(start: int, period: int, t: Step) -> Step:
    """How many of the steps start, start + period, ... there are up to t; below 0 long before."""
    return (t - start + period) // period


@dataclass(frozen=True)
class Phases:
    """The phases of a learning.

    Attributes:
        start: the step after which the first is.
        period: steps between two.
        updates: updates in each.
        transitions: from how many each of them learns.
        networks: the names of those that it trains.
    """

    start: int
    period: int
    updates: int
    transitions: int
    networks: tuple[str, ...]

    def made_by(self, t: Index) -> Index:
        """How many phases there are up to and with step t."""
        return rounds(self.start, self.period, t).at_least(0)

    def made_in(self, steps: int) -> int:
        """How many phases there are in so many steps."""
        return max(0, rounds(self.start, self.period, steps - 1))


@dataclass(frozen=True)
class Versions:
    """The phases of all learnings, in the order in which they are declared.

    A version of a network counts the updates of all learnings that train it.
    """

    learnings: Sequence[Phases]

    @property
    def first(self) -> int:
        """The step after which the first phase of all is."""
        return min(phases.start for phases in self.learnings)

    def of_others(self, name: str, number: int, t: Index) -> Index:
        """The updates of a network by other learnings, before those of a learning at step t.

        Args:
            name: the network.
            number: of the learning.
            t: the step.
        """
        total = constant(0)
        for other, phases in enumerate(self.learnings):
            if other != number and name in phases.networks:
                total += phases.made_by(t if other < number else t - 1) * phases.updates
        return total

    def after(self, name: str, t: Index) -> Index:
        """The updates of a network by all learnings, up to and with step t."""
        return self.of_others(name, len(self.learnings), t)
