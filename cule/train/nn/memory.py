"""Layers whose state lasts over steps, such as an LSTM.

A network with such a layer is called like any other, with observations alone. What calls it says in
which steps of which envs these are (`Carry`): acting goes on with each env's newest state, learning
begins with the state that acting had before the first step of its batch, and where an episode
begins the state is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import nn

from cule.errors import InvalidValue

First = Callable[[], torch.Tensor]


class Memory(nn.Module):
    """A layer whose state lasts over steps.

    Args:
        shape: of an env's state, which is float32 and 0 where an episode begins.
    """

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.shape = shape

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The outputs of steps, (steps * envs, ...), one step after the other.

        Args:
            inputs: (steps * envs, ...), of all steps that are to be computed, or of the next one.

        Raises:
            ValueError: these are no whole steps, or nothing says which steps they are.
        """
        carry = _current.get()
        if carry is None:
            raise InvalidValue(
                f"expected a network with a {type(self).__name__}, whose state lasts over steps, "
                "to be called where a training acts, prepares, evaluates or learns"
            )
        return carry.advance(self, inputs)

    def unroll(
        self, inputs: torch.Tensor, state: torch.Tensor, started: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Computes some steps.

        Args:
            inputs: (steps, envs, ...).
            state: (envs, *shape) float32, before the first step.
            started: (steps, envs) bool: an episode begins, and the state before it is 0.

        Returns:
            The outputs (steps, envs, ...), and the state after the last step.
        """
        raise NotImplementedError


class Lstm(Memory):
    """An LSTM (Hochreiter and Schmidhuber, 1997), with torch.nn.LSTMCell's formulas.

    Args:
        inputs: numbers of an input.
        size: numbers of an output. A state has twice as many: the output, and the cells.
    """

    def __init__(self, inputs: int, size: int):
        super().__init__((2, size))
        self.inputs = nn.Linear(inputs, 4 * size)
        self.outputs = nn.Linear(size, 4 * size, bias=False)
        for layer in (self.inputs, self.outputs):
            nn.init.orthogonal_(layer.weight)
        nn.init.zeros_(self.inputs.bias)

    def unroll(
        self, inputs: torch.Tensor, state: torch.Tensor, started: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See Memory."""
        # All that does not depend on the step before, at once.
        of_inputs, goes_on = self.inputs(inputs), (~started).unsqueeze(2).float()
        output, cells = state[:, 0], state[:, 1]
        outputs = []
        for step, kept in zip(of_inputs, goes_on, strict=True):
            gates = (step + self.outputs(output * kept)).float()
            enter, keep, new, leave = gates.chunk(4, dim=1)
            cells = keep.sigmoid() * (cells * kept) + enter.sigmoid() * new.tanh()
            output = leave.sigmoid() * cells.tanh()
            outputs.append(output)
        return torch.stack(outputs), torch.stack((output, cells), dim=1)


class Carry:
    """The states of memories, in the steps for which their network is called.

    Args:
        first: for each memory what gives its state before the first step, (envs, *shape) float32.
        started: gives (steps, envs) bool, where episodes begin.
    """

    def __init__(self, first: Mapping[Memory, First], started: First):
        self._first, self._started = first, started
        # The next step, and the state before it.
        self._next: dict[Memory, tuple[int, torch.Tensor]] = {}

    def advance(self, memory: Memory, inputs: torch.Tensor) -> torch.Tensor:
        """The outputs of the next step, or from the first one on of several."""
        if memory not in self._first:
            raise InvalidValue(
                f"expected no {type(memory).__name__} in a network that does not act, such as a "
                "copy, as its state comes from acting"
            )
        started = self._started()
        count, envs = started.shape
        steps, rest = divmod(len(inputs), envs)
        if rest or not 0 < steps <= count:
            raise InvalidValue(
                f"expected a network with a {type(memory).__name__} to be called for whole steps "
                f"of {envs} envs, one or up to {count}, got {len(inputs)} observations"
            )
        at, state = self._next.get(memory, (0, None))
        if state is None or steps > 1 or at == count:
            at, state = 0, self._first[memory]()
        inputs = inputs.unflatten(0, (steps, envs))
        outputs, state = memory.unroll(inputs, state, started[at : at + steps])
        self._next[memory] = at + steps, state
        return outputs.flatten(0, 1)

    def after(self, memory: Memory) -> torch.Tensor | None:
        """The state of a memory after the last call; None: there was no call."""
        return self._next[memory][1] if memory in self._next else None


_current: ContextVar[Carry | None] = ContextVar("carry", default=None)


@contextmanager
def carrying(carry: Carry) -> Iterator[Carry]:
    """In a `with` block, networks' memories are in these steps."""
    token = _current.set(carry)
    try:
        yield carry
    finally:
        _current.reset(token)


def memories_of(nets: Mapping[str, nn.Module]) -> dict[str, Memory]:
    """The memories in networks, by the names of networks and of the layers in them."""
    return {
        f"{net} {path}".rstrip(): layer
        for net, module in nets.items()
        for path, layer in module.named_modules()
        if isinstance(layer, Memory)
    }
