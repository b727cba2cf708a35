"""An algorithm as a program: recurrents for what is kept, operations for what is done, in order.

A step is: act, emulate. A phase of learning is: values of all observations (`evaluate`), `prepare`,
then updates: choose transitions, gradient, mean over processes, optimizer, copies of networks. With
a lag of 0 it is declared after the last step of an iteration, and reads its results. With a lag of
1 it is declared before the first step, and acting gets its weights after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm, Nets
from cule.train.envs.async_cpu import AsyncCpuEnvs
from cule.train.envs.collector import Collector
from cule.train.learning import Copy, Learning
from cule.train.lowering.learner import Learner, by_name, copy_weights
from cule.train.lowering.learning_phase import Phase, blank, declare_phase
from cule.train.lowering.returned import (
    check_dtypes,
    check_kinds,
    check_learning,
    check_names,
    check_parts,
    check_tensors,
)
from cule.train.nn import draws
from cule.train.nn.frame_ring import FrameRing
from cule.train.nn.weights import Weights
from cule.train.plan.index import Index
from cule.train.plan.program import Access, Program, Recurrent

STEP = {"rewards": torch.float32, "discounts": torch.float32, "played": torch.bool}


@dataclass
class Networks:
    """All networks, and the copies that act.

    Attributes:
        trained: that learn, by name.
        copies: copies of others, by name, with what they are copies of.
        acting: what acts in place of each trained network.
        weights: of those that are trained, as the optimizer has them.
        unread: settings of networks that the algorithm does not read.
    """

    trained: dict[str, nn.Module]
    copies: dict[str, tuple[nn.Module, Copy]]
    acting: dict[str, nn.Module]
    weights: Weights
    unread: frozenset[str] = frozenset()

    def named(self) -> dict[str, nn.Module]:
        """All of them, by the names of their objects in a program."""
        copies = {name: net for name, (net, _) in self.copies.items()}
        acting = {f"{name} (acting)": net for name, net in self.acting.items()}
        return self.trained | copies | acting

    def all(self) -> list[nn.Module]:
        """All of them."""
        return list(self.named().values())


@dataclass
class Declaration:
    """What an algorithm declares; see Algorithm.declare.

    Attributes:
        algorithm: whose.
        nets: the networks.
        collector: the envs.
        learner: what learns.
        program: to which operations are added.
        observation, action, reward, discount, played, started: the tensors over steps. started is
            whether an observation is the first of an episode.
        kept: what `keeps` and `evaluates` name, over steps.
        trained, actors, copied: the versions of networks that learn, that act, and of copies.
        envs, state: the versions of the envs, and of gradient and optimizer.
        updates: in a phase of learning.
        first: the steps after which the first phase is.
    """

    algorithm: Algorithm[Any]
    nets: Networks
    collector: Collector
    learner: Learner
    observation: Recurrent
    program: Program = field(default_factory=Program)
    kept: dict[str, Recurrent] = field(default_factory=dict)
    _phase: Phase | None = None
    _step: list[Callable[[], None]] = field(default_factory=list)
    updates: int = 0
    first: int = 0

    def __post_init__(self) -> None:
        n = self.collector.num_envs
        check_kinds("keeps", self.algorithm.keeps)
        check_kinds("evaluates", self.algorithm.evaluates)
        names = {"actions": torch.int64, **STEP, **self.algorithm.keeps}
        self.kept = {name: self.recurrent(name, dtype) for name, dtype in names.items()}
        for name, dtype in self.algorithm.evaluates.items():
            self.kept[f"acting's {name}"] = self.recurrent(f"acting's {name}", dtype)
        self.started = Recurrent("started", (n,), torch.bool, initial=True)
        self.envs = self.program.object("envs", self.collector, kept=True)
        self.trained = {
            name: self.program.object(name, net, kept=True)
            for name, net in self.nets.trained.items()
        }
        self.actors = {
            name: self.program.object(f"{name} (acting)", net)
            for name, net in self.nets.acting.items()
        }
        self.copied = {
            name: self.program.object(name, net) for name, (net, _) in self.nets.copies.items()
        }
        self.state = self.program.object("learner", self.learner)

    @property
    def t(self) -> Index:
        """The step."""
        return self.program.t

    def recurrent(
        self, name: str, dtype: torch.dtype = torch.float32, *shape: int, **more: Any
    ) -> Recurrent:
        """A tensor over steps with a value (num_envs, *shape) at each."""
        return self.program.recurrent(name, (self.collector.num_envs, *shape), dtype, **more)

    # What an algorithm declares -------------------------------------------------------------------

    def acting(
        self,
        act: Callable[..., Mapping[str, torch.Tensor]],
        reads: Sequence[Access] = (),
        writes: Mapping[str, Access] | None = None,
    ) -> None:
        """Declares how actions are chosen at step t.

        Args:
            act: gets the networks, the observations and what else it reads; returns "actions",
                what `keeps` and `evaluates` name, and what else it writes.
            reads: what else it reads.
            writes: what else it writes, by name.
        """
        self._step.append(lambda: self._declare_acting(act, reads, writes or {}))

    def emulating(self) -> None:
        """Declares that the envs take a step with the actions."""
        self._step.append(self._declare_emulating)

    def learning(
        self,
        learning: Learning,
        reads: Mapping[str, Callable[[Index], Access]] | None = None,
    ) -> None:
        """Declares when and from what to learn.

        Args:
            learning: that.
            reads: further parts of a batch by name: each a function of the index after the last
                step that is learned from, which gives a window.
        """
        if self._phase is not None:
            raise InvalidValue(
                "expected declare() to declare learning once, got a second declaration: one loss "
                "learns from all"
            )
        if check_learning(learning) != self.algorithm.learning():
            raise InvalidValue(
                f"expected declare() to declare what learning() returns, "
                f"{self.algorithm.learning()}, got {learning}"
            )
        learning.check(self.collector.num_envs)
        check_parts(self.algorithm, reads or {})
        prepares = type(self.algorithm).prepare is not Algorithm.prepare
        prepare = self.algorithm.prepare if prepares else None
        if learning.replay is not None and (prepares or self.algorithm.evaluates):
            raise InvalidValue(
                "expected no prepare and no evaluates with a replay memory: they are of the steps "
                "just played"
            )
        self._phase = Phase(learning, prepare, reads or {})
        self.updates = learning.updates(self.collector.num_envs)
        self.first = learning.first(self.collector.num_envs)
        self.program.period = learning.period

    def finish(self) -> Program:
        """The program, in its order."""
        if self._phase is None or not self._step:
            raise InvalidValue("expected declare() to declare acting, emulating and learning")
        lag = self._phase.learning.lag
        if lag:
            declare_phase(self, self._phase)
        for declare in self._step:
            declare()
        if not lag:
            declare_phase(self, self._phase)
        self._declare_handing_over()
        check_names(self.program)
        return self.program

    # Steps ----------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The first step with learning; with a lag it is before this step, else after it."""
        assert self._phase is not None
        return self.first if self._phase.learning.lag else self.first - 1

    @property
    def _handed_over(self) -> int:
        """The first step after which weights are handed over."""
        assert self._phase is not None
        learning = self._phase.learning
        return self.start + (learning.period - 1 if learning.lag else 0)

    def versions(self) -> Index:
        """How often weights were handed over before step t."""
        period = self.program.period
        return ((self.t - 1 - self._handed_over + period) // period).at_least(0)

    def _declare_acting(
        self,
        act: Callable[..., Mapping[str, torch.Tensor]],
        reads: Sequence[Access],
        writes: Mapping[str, Access],
    ) -> None:
        names, t = list(self.actors), self.t
        returned = self._try_acting(act, reads, writes)
        evaluated = [name for name in self.algorithm.evaluates if name in returned]
        kept = ["actions", *self.algorithm.keeps.keys() - {"actions"}]
        outputs = [*kept, *writes]

        @torch.no_grad()
        def function(observations: torch.Tensor, *read: Any) -> tuple[torch.Tensor, ...]:
            nets = self._namespace(names, read[: len(names)])
            with self.learner.autocast, self._draws_at(read[-1]):
                values = act(nets, observations, *read[len(names) : -1])
            return tuple(values[name] for name in (*outputs, *evaluated))

        written = [self.kept[name][t] for name in kept] + list(writes.values())
        for name in evaluated:
            place = self.kept[f"acting's {name}"][t]
            written.append(replace(place, same=name))
        self.program.operation(
            "act", function, role="act", by_row=True, in_part=draws.part,
            reads=[
                self.observation[t],
                *(self.actors[name][self.versions()] for name in names), *reads,
            ],
            writes=written, moments=(t,),
        )  # fmt: skip

    def _draws_at(self, step: torch.Tensor) -> AbstractContextManager[None]:
        """Random numbers of this step, (1,) int64, in a `with` block."""
        return draws.keyed(self.algorithm.args.seed, self.collector.first_env, step)

    @torch.no_grad()
    def _try_acting(
        self,
        act: Callable[..., Mapping[str, torch.Tensor]],
        reads: Sequence[Access],
        writes: Mapping[str, Access],
    ) -> Mapping[str, torch.Tensor]:
        """What act returns for zeros, checked."""
        values = [blank(self, access).all()[0] for access in (self.observation[self.t], *reads)]
        nets = by_name(list(self.nets.acting), list(self.nets.acting.values()))
        step = torch.zeros(1, dtype=torch.int64, device=self.collector.device)
        with self.learner.autocast, self._draws_at(step):
            result = act(nets, *values)
        names = dict.fromkeys(["actions", *self.algorithm.keeps, *writes])
        evaluates = self.algorithm.evaluates
        check_tensors("act", result, names)
        numbers = {*names, *evaluates}
        for name, value in result.items():
            wanted: tuple[int, ...] = (self.collector.num_envs,)
            if name in writes:
                wanted = writes[name].recurrent.shape
            if name in numbers and tuple(value.shape) != wanted:
                raise InvalidValue(
                    f"expected act to return {name} with a value for each of "
                    f"{self.collector.num_envs} envs, {wanted}, got {tuple(value.shape)}; more "
                    "than a number for each is kept by a recurrent of its own, which declare() "
                    "declares"
                )
        kinds = {name: kept.dtype for name, kept in self.kept.items()} | dict(evaluates)
        check_dtypes("act", result, kinds | {n: a.recurrent.dtype for n, a in writes.items()})
        return result

    def _namespace(self, names: Sequence[str], objects: Sequence[nn.Module]) -> Nets:
        if self.algorithm.args.compile:
            objects = [self.collector.compiled(object_) for object_ in objects]
        return by_name(names, objects)

    def _declare_emulating(self) -> None:
        t, gamma, async_envs = self.t, self.algorithm.args.gamma, self.collector.async_envs

        @torch.no_grad()
        def as_kept(
            frames: torch.Tensor,
            rewards: torch.Tensor,
            terminated: torch.Tensor,
            started: torch.Tensor,
        ) -> tuple[Any, ...]:
            discounts = gamma * (~terminated).float()
            shown = (frames, started) if self.observation.stack > 1 else frames
            return shown, rewards, discounts, ~started, started

        @torch.no_grad()
        def function(actions: torch.Tensor, collector: Collector) -> tuple[Any, ...]:
            return as_kept(*collector.step(actions))

        self.program.operation(
            "emulate", function, role="simulate", captured=self.collector.captured,
            asynchronous=None if async_envs is None else Reporting(async_envs, as_kept),
            reads=[self.kept["actions"][t], self.envs[t]],
            writes=[
                self.observation[t + 1], self.kept["rewards"][t], self.kept["discounts"][t],
                self.kept["played"][t], self.started[t + 1], self.envs[t + 1],
            ],
        )  # fmt: skip

    def _declare_handing_over(self) -> None:
        """Acting gets the weights. Where it would read the same, the plan leaves this out."""
        p, updates = self.program, self.updates
        for name, acting in self.actors.items():
            weights = self.trained[name][updates * (p.u + 1)]

            def function(source: nn.Module, target: nn.Module) -> tuple[()]:
                copy_weights(source, target)
                return ()

            p.operation(
                f"hand over {name}", function, role="copy",
                every=p.period, start=self._handed_over,
                reads=[weights, acting[p.u]], writes=[acting[p.u + 1]],
                copies=p.t * updates,
            )  # fmt: skip


class Reporting:
    """The envs' steps by parts, which reports what is kept of a step.

    Args:
        async_envs: the envs in flight.
        as_kept: makes that of what their steps return.
    """

    def __init__(self, async_envs: AsyncCpuEnvs, as_kept: Callable[..., tuple[Any, ...]]):
        self._as_kept, self._report = as_kept, async_envs.results
        self.parts = async_envs.parts
        self.stage, self.send, self.recv = async_envs.stage, async_envs.send, async_envs.recv

    def results(self, part: int) -> tuple[Any, ...]:
        """See plan/program.py's AsyncOperation."""
        return self._as_kept(*self._report(part))


def observation_of(collector: Collector, *, compiled: bool) -> Recurrent:
    """The tensor of observations, each frame once.

    Args:
        collector: whose envs.
        compiled: torch.compile gets the observations, which has to see a plain tensor.
    """
    return Recurrent(
        "observations", collector.observation_shape, collector.observation_dtype,
        initial=0, stack=collector.stack, deferred=not compiled,
        store=FrameRing if collector.stack > 1 else None,
    )  # fmt: skip


def fixed_bytes(nets: Networks, collector: Collector) -> int:
    """Bytes of networks, gradients, an optimizer with two numbers a weight, and envs."""
    others = [*nets.acting.values(), *(net for net, _ in nets.copies.values())]
    return nets.weights.bytes + sum(_bytes(net) for net in others) + collector.bytes


def _bytes(net: nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in (*net.parameters(), *net.buffers()))
