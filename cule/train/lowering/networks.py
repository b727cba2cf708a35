"""The networks that an algorithm declares, their copies, and those that act."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue, MissingPart
from cule.train.algorithm import Algorithm, Nets
from cule.train.distributed.process_group import ProcessGroup
from cule.train.learning import Copy
from cule.train.lowering.method_checks import check_networks, check_optimizer
from cule.train.lowering.settings_read import NETWORKS, OPTIMIZER, reading
from cule.train.nn.models import to_channels_last
from cule.train.nn.weights import Weights, copy_weights
from cule.train.plan import annotate


@dataclass(frozen=True)
class Networks:
    """The networks of an algorithm.

    Attributes:
        trained: the networks that learn, by name.
        copies: the declared copies, by name, each with its declaration.
        acting: copies of the trained networks that act, by the names of these.
        weights: the parameters of the trained networks, as the optimizer updates them.
        unread: settings of networks (`model`, `width`) that the algorithm does not read.
    """

    trained: dict[str, nn.Module]
    copies: dict[str, tuple[nn.Module, Copy]]
    acting: dict[str, nn.Module]
    weights: Weights
    unread: frozenset[str] = frozenset()

    def named(self) -> dict[str, nn.Module]:
        """All networks by the names of their objects in a program."""
        copies = {name: net for name, (net, _) in self.copies.items()}
        acting = {f"{name} (acting)": net for name, net in self.acting.items()}
        return self.trained | copies | acting

    def all(self) -> list[nn.Module]:
        """All networks."""
        return list(self.named().values())

    def load_state_dict(
        self, state: Mapping[str, Mapping[str, Any]], precise: Sequence[torch.Tensor]
    ) -> None:
        """Restores all networks of a training; those that act get the newest weights.

        Args:
            state: of the trained networks and the declared copies, by name.
            precise: what Weights.state_dict() returned.

        Raises:
            KeyError, RuntimeError: it is of other networks.
        """
        for name, net in self.trained.items():
            net.load_state_dict(state[name])
        self.weights.load_state_dict(precise)
        for name, (net, _) in self.copies.items():
            net.load_state_dict(state[name])
        for name, net in self.acting.items():
            copy_weights(self.trained[name], net)

    @property
    def bytes(self) -> int:
        """Bytes of all networks, of gradients, and of an optimizer with two numbers a weight."""
        others = [*self.acting.values(), *(net for net, _ in self.copies.values())]
        return self.weights.bytes + sum(_bytes(net) for net in others)


def _bytes(net: nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in (*net.parameters(), *net.buffers()))


class NotedNets(Nets):
    """Networks for a first call.

    Attributes:
        noted: the names of those that were used. It is in a slot, as `vars` is for networks only.
    """

    __slots__ = ("noted",)
    noted: set[str]

    def __init__(self, **networks: nn.Module):
        super().__init__(**networks)
        self.noted = set()

    def __getattribute__(self, name: str) -> Any:
        get = functools.partial(object.__getattribute__, self)
        if name == "__dict__":
            get("noted").update(get(name))
        elif name in get("__dict__"):
            get("noted").add(name)
        return get(name)


class UsedNets(Nets):
    """The networks that a first call has used."""

    def __getattr__(self, name: str) -> Any:
        raise MissingPart(
            f"expected a network that was also used in a first call, with zeros "
            f"({', '.join(vars(self)) or 'none was'}), got {name}"
        )


def by_name(names: Sequence[str], modules: Sequence[nn.Module]) -> Nets:
    """Networks by name, as attributes."""
    return Nets(**dict(zip(names, modules, strict=True)))


def make_optimizer(
    algorithm: Algorithm[Any], weights: Weights
) -> tuple[torch.optim.Optimizer, frozenset[str]]:
    """Makes the optimizer; also gives the settings of optimizers that the algorithm does not read.

    Raises:
        ValueError: it is no optimizer of these weights, or ignores a setting that was set.
    """
    optimizer, unread = reading(
        algorithm, OPTIMIZER, lambda: _optimizer_of(algorithm, weights.parameters)
    )
    return optimizer, frozenset(unread)


def _optimizer_of(
    algorithm: Algorithm[Any], parameters: list[nn.Parameter]
) -> torch.optim.Optimizer:
    optimizer = algorithm.optimizer(parameters)
    check_optimizer(optimizer, parameters)
    for group in optimizer.param_groups:
        # A CUDA graph holds a step of torch's optimizers if they count their steps on the GPU.
        if "capturable" in group and all(p.is_cuda for p in group["params"]):
            group["capturable"] = True
    return optimizer


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Restores an optimizer's state, which may be of another kind of device."""
    groups = [
        {**theirs, "capturable": own["capturable"]} if "capturable" in own else theirs
        for own, theirs in zip(optimizer.param_groups, state["param_groups"], strict=False)
    ]
    optimizer.load_state_dict({**state, "param_groups": groups})


class Optimizers:
    """The optimizers of a training: one of all weights, or one for each learning's.

    Args:
        algorithm: makes them.
        nets: the networks.
    """

    def __init__(self, algorithm: Algorithm[Any], nets: Networks):
        self._algorithm, self._nets = algorithm, nets
        self.whole, self.unread = make_optimizer(algorithm, nets.weights)
        self._made: dict[tuple[str, ...], torch.optim.Optimizer] = {tuple(nets.trained): self.whole}

    def of(self, names: Sequence[str]) -> torch.optim.Optimizer:
        """The optimizer of some networks; for the same ones the same.

        Raises:
            ValueError: it is no optimizer of their weights.
        """
        key = tuple(name for name in self._nets.trained if name in names)
        if key not in self._made:
            weights = self._nets.weights
            own = {p for name in key for p in self._nets.trained[name].parameters()}
            both = zip(weights.used, weights.parameters, strict=True)
            parameters = [parameter for used, parameter in both if used in own]
            self._made[key] = _optimizer_of(self._algorithm, parameters)
        return self._made[key]


def on_its_device(name: str, net: nn.Module, device: torch.device) -> nn.Module:
    """A network on the device, to which it is moved from the CPU.

    Raises:
        ValueError: it is on another device.
    """
    for tensor in (*net.parameters(), *net.buffers()):
        if tensor.device.type not in ("cpu", device.type):
            raise InvalidValue(
                f"expected network {name} on the CPU or on {device}, got one on {tensor.device}"
            )
    return net.to(device)


def _copied(source: nn.Module, weights: Weights, entry: Copy) -> nn.Module:
    """A copy of a network; in float32 if it moves, as small steps would be rounded away."""
    net = copy.deepcopy(source).requires_grad_(False)
    if entry.tau < 1:
        net.float().load_state_dict(weights.precise(source))
    return net


@annotate.operation("make networks")
def make_networks(algorithm: Algorithm[Any], processes: ProcessGroup) -> Networks:
    """Makes the networks, with the same weights in all processes, which all call it.

    Raises:
        ValueError: a copy is of a network that there is not, none is trained, or one cannot be.
    """
    args, device = algorithm.args, algorithm.device
    declared: Mapping[str, nn.Module | Copy]
    declared, unread = reading(
        algorithm, NETWORKS, lambda: algorithm.networks(algorithm.num_actions)
    )
    check_networks(declared)
    trained = {
        name: on_its_device(name, net, device)
        for name, net in declared.items()
        if isinstance(net, nn.Module)
    }
    for net in trained.values():
        processes.broadcast_tensors([p.detach() for p in net.parameters()])
        if args.channels_last:
            to_channels_last(net)
    weights = Weights(list(trained.values()), device, rounded=args.bf16)
    copies = {}
    for name, entry in declared.items():
        if isinstance(entry, Copy):
            if entry.of not in trained:
                raise InvalidValue(
                    f"expected {name} to be a copy of one of {', '.join(trained)}, "
                    f"got of {entry.of}"
                )
            copies[name] = _copied(trained[entry.of], weights, entry), entry
    acting = {name: copy.deepcopy(net).requires_grad_(False) for name, net in trained.items()}
    return Networks(trained, copies, acting, weights, frozenset(unread))
