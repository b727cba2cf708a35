"""Processes that only act or only learn: a stand-in for envs of other processes, and messages.

The messages of an iteration: each step of an actor goes to its learner when it is played; at the
end of an iteration the learner's networks go to its actors. So acting always uses weights that are
one iteration old, as in one process with a lag of 1, whatever is faster; and between two iterations
no message is on its way, so that a checkpoint there has everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from cule.train.distributed.channels import Like, Receiver, Sender
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.collector import Collector
from cule.train.plan.program import Access, Program
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
        self.num_envs = num_envs
        self.single_action_space = SimpleNamespace(n=facts["num_actions"])
        self._blank = torch.zeros((num_envs, *facts["shape"]), dtype=facts["dtype"], device=device)

    def reset(self, *, seed: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """Black observations."""
        return self._blank, {}

    def close(self) -> None:
        """Frees nothing."""


def facts_of(collector: Collector) -> dict[str, Any]:
    """The facts about envs that processes which learn need: actions, and observations' shape."""
    first = collector.first
    return {"num_actions": collector.num_actions, "shape": first.shape[1:], "dtype": first.dtype}


class Messages:
    """The messages of this process, and its part of the program.

    Args:
        processes: this process and its partners.
        program: the whole program.
        networks: the networks that act, by the names of their Recurrents.
        rows: the envs whose rows this process's tensors have.

    Attributes:
        program: this process's part of the program, which sends and receives.
    """

    def __init__(
        self,
        processes: ProcessGroup,
        program: Program,
        networks: Mapping[str, nn.Module],
        rows: int,
    ):
        self.processes, self.parts = processes, crossing(program)
        self.rows = rows if processes.acts else rows // len(processes.partners)
        device, partners = processes.device, processes.partners
        slots = min(program.period, SLOTS) if device.type == "cuda" else program.period
        like = [one for part in self.parts for one in self._like(part)]
        self.steps: Sender | Receiver
        self.networks: dict[str, Sender | Receiver]
        weights = {name: [_like(t) for t in tensors_of(net)] for name, net in networks.items()}
        if processes.acts:
            self.steps = Sender(like, device, partners, slots)
            self.networks = {
                name: Receiver(some, device, partners) for name, some in weights.items()
            }
            self.program = acting_part(program, Ends(self._send, self._receive_network))
        else:
            self.steps = Receiver(like, device, partners)
            self.networks = {name: Sender(some, device, partners) for name, some in weights.items()}
            self.program = learning_part(program, Ends(self._receive, self._send_network))

    def _like(self, part: Access) -> list[Like]:
        recurrent = part.recurrent
        one: Like = (self.rows, *recurrent.shape[1:]), recurrent.dtype
        return [one, ((self.rows,), torch.bool)] if recurrent.stack > 1 else [one]

    def first(self, observations: torch.Tensor) -> torch.Tensor:
        """The first observations: of this process's envs, or those that the actors have sent."""
        device, partners = self.processes.device, self.processes.partners
        like: Like = (self.rows, *observations.shape[1:]), observations.dtype
        if self.processes.learns:
            return Receiver([like], device, partners).receive()[0]
        self._first = Sender([like], device, partners)
        self._first.send([observations])
        return observations

    def _send(self, *values: torch.Tensor) -> None:
        assert isinstance(self.steps, Sender)
        self.steps.send(values)

    def _receive(self) -> list[Any]:
        assert isinstance(self.steps, Receiver)
        received = iter(self.steps.receive())
        return [
            (next(received), next(received)) if part.recurrent.stack > 1 else next(received)
            for part in self.parts
        ]

    def _send_network(self, name: str, net: nn.Module) -> None:
        sender = self.networks[name]
        assert isinstance(sender, Sender)
        sender.send(tensors_of(net))

    @torch.no_grad()
    def _receive_network(self, name: str, net: nn.Module) -> None:
        receiver = self.networks[name]
        assert isinstance(receiver, Receiver)
        torch._foreach_copy_(tensors_of(net), receiver.receive())


def tensors_of(net: nn.Module) -> list[torch.Tensor]:
    """Weights and buffers."""
    return [*(p.detach() for p in net.parameters()), *net.buffers()]


def _like(tensor: torch.Tensor) -> Like:
    return tuple(tensor.shape), tensor.dtype
