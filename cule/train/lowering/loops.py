"""When the operations of a phase of learning are called, and from which steps they learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cule.train.learning import Learning
from cule.train.plan.index import Index, minimum
from cule.train.plan.program import Program


@dataclass(frozen=True)
class Loop:
    """When an operation of a phase is called, and how far learning is then.

    Attributes:
        when: the arguments of `Program.operation` that say it.
        round: the number of the round.
        update: how many updates there were before: the version of the weights that it reads.
    """

    when: dict[str, Any]
    round: Index
    update: Index


@dataclass(frozen=True)
class Loops:
    """When all operations of a phase are called.

    A round evaluates and prepares some steps, from which one or more gradients are computed. It is
    a phase, or with Learning.accumulate what belongs to one of an update's gradients.

    Attributes:
        round: for operations that are called once in a round.
        gradient: for those of each gradient.
        update: for those of each update.
        accumulate: gradients in an update.
        first, stop: in operations of rounds and gradients, the first step that they learn from, and
            the index after the last.
        steps: how many steps that are at most.
    """

    round: Loop
    gradient: Loop
    update: Loop
    accumulate: int
    first: Index
    stop: Index
    steps: int


def loops_of(learning: Learning, program: Program, start: int, updates: int, steps: int) -> Loops:
    """The loops of a learning.

    Args:
        learning: when and from what.
        program: to which the operations are appended.
        start: the step of the first phase: before it with a lag, else after it.
        updates: updates in a phase.
        steps: the steps that a round learns from.
    """
    t, u = program.t, program.u
    if learning.accumulate > 1:
        return _accumulating(learning, program, start)
    round_: dict[str, Any] = {"every": learning.period, "start": start}
    each = Loop(round_ | {"times": updates}, u // updates, u)
    stop = t if learning.lag else t + 1
    return Loops(Loop(round_, u, u * updates), each, each, 1, stop - steps, stop, steps)


def _accumulating(learning: Learning, program: Program, start: int) -> Loops:
    """The loops where an update has several gradients: each as soon as its steps are there."""
    t, j, each, more = program.t, program.j, learning.steps, learning.waiting
    period, begin = learning.period, start + 1 - learning.period
    when: dict[str, Any] = {"every": each, "start": begin + each - 1}
    first, stop = t + 1 - each, t + 1
    if more:
        # The last gradients of an update come together: what is ahead of them ends with it.
        inside = (t - begin) % period
        due = (inside >= (more + 1) * each - 1) & ((j == 0) | (inside == period - 1))
        when |= {"times": more + 1, "when": due}
        first = t + 1 + (j - more - 1) * each
        stop = minimum(first + learning.window, begin + ((t - begin) // period + 1) * period)
    round_ = (t + 1 - begin) // each - more - 1 + j
    gradient = Loop(when, round_, round_ // learning.accumulate)
    update = Loop({"every": period, "start": start}, program.u, program.u)
    return Loops(gradient, gradient, update, learning.accumulate, first, stop, learning.window)
