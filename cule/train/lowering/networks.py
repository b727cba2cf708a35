"""Makes the networks that an algorithm declares."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.distributed.process_group import ProcessGroup
from cule.train.learning import Copy
from cule.train.lowering.declaration import Networks
from cule.train.lowering.returned import check_networks
from cule.train.lowering.settings_read import NETWORKS, reading
from cule.train.nn.models import to_channels_last
from cule.train.nn.weights import Weights


def on_its_device(name: str, net: nn.Module, device: torch.device) -> nn.Module:
    """The network, moved from the CPU to the device if it has to be.

    Raises:
        ValueError: it is on neither.
    """
    for tensor in (*net.parameters(), *net.buffers()):
        if tensor.device.type not in ("cpu", device.type):
            raise InvalidValue(
                f"expected network {name} on the CPU or on {device}, got one on {tensor.device}"
            )
    return net.to(device)


def make_networks(algorithm: Algorithm[Any], processes: ProcessGroup) -> Networks:
    """The networks, with the same weights in all processes.

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
    for name, made in declared.items():
        if isinstance(made, Copy):
            if made.of not in trained:
                raise InvalidValue(
                    f"expected {name} to be a copy of one of {', '.join(trained)}, got of {made.of}"
                )
            copies[name] = copy.deepcopy(trained[made.of]).requires_grad_(False), made
    acting = {name: copy.deepcopy(net).requires_grad_(False) for name, net in trained.items()}
    return Networks(trained, copies, acting, weights, frozenset(unread))
