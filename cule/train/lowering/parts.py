"""The parts from which a program is made: networks, envs, and their versions in the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cule.train.algorithm import Algorithm, Nets
from cule.train.declaration import Declaration, Kind, LearningPhase
from cule.train.distributed.reduction import Reduction
from cule.train.envs.collector import Collector
from cule.train.lowering.memories import Memories
from cule.train.lowering.networks import Networks, Optimizers, by_name
from cule.train.lowering.sandbox import Sandbox
from cule.train.lowering.versions import Versions
from cule.train.nn import kernels
from cule.train.nn.frame_ring import FrameRing
from cule.train.plan.domain import Domain
from cule.train.plan.index import Index
from cule.train.plan.polyhedra import most_indices
from cule.train.plan.program import Access, Program, Recurrent
from cule.train.plan.stores import Window


@dataclass(frozen=True)
class Parts:
    """The parts from which an algorithm's program is made.

    Attributes:
        algorithm: what is lowered.
        declaration: its declaration.
        phase: when and from what it learns.
        number: of the learning to which this phase belongs, 0 for the main one.
        versions: of networks, by the updates of all learnings.
        nets: its networks.
        collector: the envs of this process.
        optimizers: of the networks that are trained.
        reduction: averages the gradients of several processes; None: one process learns.
        sandbox: the context in which the algorithm's methods are called before training.
        autocast: the context in which networks compute.
        trained, actors, copied: the versions of networks that learn, that act, and of copies.
        envs: the versions of the envs.
        memories: the networks' memories.
    """

    algorithm: Algorithm[Any]
    declaration: Declaration
    phase: LearningPhase
    number: int
    versions: Versions
    nets: Networks
    collector: Collector
    optimizers: Optimizers
    reduction: Reduction | None
    sandbox: Sandbox
    autocast: torch.autocast
    trained: dict[str, Recurrent]
    actors: dict[str, Recurrent]
    copied: dict[str, Recurrent]
    envs: Recurrent
    memories: Memories

    @property
    def program(self) -> Program:
        """The program, to which operations are appended."""
        return self.declaration.program

    @property
    def t(self) -> Index:
        """The index of the step."""
        return self.program.t

    @property
    def device(self) -> torch.device:
        """The device of networks and tensors."""
        return self.collector.device

    @property
    def num_envs(self) -> int:
        """Envs of this process."""
        return self.collector.num_envs

    @property
    def updates(self) -> int:
        """How many updates a phase of learning has."""
        return self.versions.learnings[self.number].updates

    @property
    def start(self) -> int:
        """The step of the first phase of learning: before it with a lag, else after it."""
        return self.versions.learnings[self.number].start

    @property
    def trains(self) -> tuple[str, ...]:
        """The names of the networks that this learning trains."""
        return self.versions.learnings[self.number].networks

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The optimizer of these networks."""
        return self.optimizers.of(self.trains)

    @property
    def loss(self) -> Callable[..., Mapping[str, torch.Tensor]]:
        """The loss of this learning."""
        loss = self.phase.loss or self.algorithm.loss
        return self.memories.around(loss, self.phase.learning)

    @property
    def prepare(self) -> Callable[..., Mapping[str, torch.Tensor]] | None:
        """What computes further parts of its batches; None: nothing does."""
        if self.phase.prepare is not None or self.number or not self.algorithm.prepares:
            return self.phase.prepare
        return self.algorithm.prepare

    @property
    def evaluates(self) -> Mapping[str, Kind]:
        """What `evaluate` computes for its batches."""
        return {} if self.number else self.algorithm.evaluates

    def named(self, text: str) -> str:
        """A name for something of this learning, of which other learnings have one, too."""
        return f"{text} ({self.phase.name})" if self.number else text

    def version(self, name: str, own: Index) -> Index:
        """The version of a network that an operation of this learning has.

        Args:
            name: the network.
            own: the updates of this learning before.
        """
        others = self.versions.of_others(name, self.number, self.t)
        return own + others if name in self.trains else others

    @property
    def learned(self) -> list[nn.Module]:
        """The networks that a loss gets: those that learn, and copies."""
        return [*self.nets.trained.values(), *(net for net, _ in self.nets.copies.values())]

    @property
    def learned_names(self) -> list[str]:
        """The names of `learned`."""
        return [*self.trained, *self.copied]

    def acting_nets(self, names: Sequence[str], modules: Sequence[nn.Module]) -> Nets:
        """Networks for acting by their names, through torch.compile if the settings ask for it."""
        if self.algorithm.args.compile:
            modules = [self.collector.compiled(module) for module in modules]
        return by_name(names, modules)

    def blank(self, access: Access) -> Window:
        """A window of zeros in the shape of an access, for a call before there is a plan.

        Stacks that a plan's reads do not put together are not put together here either.
        """
        recurrent, count = access.recurrent, most_indices(access, Domain(), "the algorithm")
        n, *rest = recurrent.shape
        stacked = [recurrent.stack, *rest] if recurrent.stack > 1 else rest
        one = torch.zeros((1, 1, *stacked), dtype=recurrent.dtype, device=self.device)
        if recurrent.deferred and recurrent.store is FrameRing and kernels.serve(one):
            slots = torch.zeros(count, dtype=torch.int64, device=self.device)
            return Window(FrameRing.black(recurrent, self.device), slots)
        return Blank(one.expand(count, n, *stacked))

    def zeros(self, access: Access) -> torch.Tensor:
        """Zeros in the shape of a value that is read, likewise."""
        return self.blank(access).all()[0]


class Blank(Window):
    """A window of zeros, for calls of an algorithm's methods before there is a plan.

    Args:
        zeros: (length, num_envs, ...), which may be one expanded slot.
    """

    def __init__(self, zeros: torch.Tensor):
        self.zeros, self.count = zeros, None
        self.slots = torch.zeros(len(zeros), dtype=torch.int64, device=zeros.device)

    def __len__(self) -> int:
        return len(self.zeros)

    def all(self) -> torch.Tensor:
        """As Window.all."""
        return self.zeros

    def of(self, rows: torch.Tensor) -> torch.Tensor:
        """As Window.of."""
        return self.zeros[:, rows]

    def at(self, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """As Window.at."""
        return self.zeros[places, rows]
