"""Processes that only act or only learn: a stand-in for envs of other processes, and messages.

The messages of an iteration: each step of an actor goes to its learner when it is played; at the
end of an iteration the learners' networks go to the actors. By default an actor waits for them. So
acting always uses weights that are one iteration old, as in one process with a lag of 1, whatever
is faster; and between two iterations no message is on its way, so that a checkpoint there has
everything.

With a limit of staleness an actor plays on with what it has, and takes the newest weights that have
come, until its policy would lag behind by more than the limit: then it waits. So nothing has to be
dropped, learning gets each step once and in order, and how stale a step is when it is learned from
is known when it is played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from cule.train.distributed.asynchrony import Staleness
from cule.train.distributed.channels import Like, Newest, Parcel, Receiver, Sender
from cule.train.distributed.connections import Connections
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.collector import Collector
from cule.train.layout import BOTH
from cule.train.plan.program import Program
from cule.train.plan.split import Ends, acting_part, crossing, learning_part

# Steps that may be on their way from a GPU; on a CPU those of a whole iteration may be.
SLOTS = 2


class FarEnvs:
    """A stand-in for the envs of other processes, with black observations.

    Args:
        num_envs: the envs of all these processes.
        facts: the result of facts_of in one of them.
        device: the device of the observations.
    """

    def __init__(self, num_envs: int, facts: Mapping[str, Any], device: torch.device):
        self.num_envs, self.num_players = num_envs, facts["num_players"]
        self.single_action_space = SimpleNamespace(n=facts["num_actions"])
        self._blank = torch.zeros((num_envs, *facts["shape"]), dtype=facts["dtype"], device=device)

    def reset(self, *, seed: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """Black observations."""
        return self._blank, {}

    def close(self) -> None:
        """Frees nothing."""


def facts_of(collector: Collector) -> dict[str, Any]:
    """What processes that learn need to know of envs: actions, players, observations' shape."""
    first = collector.first
    return {
        "num_actions": collector.num_actions, "num_players": collector.num_players,
        "shape": first.shape[1:], "dtype": first.dtype,
    }  # fmt: skip


class Messages:
    """The messages of this process, and its part of the program. Both ends have to make it.

    Args:
        processes: this process among the others, of which it acts or learns alone.
        connections: how they reach each other.
        program: the whole program.
        networks: the networks that act, by the names of their Recurrents.
        num_envs: the envs of all processes.
        staleness: how far the policy that acts may lag behind, and how far it does.

    Attributes:
        program: this process's part of the program, which sends and receives.
    """

    def __init__(
        self,
        processes: ProcessGroup,
        connections: Connections,
        program: Program,
        networks: Mapping[str, nn.Module],
        num_envs: int,
        staleness: Staleness,
    ):
        self.processes, self.parts = processes, crossing(program)
        self.connections, self.shares = connections, processes.shares(num_envs)
        self.first_env, self.networks = self.shares[0].begin, networks
        self.staleness, ahead = staleness, staleness.ahead
        # As many as are played while the policy may not be newer; on a GPU its stream waits.
        steps = program.period * ahead
        slots = min(steps, SLOTS) if processes.device.type == "cuda" and ahead == 1 else steps
        actors, learners = (processes.only(part) for part in BOTH)
        source = {
            actor: learners[number * len(learners) // len(actors)]
            for number, actor in enumerate(actors)
        }
        weights = {name: [_like(t) for t in tensors_of(net)] for name, net in networks.items()}
        to_ask = ahead > 1
        if processes.acts:
            self.steps = self._senders(self._likes_of_a_step, slots)
            learner = source[processes.rank]
            boxes = {
                name: connections.inbox(some, learner, announced=to_ask)
                for name, some in weights.items()
            }
            self.newest = Newest(boxes, ahead)
            self._waiting: dict[str, Parcel] = {}
            self._asked = dict.fromkeys(weights, 0)
            self.program = acting_part(program, Ends(self._send, self._receive_network))
        else:
            self.received = self._receiver(self._likes_of_a_step)
            fed = [actor for actor in actors if source[actor] == processes.rank]
            self.sent = {
                name: Sender([connections.outbox(some, actor, ahead, announces=to_ask)
                              for actor in fed])
                for name, some in weights.items()
            }  # fmt: skip
            self.program = learning_part(program, Ends(self._receive, self._send_network))

    def _likes_of_a_step(self, rows: int) -> list[Like]:
        likes: list[Like] = []
        for recurrent in (part.recurrent for part in self.parts):
            likes.append(((rows, *recurrent.shape[1:]), recurrent.dtype))
            if recurrent.stack > 1:
                likes.append(((rows,), torch.bool))
        return likes

    def _senders(self, likes_of: Callable[[int], list[Like]], slots: int) -> list[Sender]:
        """For each share of this process's envs one that sends rows of its length."""
        return [
            Sender([self.connections.outbox(likes_of(share.end - share.begin), share.learner,
                                            slots)])
            for share in self.shares
        ]  # fmt: skip

    def _send_rows(self, senders: list[Sender], values: Sequence[torch.Tensor]) -> None:
        for sender, share in zip(senders, self.shares, strict=True):
            rows = slice(share.begin - self.first_env, share.end - self.first_env)
            sender.send([value[rows] for value in values])

    def _receiver(self, likes_of: Callable[[int], list[Like]]) -> Receiver:
        """Receives the rows of all shares of this process, one after another."""
        return Receiver([
            self.connections.inbox(likes_of(share.end - share.begin), share.actor)
            for share in self.shares
        ])  # fmt: skip

    def first(self, observations: torch.Tensor) -> torch.Tensor:
        """The first observations: of this process's envs, or those that the actors have sent."""

        def likes_of(rows: int) -> list[Like]:
            return [((rows, *observations.shape[1:]), observations.dtype)]

        if self.processes.learns:
            self._first_received = self._receiver(likes_of)
            return self._here(self._first_received)[0]
        self._first = self._senders(likes_of, slots=1)
        self._send_rows(self._first, [observations])
        return observations

    def _send(self, *values: torch.Tensor) -> None:
        self._send_rows(self.steps, values)

    def _here(self, receiver: Receiver) -> list[torch.Tensor]:
        """The next message, on this process's device; between MIG slices it is in the host's."""
        return [part.to(self.processes.device) for part in receiver.receive()]

    def _receive(self) -> list[Any]:
        received = iter(self._here(self.received))
        return [
            (next(received), next(received)) if part.recurrent.stack > 1 else next(received)
            for part in self.parts
        ]

    def _send_network(self, name: str, net: nn.Module) -> None:
        # With more learners than actors some have nobody to send it to.
        self.sent[name].send(tensors_of(net))

    def _receive_network(self, name: str, net: nn.Module) -> None:
        """Copies the newest weights that have come; none, if there are no newer ones."""
        self._asked[name] += 1
        if self._asked[name] > self.newest.asked:
            # The first of the networks that are handed over together.
            with self.staleness.waiting():
                self._waiting = self.newest.take()
            self.staleness.note(self.newest.asked - self.newest.taken + 1)
        if name in self._waiting:
            self._copy(self._waiting.pop(name), net)

    @torch.no_grad()
    def _copy(self, parcel: Parcel, net: nn.Module) -> None:
        torch._foreach_copy_(tensors_of(net), parcel.parts)

    def settle(self) -> None:
        """Takes all messages that were sent to this process, between two iterations of all.

        So a checkpoint has everything, and acting goes on with the newest weights.
        """
        if self.processes.acts:
            for name, parcel in self.newest.settle().items():
                self._copy(parcel, self.networks[name])


def tensors_of(net: nn.Module) -> list[torch.Tensor]:
    """Weights and buffers."""
    return [*(p.detach() for p in net.parameters()), *net.buffers()]


def _like(tensor: torch.Tensor) -> Like:
    return tuple(tensor.shape), tensor.dtype
