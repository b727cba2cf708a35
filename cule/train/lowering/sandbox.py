"""Calls of an algorithm's methods before training that leave no trace in its state."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten

from cule.errors import InvalidValue
from cule.train.lowering.attributes import Attributes


@contextmanager
def unchanged(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """After the block, tensors have the values of before it, in the same memory."""
    before = [tensor.detach().clone() for tensor in tensors]
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, was in zip(tensors, before, strict=True):
                tensor.copy_(was)


@contextmanager
def constant(nets: Mapping[str, nn.Module]) -> Iterator[None]:
    """Checks that the weights of networks are after the block what they were before it.

    Raises:
        ValueError: some are not.
    """
    named = {f"{name}.{own}": p for name, net in nets.items() for own, p in net.named_parameters()}
    before = {name: p.detach().clone() for name, p in named.items()}
    yield
    changed = [name for name, p in named.items() if not torch.equal(p.detach(), before[name])]
    if changed:
        raise InvalidValue(
            "expected an algorithm's methods to leave weights to the optimizer, got "
            f"{', '.join(changed)} changed by one of them"
        )


def alike(one: Any, other: Any) -> bool:
    """Whether two states are equal."""
    (values, shape), (others, its) = tree_flatten(one), tree_flatten(other)
    return shape == its and all(map(_are_equal, values, others))


def _are_equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return bool(np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other)


class Sandbox:
    """A context manager in which an algorithm's methods can be called without a trace.

    Args:
        attributes: the algorithm's attributes.
        nets: all its networks, whose buffers its methods may change.
        device: the device of the networks.
    """

    def __init__(self, attributes: Attributes, nets: Sequence[nn.Module], device: torch.device):
        self._attributes, self._nets = attributes, nets
        self._devices = [device] if device.type == "cuda" else []

    def attributes(self) -> dict[str, Any]:
        """The algorithm's attributes, to be compared by alike()."""
        return self._attributes.state_dict()

    def state(self) -> list[Any]:
        """Attributes, buffers of networks and states of random generators, likewise."""
        generators = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, self._devices)]
        numpys = list(np.random.get_state())  # noqa: NPY002
        buffers = [buffer.clone() for buffer in self._buffers()]
        return [self.attributes(), buffers, random.getstate(), numpys, generators]

    def _buffers(self) -> list[torch.Tensor]:
        return [buffer for net in self._nets for buffer in net.buffers()]

    @contextmanager
    def __call__(self, tensors: Sequence[torch.Tensor] = ()) -> Iterator[None]:
        """Restores buffers, attributes, random numbers and `tensors` at the end of a block.

        Args:
            tensors: further tensors that the block may change.
        """
        attributes = self._attributes.state_dict()
        own, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
        with unchanged([*self._buffers(), *tensors]), torch.random.fork_rng(self._devices):
            try:
                yield
            finally:
                random.setstate(own)
                np.random.set_state(numpys)  # noqa: NPY002
                self._attributes.load_state_dict(attributes)
