"""Random numbers of acting, the same whether the envs act at once or in parts.

A generator's numbers depend on how many are asked for at once. So when envs act in parts, the first
part draws the numbers of all envs, and the others find theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

Fill = Callable[[torch.Tensor], torch.Tensor]

_current: Draws | None = None


class Draws:
    """The draws of a step of acting, one after the other.

    Args:
        parts: the first env and the env after the last one, of each part.
    """

    def __init__(self, parts: Sequence[tuple[int, int]]):
        self.parts = parts
        self._number, self._count = 0, 0
        # The numbers of all envs of the first, the second ... draw. Captured graphs have their
        # addresses.
        self._drawn: list[torch.Tensor] = []

    @contextmanager
    def of(self, number: int) -> Iterator[None]:
        """In a `with` block, draws are those of this part of the envs."""
        global _current
        before, _current = _current, self
        self._number, self._count = number, 0
        try:
            yield
        finally:
            _current = before

    def draw(self, like: torch.Tensor, fill: Fill) -> torch.Tensor:
        """The next numbers of the part: like a tensor (envs, ...), filled for all envs."""
        shape = (self.parts[-1][1], *like.shape[1:])
        if self._count == len(self._drawn):
            self._drawn.append(like.new_empty(shape))
        numbers = self._drawn[self._count]
        if self._number == 0:
            fill(numbers)
        self._count += 1
        return numbers[slice(*self.parts[self._number])]


def draw(like: torch.Tensor, fill: Fill) -> torch.Tensor:
    """A tensor of random numbers for envs that act.

    Args:
        like: (envs, ...): its shape and dtype, and where it is.
        fill: fills a tensor with random numbers, as torch.Tensor.uniform_ does.
    """
    if _current is not None:
        return _current.draw(like, fill)
    return fill(torch.empty_like(like, memory_format=torch.contiguous_format))


def exponential(like: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """Exponential variables of rate 1, for each number of `like` (envs, ...)."""
    return draw(like, lambda numbers: numbers.exponential_(generator=generator))


def uniform(like: torch.Tensor) -> torch.Tensor:
    """Numbers from 0 to 1 for each env of `like` (envs, ...): (envs,) float32."""
    return draw(like.new_empty(len(like), dtype=torch.float32), torch.Tensor.uniform_)


def integers(like: torch.Tensor, stop: int) -> torch.Tensor:
    """Integers below `stop`, for each number of `like` (envs, ...), of its dtype."""
    return draw(like, lambda numbers: numbers.random_(0, stop))
