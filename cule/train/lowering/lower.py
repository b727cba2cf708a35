"""An algorithm becomes a program: recurrents for what is stored, operations in their order.

A step is: act, emulate. A phase of learning is: values of all observations (`evaluate`), `prepare`,
then updates: choose transitions, gradient, mean over processes, optimizer, copies of networks. With
a lag of 0 it is declared after the last step of an iteration, and reads its results. With a lag of
1 it is declared before the first step, and acting gets its weights after the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.declaration import Acting, Declaration, LearningPhase
from cule.train.distributed.reduction import Reduction
from cule.train.envs.collector import Collector
from cule.train.lowering.acting import declare_acting, declare_emulating, declare_handing_over
from cule.train.lowering.attributes import constant_classes
from cule.train.lowering.learner import Learner
from cule.train.lowering.learning_phase import declare_phase
from cule.train.lowering.method_checks import check_learning, check_names, check_parts
from cule.train.lowering.networks import Networks
from cule.train.lowering.parts import Parts
from cule.train.lowering.replay import Priorities
from cule.train.lowering.sandbox import Sandbox, constant
from cule.train.nn.frame_ring import FrameRing
from cule.train.plan.program import Program, Recurrent


@dataclass(frozen=True)
class Lowered:
    """An algorithm's program.

    Attributes:
        program: the operations.
        learner: computes gradients and updates in it.
        observation: the tensor of observations over steps.
        stored: the tensors over steps that are stored besides the observations, by name.
        actors: the versions of the networks that act, by name.
        updates: how many updates a phase of learning has.
        start: the step of the first phase, which comes before it with a lag, else after it.
        bytes: of the priorities of a replay memory, on the device.
    """

    program: Program
    learner: Learner
    observation: Recurrent
    stored: dict[str, Recurrent]
    actors: dict[str, Recurrent]
    updates: int
    start: int
    bytes: int


def lower(
    algorithm: Algorithm[Any],
    nets: Networks,
    collector: Collector,
    optimizer: torch.optim.Optimizer,
    reduction: Reduction | None,
    sandbox: Sandbox,
    latest_start: int | None = None,
) -> Lowered:
    """Makes the program of an algorithm.

    Args:
        algorithm: what is lowered.
        nets: its networks.
        collector: the envs of this process.
        optimizer: of the networks that are trained.
        reduction: averages the gradients of several processes; None: one process learns.
        sandbox: the context in which its methods are called.
        latest_start: the most steps before learning, even if it is declared to begin later; None:
            it begins as declared.

    Raises:
        ValueError: the declaration or what a method returns is wrong.
    """
    observation = Recurrent(
        "observations", collector.observation_shape, collector.observation_dtype, initial=0,
        stack=collector.stack, store=FrameRing if collector.stack > 1 else None,
        # torch.compile gets the observations, and has to see a plain tensor.
        deferred=not algorithm.args.compile,
    )  # fmt: skip
    with sandbox(), constant(nets.named()), constant_classes(algorithm):
        declaration = Declaration(
            collector.num_envs, observation, algorithm.keeps, algorithm.evaluates
        )
        algorithm.declare(declaration)
        phase = _checked_phase(algorithm, declaration)
        if latest_start is not None:
            start = min(phase.learning.start, latest_start)
            phase = replace(phase, learning=replace(phase.learning, start=start))
        program = declaration.program
        program.period = phase.learning.period
        parts = Parts(
            algorithm, declaration, phase, nets, collector, optimizer, reduction, sandbox,
            autocast=autocast(algorithm),
            trained={n: program.object(n, net, output=True) for n, net in nets.trained.items()},
            actors={n: program.object(f"{n} (acting)", net) for n, net in nets.acting.items()},
            copied={n: program.object(n, net) for n, (net, _) in nets.copies.items()},
            envs=program.object("envs", collector, output=True),
        )  # fmt: skip
        learner = _declare_all(parts)
    objects = (recurrent.object for recurrent in program.recurrents)
    return Lowered(
        program, learner, observation, declaration.stored, parts.actors, parts.updates, parts.start,
        bytes=sum(one.bytes for one in objects if isinstance(one, Priorities)),
    )  # fmt: skip


def autocast(algorithm: Algorithm[Any]) -> torch.autocast:
    """The context in which an algorithm's networks compute: bfloat16 if the settings ask for it."""
    return torch.autocast(algorithm.device.type, torch.bfloat16, enabled=algorithm.args.bf16)


def _checked_phase(algorithm: Algorithm[Any], declaration: Declaration) -> LearningPhase:
    """The declared phase of learning, checked.

    Raises:
        ValueError: acting, emulating or learning is not declared, or one contradicts another.
    """
    phase, incomplete = (
        declaration.phase,
        InvalidValue("expected declare() to declare acting, emulating and learning"),
    )
    if phase is None:
        raise incomplete
    learning = check_learning(phase.learning)
    if learning != algorithm.learning():
        raise InvalidValue(
            f"expected declare() to declare what learning() returns, {algorithm.learning()}, got "
            f"{learning}"
        )
    learning.check(declaration.num_envs)
    check_parts(algorithm, phase.reads)
    if learning.replay is not None and (algorithm.prepares or algorithm.evaluates):
        raise InvalidValue(
            "expected no prepare and no evaluates with a replay memory: they are of the steps just "
            "played"
        )
    if not declaration.steps:
        raise incomplete
    return phase


def _declare_all(p: Parts) -> Learner:
    """Appends all operations to the program; returns the learner."""
    lag = p.phase.learning.lag
    if lag:
        learner = declare_phase(p)
    for step in p.declaration.steps:
        if isinstance(step, Acting):
            declare_acting(p, step)
        else:
            declare_emulating(p)
    if not lag:
        learner = declare_phase(p)
    declare_handing_over(p)
    check_names(p.program)
    return learner
