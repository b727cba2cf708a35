"""An algorithm becomes a program: recurrents for what is stored, operations in their order.

A step is: act, emulate. A phase of learning is: values of all observations (`evaluate`), `prepare`,
then updates: choose transitions, gradient, mean over processes, optimizer, copies of networks. With
a lag of 0 it is declared after the last step of an iteration, and reads its results. With a lag of
1 it is declared before the first step, and acting gets its weights after the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.declaration import Acting, Declaration, LearningPhase
from cule.train.distributed.reduction import Reduction
from cule.train.envs.collector import Collector
from cule.train.learning import Learning
from cule.train.lowering.acting import declare_acting, declare_emulating, declare_handing_over
from cule.train.lowering.attributes import constant_classes
from cule.train.lowering.learner import Learner
from cule.train.lowering.learning_checks import check_logged, check_trained
from cule.train.lowering.learning_phase import Prepared, declare_phase
from cule.train.lowering.memories import Memories, check_memories
from cule.train.lowering.method_checks import check_learning, check_names, check_parts
from cule.train.lowering.networks import Networks, Optimizers
from cule.train.lowering.parts import Parts
from cule.train.lowering.replay import Priorities
from cule.train.lowering.sandbox import Sandbox, alike, constant
from cule.train.lowering.versions import Phases, Versions
from cule.train.nn.frame_ring import FrameRing
from cule.train.plan import annotate
from cule.train.plan.program import Access, Program, Recurrent


@dataclass(frozen=True)
class Lowered:
    """An algorithm's program.

    Attributes:
        program: the operations.
        learners: compute gradients and updates in it, that of the main learning first.
        observation: the tensor of observations over steps.
        stored: the tensors over steps that are stored besides the observations, by name.
        actors: the versions of the networks that act, by name.
        learnings: when their phases are; with a lag a phase comes before its step, else after it.
        bytes: of the priorities of a replay memory, on the device.
    """

    program: Program
    learners: Sequence[Learner]
    observation: Recurrent
    stored: dict[str, Recurrent]
    actors: dict[str, Recurrent]
    learnings: Sequence[Phases]
    bytes: int

    @property
    def learner(self) -> Learner:
        """That of the main learning."""
        return self.learners[0]

    @property
    def start(self) -> int:
        """The step of the main learning's first phase."""
        return self.learnings[0].start

    def updates(self, steps: int) -> int:
        """Updates of all learnings in so many steps."""
        return sum(one.updates * one.made_in(steps) for one in self.learnings)

    def transitions(self, steps: int) -> int:
        """Transitions from which they learn in so many steps; in each epoch they count once."""
        return sum(one.transitions * one.updates * one.made_in(steps) for one in self.learnings)


@annotate.operation("plan")
def lower(
    algorithm: Algorithm[Any],
    nets: Networks,
    collector: Collector,
    optimizers: Optimizers,
    reduction: Reduction | None,
    sandbox: Sandbox,
    latest_start: int | None = None,
) -> Lowered:
    """Makes the program of an algorithm.

    Args:
        algorithm: what is lowered.
        nets: its networks.
        collector: the envs of this process.
        optimizers: of the networks that are trained.
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
        envs, keeps, evaluates = collector.num_envs, algorithm.keeps, algorithm.evaluates
        declaration = Declaration(envs, observation, keeps, evaluates, collector.num_players)
        algorithm.declare(declaration)
        phases = [
            replace(one, learning=_started_by(one.learning, latest_start))
            for one in _checked_phases(algorithm, declaration, nets)
        ]
        program = declaration.program
        program.period = phases[0].learning.period
        versions = Versions([_phases_of(one, declaration.num_envs, nets) for one in phases])
        main = Parts(
            algorithm, declaration, phases[0], 0, versions, nets, collector, optimizers, reduction,
            sandbox, autocast=autocast(algorithm),
            trained={n: program.object(n, net, output=True) for n, net in nets.trained.items()},
            actors={n: program.object(f"{n} (acting)", net) for n, net in nets.acting.items()},
            copied={n: program.object(n, net) for n, (net, _) in nets.copies.items()},
            envs=program.object("envs", collector, output=True),
            memories=Memories(declaration, nets),
        )  # fmt: skip
        parts = [replace(main, phase=phase, number=n) for n, phase in enumerate(phases)]
        program, learners = _declare_all(parts)
        check_logged([name for learner in learners for name in learner.logged])
    objects = (recurrent.object for recurrent in program.recurrents)
    return Lowered(
        program, learners, observation, declaration.stored, main.actors, versions.learnings,
        bytes=sum(one.bytes for one in objects if isinstance(one, Priorities)),
    )  # fmt: skip


def _prepared_apart(program: Program, unchanged: bool) -> Program:
    """The program in which each learning prepares for itself, unless attributes are unchanged.

    What a method leaves in an attribute of the algorithm, another method may read.
    """
    if unchanged:
        return program

    def apart(write: Access) -> Access:
        return replace(write, same=None) if isinstance(write.same, Prepared) else write

    return program.with_operations(
        replace(o, writes=tuple(apart(write) for write in o.writes)) for o in program.operations
    )


def _started_by(learning: Learning, latest_start: int | None) -> Learning:
    if latest_start is None:
        return learning
    return replace(learning, start=min(learning.start, latest_start))


def _phases_of(phase: LearningPhase, num_envs: int, nets: Networks) -> Phases:
    learning = phase.learning
    first = learning.first(num_envs)
    return Phases(
        first if learning.lag else first - 1, learning.period, learning.updates(num_envs),
        learning.transitions(num_envs), phase.networks or tuple(nets.trained),
    )  # fmt: skip


def autocast(algorithm: Algorithm[Any]) -> torch.autocast:
    """The context in which an algorithm's networks compute: bfloat16 if the settings ask for it."""
    return torch.autocast(algorithm.device.type, torch.bfloat16, enabled=algorithm.args.bf16)


def _checked_phases(
    algorithm: Algorithm[Any], declaration: Declaration, nets: Networks
) -> list[LearningPhase]:
    """The declared learnings, checked.

    Raises:
        ValueError: acting, emulating or learning is not declared, or one contradicts another.
    """
    phases = declaration.phases
    incomplete = InvalidValue("expected declare() to declare acting, emulating and learning")
    if not phases:
        raise incomplete
    main = check_learning(phases[0].learning)
    if main != algorithm.learning():
        raise InvalidValue(
            f"expected declare() to declare what learning() returns, {algorithm.learning()}, got "
            f"{main}"
        )
    if not declaration.steps:
        raise incomplete
    for phase in phases:
        learning = check_learning(phase.learning)
        learning.check(declaration.num_envs)
        check_parts(algorithm, phase.reads, prioritized=learning.prioritized)
        prepares = phase.prepare is not None
        if phase is phases[0]:
            prepares |= algorithm.prepares or bool(algorithm.evaluates)
        if learning.replay is not None and prepares:
            raise InvalidValue(
                "expected no prepare and no evaluates with a replay memory: they are of the steps "
                "just played"
            )
        if len(phases) > 1 and (learning.lag or learning.accumulate > 1):
            raise InvalidValue(
                f"expected several learnings without lag and accumulate, got {learning.lag} and "
                f"{learning.accumulate}"
            )
        if learning.ahead and (phase.reads or algorithm.evaluates):
            raise InvalidValue(
                "expected no evaluates and no reads of learning with ahead, whose steps may not be "
                f"there, got {', '.join([*algorithm.evaluates, *phase.reads])}"
            )
        if learning.period % main.period:
            raise InvalidValue(
                f"expected the period of {phase.name} to be a multiple of the main learning's, "
                f"{main.period}, got {learning.period}"
            )
    check_memories(algorithm, [phase.learning for phase in phases], declaration.num_envs, nets)
    check_trained(phases, nets.trained, {name: copy.of for name, (_, copy) in nets.copies.items()})
    return phases


def _declare_all(parts: Sequence[Parts]) -> tuple[Program, list[Learner]]:
    """Appends all operations to the program; returns it and the learners."""
    main, learners = parts[0], list[Learner]()
    attributes = main.sandbox.attributes()
    lag = main.phase.learning.lag
    if lag:
        learners.append(declare_phase(main))
    for step in main.declaration.steps:
        if isinstance(step, Acting):
            declare_acting(main, step)
        else:
            declare_emulating(main)
    if not lag:
        learners += [declare_phase(p) for p in parts]
    declare_handing_over(main)
    check_names(main.program)
    return _prepared_apart(main.program, alike(main.sandbox.attributes(), attributes)), learners
