"""Networks with a memory: its states over steps, where they act, evaluate, prepare and learn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm, Nets
from cule.train.batch import Batch, Used
from cule.train.declaration import Declaration
from cule.train.learning import Learning
from cule.train.lowering.networks import Networks
from cule.train.nn.memory import Carry, Memory, carrying, memories_of
from cule.train.plan.index import Index
from cule.train.plan.program import Access, Recurrent

Loss = Callable[[Nets, Any], Mapping[str, torch.Tensor]]
NAME = "memory of "  # what the name of a state begins with
STARTED = "first of an episode"  # a part of a batch that no attribute can be named like


class Memories:
    """The memories of the networks that act: in a program, tensors of their states over steps.

    State t is that before step t. Learning begins with the state that acting had.

    Args:
        declaration: gets the tensors.
        nets: the networks.

    Attributes:
        states: the states over steps, (num_envs, *shape) float32, by the memories' names.
    """

    def __init__(self, declaration: Declaration, nets: Networks):
        self.states: dict[str, Recurrent] = {
            name: declaration.recurrent(name, torch.float32, *memory.shape, initial=0.0)
            for name, memory in _named(nets.acting).items()
        }
        self._started = declaration.started

    def before(self, t: Index) -> list[Access]:
        """Reads of the states before a step, and of which episodes begin; none without memories."""
        states = [state[t] for state in self.states.values()]
        return [*states, self._started[t]] if states else []

    def after(self, t: Index) -> list[Access]:
        """Writes of the states after a step."""
        return [state[t + 1] for state in self.states.values()]

    def windows(self, first: Index, stop: Index) -> dict[str, Access]:
        """The parts of a batch from which learning takes them, by name."""
        if not self.states:
            return {}
        states = {name: state[first : first + 1] for name, state in self.states.items()}
        return {**states, STARTED: self._started[first : stop + 1]}

    def step(
        self, nets: Nets, read: Sequence[torch.Tensor]
    ) -> AbstractContextManager[Carry | None]:
        """The context of a step.

        Args:
            nets: the networks that are called.
            read: what `before` reads; with one more dimension if these are several steps, which
                are then called as one, of more envs.
        """
        if not self.states:
            return nullcontext()
        *states, started = read
        if started.dim() > 1:
            states = [state.flatten(0, 1) for state in states]
        by_name = dict(zip(self.states, states, strict=True))
        return self._carrying(nets, by_name.__getitem__, lambda: started.flatten().unsqueeze(0))

    def steps(
        self, nets: Nets, batch: Batch | Used, learning: Learning
    ) -> AbstractContextManager[Carry | None]:
        """The context of a batch's steps, from its first on.

        Args:
            nets: the networks that are called.
            batch: whole sequences.
            learning: which the batch is of.
        """
        if not self.states:
            return nullcontext()
        return self._carrying(
            nets, lambda name: getattr(batch, name)[0], lambda: getattr(batch, STARTED),
            (learning.steps, learning.window),
        )  # fmt: skip

    def _carrying(
        self,
        nets: Nets,
        first: Callable[[str], torch.Tensor],
        started: Callable[[], torch.Tensor],
        steps: Collection[int] = (),
    ) -> AbstractContextManager[Carry]:
        known = {
            memory: functools.partial(first, name)
            for name, memory in _named(vars(nets)).items()
            if name in self.states
        }
        return carrying(Carry(known, started, steps))

    def states_after(self, carry: Carry | None) -> list[torch.Tensor]:
        """The states after a step that has acted, in the order of `states`.

        Raises:
            ValueError: it has not called a network with a memory.
        """
        if carry is None:
            return []
        states = []
        for name, memory in zip(self.states, carry.memories, strict=True):
            state = carry.after(memory)
            if state is None:
                raise InvalidValue(
                    "expected act to call the network with the memory "
                    f"{name.removeprefix(NAME)}, whose state goes on from step to step, got no call"
                )
            states.append(state)
        return states

    def around(self, loss: Loss, learning: Learning) -> Loss:
        """A loss that is called with the memories in the batch's steps.

        Where there are minibatches, it gets all steps of all envs as rows, as without memories.
        """
        if not self.states:
            return loss

        def function(nets: Nets, batch: Batch | Used) -> Mapping[str, torch.Tensor]:
            with self.steps(nets, batch, learning):
                return loss(nets, batch if learning.minibatch is None else _rows(batch))

        return function


def _named(nets: Mapping[str, nn.Module]) -> dict[str, Memory]:
    """The memories in networks, by the names of their states."""
    return {NAME + name: memory for name, memory in memories_of(nets).items()}


def _rows(batch: Batch | Used) -> Batch:
    """Whole sequences (steps, envs, ...) as transitions (steps * envs, ...)."""

    def part(name: str, first: int) -> torch.Tensor:
        value: torch.Tensor = getattr(batch, name)
        # Of observations there is one more.
        return value[first : first + len(batch.actions)].flatten(0, 1)

    names = batch.names if isinstance(batch, Batch) else vars(batch)
    parts = {name: functools.partial(part, name, 0) for name in names}
    parts["next_observations"] = functools.partial(part, "observations", 1)
    return Batch(parts)


def check_memories(
    algorithm: Algorithm[Any], learnings: Sequence[Learning], num_envs: int, nets: Networks
) -> None:
    """Checks that networks with a memory can learn as declared.

    Raises:
        ValueError: they cannot.
    """
    memories = memories_of(nets.acting)
    if not memories:
        return
    name = next(iter(memories))
    if algorithm.args.compile:
        raise InvalidValue(f"expected no compile with a network that has a memory, {name}")
    for learning in learnings:
        if learning.replay is not None:
            raise InvalidValue(
                f"expected learning without a replay memory with a network that has a memory, "
                f"{name}, as its states are those of the steps just played"
            )
        if learning.minibatch is None:
            continue
        envs, rest = divmod(learning.minibatch, learning.steps)
        if rest or num_envs % max(1, envs):
            raise InvalidValue(
                f"expected minibatch of Learning to be steps ({learning.steps}) times a divisor of "
                f"the envs ({num_envs}), as a network with a memory, {name}, learns from whole "
                f"sequences, got {learning.minibatch}"
            )
    _check_owners(nets)


def _check_owners(nets: Networks) -> None:
    """Checks that no two networks share a memory, and that no copy has one.

    Raises:
        ValueError: they do.
    """
    owners: dict[Memory, str] = {}
    for name, memory in memories_of(nets.trained).items():
        if memory in owners:
            raise InvalidValue(
                f"expected each network to have memories of its own, got the one of "
                f"{owners[memory]} as {name}, too"
            )
        owners[memory] = name
    copies = memories_of({name: net for name, (net, _) in nets.copies.items()})
    if copies:
        raise InvalidValue(
            f"expected no copy of a network with a memory, whose state comes from acting, got "
            f"{next(iter(copies))}"
        )
