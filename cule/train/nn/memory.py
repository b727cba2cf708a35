"""Layers whose state lasts over steps, such as an LSTM.

A network with such a layer is called like any other, with observations alone. What calls it says in
which steps of which envs these are (`Carry`): acting goes on with each env's newest state, learning
begins with the state that acting had before the first step of its batch, and where an episode
begins the state is 0. So each step is computed once: in one call for all of a batch, or in a call
for each, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue

First = Callable[[], torch.Tensor]


def _is_size(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


class Memory(nn.Module):
    """A layer whose state lasts over steps.

    Args:
        shape: of an env's state, which is float32 and 0 where an episode begins.
    """

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        if not isinstance(shape, tuple) or not all(map(_is_size, shape)):
            raise InvalidValue(
                f"expected a tuple of whole numbers above 0 as the shape of the state of a "
                f"{type(self).__name__}, got {shape!r}"
            )
        self.shape = shape

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The outputs of steps, (steps * envs, ...), one step after the other.

        Args:
            inputs: (steps * envs, ...), of all steps that are to be computed, or of the next one.

        Raises:
            ValueError: these are no whole steps, they are computed already, or nothing says which
                steps they are.
        """
        carry = _current.get()
        if carry is None:
            raise InvalidValue(
                f"expected a network with a {type(self).__name__}, whose state lasts over steps, "
                "to be called while a training acts, prepares, evaluates or computes a loss, and "
                "not later, as torch.utils.checkpoint does"
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
        raise InvalidValue(f"expected {type(self).__name__} to have a method unroll, got none")


class Lstm(Memory):
    """An LSTM (Hochreiter and Schmidhuber, 1997), with torch.nn.LSTMCell's formulas.

    Args:
        inputs: numbers of an input.
        size: numbers of an output. A state has twice as many: the output, and the cells.
    """

    def __init__(self, inputs: int, size: int):
        if not _is_size(inputs) or not _is_size(size):
            raise InvalidValue(
                f"expected whole numbers above 0 as the inputs and the size of an Lstm, got "
                f"{inputs!r} and {size!r}"
            )
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
        steps: how many steps, from the first one on, may be computed in one call; (): all.
    """

    def __init__(self, first: Mapping[Memory, First], started: First, steps: Collection[int] = ()):
        self._first, self._started, self._steps = first, started, steps
        # How many steps are computed, and the state after them.
        self._done: dict[Memory, tuple[int, torch.Tensor]] = {}

    def advance(self, memory: Memory, inputs: torch.Tensor) -> torch.Tensor:
        """The outputs of the next step, or of several from the first one on."""
        kind = type(memory).__name__
        if memory not in self._first:
            raise InvalidValue(
                f"expected no {kind} in a network that does not act, as its state comes from acting"
            )
        started = self._started()
        count, envs = started.shape
        whole = sorted({count, *self._steps})
        steps, rest = divmod(len(inputs), envs)
        done, state = self._done.get(memory, (0, None))
        # With two observations in all, a second one would be taken for the first one again.
        goes_on = steps == 1 and count > 2 and done < count
        if rest or not (goes_on or (done == 0 and steps in whole)):
            numbers = " or ".join(map(str, whole))
            got = f"{len(inputs)} observations" + (f" after {done} steps" if done else "")
            raise InvalidValue(
                f"expected a network with a {kind} to be called once for each step, for {numbers} "
                f"steps of {envs} envs, one step after the other, or in a call for each step, got "
                f"{got}"
            )
        if state is None:
            state = self._first[memory]()
        unrolled = memory.unroll(
            inputs.unflatten(0, (steps, envs)), state, started[done : done + steps]
        )
        outputs, state = _checked(memory, unrolled, (steps, envs))
        # A call for several steps is the only one.
        self._done[memory] = done + steps if goes_on else count, state
        return outputs.flatten(0, 1)

    @property
    def memories(self) -> list[Memory]:
        """The memories whose states it has."""
        return list(self._first)

    def after(self, memory: Memory) -> torch.Tensor | None:
        """The state of a memory after the last call; None: there was no call."""
        return self._done[memory][1] if memory in self._done else None


def _checked(
    memory: Memory, unrolled: Any, rows: tuple[int, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `unroll` returned.

    Raises:
        ValueError: it is not what it has to be.
    """
    wanted = (rows[1], *memory.shape)
    if isinstance(unrolled, tuple) and len(unrolled) == 2:
        outputs, state = unrolled
        if (
            isinstance(outputs, torch.Tensor) and outputs.shape[:2] == rows
            and isinstance(state, torch.Tensor) and state.shape == wanted
            and state.dtype == torch.float32
        ):  # fmt: skip
            return outputs, state
    one = unrolled if isinstance(unrolled, tuple) else (unrolled,)
    got = ", ".join(
        f"{tuple(part.shape)} {part.dtype}" if isinstance(part, torch.Tensor) else repr(part)
        for part in one
    )
    raise InvalidValue(
        f"expected unroll of {type(memory).__name__} to return outputs {(*rows, '...')} and a "
        f"state {wanted} torch.float32, got {got}"
    )


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
