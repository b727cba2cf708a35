"""Numbers in indices that are no formula of the time: variables of isl, and what a run knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


class Unknowns:
    """The variables of an expression in isl's language that stand for more than a formula.

    Attributes:
        names: the variables.
        conditions: what holds for them.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.conditions: list[str] = []

    def new(self) -> str:
        """Another variable."""
        self.names.append(f"e{len(self.names)}")
        return self.names[-1]

    def where(self, conditions: list[str]) -> str:
        """That some conditions hold for fitting values of the variables."""
        both = " and ".join([*conditions, *self.conditions])
        return f"(exists ({', '.join(self.names)} : {both}))" if self.names else both


@dataclass(frozen=True, eq=False)
class Bound:
    """A number that is known only when the program runs.

    Attributes:
        name: no other one's of a program.
        value: one number on the device, which may change between iterations; fractions are cut off.
        least, most: what it is at least and at most; a value outside counts as the nearer of both.
    """

    name: str
    value: torch.Tensor
    least: int
    most: int

    def now(self, like: Any) -> Any:
        """Its value, as an int or a tensor as `like` is."""
        if isinstance(like, torch.Tensor):
            return self.value.reshape(1).long().clamp(self.least, self.most)
        return min(max(int(self.value), self.least), self.most)
