"""When an operation is called."""

from __future__ import annotations

from dataclasses import dataclass

from cule.train.plan.index import Condition, Index, J, T
from cule.train.plan.unknowns import Unknowns


@dataclass(frozen=True)
class Domain:
    """When an operation is called: at steps t = start, start + every, ..., `times` times each.

    Attributes:
        every: steps between two rounds of calls.
        times: calls j = 0 .. times - 1 in a round.
        start: the first step with calls.
        nth: only every nth of all these calls is made.
        first: only calls from this j on are made.
        stop: only calls before this j are made; None: all.
        when: only calls for which this holds are made; None: all.
    """

    every: int = 1
    times: int = 1
    start: int = 0
    nth: int = 1
    first: int = 0
    stop: int | None = None
    when: Condition | None = None

    @property
    def calls(self) -> Index:
        """u, the calls before (t, j); those that `nth` and `when` leave out are counted, too."""
        return ((T - self.start) // self.every) * self.times + J

    @property
    def loop(self) -> tuple[int, int, int]:
        """A key that is equal for operations that share a loop: every, start, times."""
        return self.every, self.start % self.every, self.times

    def isl(self) -> str:
        """Its condition in isl's language."""
        stop = self.times if self.stop is None else min(self.stop, self.times)
        parts = [f"t >= {self.start}", f"{self.first} <= j < {stop}"]
        if self.every > 1:
            parts.append(f"(t - {self.start}) mod {self.every} = 0")
        unknowns = Unknowns()
        if self.nth > 1:
            parts.append(f"({self.calls.isl(self, unknowns)} + 1) mod {self.nth} = 0")
        if self.when is not None:
            parts.append(self.when.isl(self, unknowns))
        return unknowns.where(parts)

    @property
    def is_even(self) -> bool:
        """Whether every round has the same calls."""
        return self.nth == 1 and self.when is None

    def calls_at(self, t: int) -> list[int]:
        """The calls j of step t."""
        if t < self.start or (t - self.start) % self.every:
            return []
        stop = self.times if self.stop is None else min(self.stop, self.times)
        before = (t - self.start) // self.every * self.times
        return [
            j
            for j in range(self.first, stop)
            if (before + j + 1) % self.nth == 0 and (self.when is None or self.when.at(self, t, j))
        ]
