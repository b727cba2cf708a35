"""Whole numbers that depend on when an operation is called.

An index is an expression of `t` (the step), `j` (which of the calls at this step) and `u` (how many
calls the operation had before). It can be written for isl, and it can be evaluated: with Python's
integers, or with tensors on a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

import torch

from cule.errors import InvalidType, InvalidValue

Whole = Union["Index", int]


@dataclass(frozen=True, eq=False)
class Index:
    """An expression; `t + 1`, `(t - 3) // 4`, `2 * u`.

    Attributes:
        kind: "t", "j", "u", "constant", "add", "multiply", "divide" or "max".
        parts: the expressions, or the constant, that it is made of.
    """

    kind: str
    parts: tuple[Any, ...] = ()

    def _is_condition(self, *_: object) -> bool:
        raise InvalidType(
            f"expected an index of t, j and u with +, -, * and //, got a condition on {self}: a "
            "program is declared before its steps are counted"
        )

    # The default comparisons would say that t is not 0, and that it is true.
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _is_condition  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __mod__(self, other: object) -> Index:
        raise InvalidType(f"expected an index without %, got {self} % {other!r}")

    def __truediv__(self, other: object) -> Index:
        raise InvalidType(f"expected an index divided by //, got {self} / {other!r}")

    @cached_property
    def text(self) -> str:
        """Its expression; equal ones are the same index."""
        return str(self)

    @property
    def _is_zero(self) -> bool:
        return self.kind == "constant" and self.parts[0] == 0

    def __add__(self, other: Whole) -> Index:
        other = as_index(other)
        if other._is_zero:
            return self
        if self.kind == other.kind == "constant":
            return constant(self.parts[0] + other.parts[0])
        if self.kind == "add" and self.parts[1].kind == other.kind == "constant":
            return self.parts[0] + constant(self.parts[1].parts[0] + other.parts[0])
        return other if self._is_zero else Index("add", (self, other))

    def __radd__(self, other: int) -> Index:
        return self + other

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Whole) -> Index:
        return self + -as_index(other)

    def __rsub__(self, other: int) -> Index:
        return -self + other

    def __mul__(self, factor: int) -> Index:
        if not isinstance(factor, int):
            raise InvalidType(f"expected an index times a whole number, got times {factor!r}")
        if self.kind == "constant":
            return constant(self.parts[0] * factor)
        return self if factor == 1 else Index("multiply", (self, factor))

    def __rmul__(self, factor: int) -> Index:
        return self * factor

    def __floordiv__(self, divisor: int) -> Index:
        if not isinstance(divisor, int) or divisor < 1:
            raise InvalidValue(f"expected an index divided by 1 or more, got by {divisor!r}")
        return self if divisor == 1 else Index("divide", (self, divisor))

    def at_least(self, least: int) -> Index:
        """This, or `least` if that is more."""
        return Index("max", (self, least))

    def with_t(self, t: Index) -> Index:
        """The same expression with `t` in place of t."""
        if self.kind == "t":
            return t
        parts = tuple(part.with_t(t) if isinstance(part, Index) else part for part in self.parts)
        if self.kind == "add":
            return parts[0] + parts[1]
        return Index(self.kind, parts)

    def isl(self, domain: Domain) -> str:
        """In isl's language, for an operation with this domain."""
        if self.kind == "u":
            return domain.calls.isl(domain)
        if self.kind in ("t", "j"):
            return self.kind
        first = self.parts[0].isl(domain) if self.kind != "constant" else str(self.parts[0])
        if self.kind == "add":
            return f"({first} + {self.parts[1].isl(domain)})"
        if self.kind == "multiply":
            return f"({self.parts[1]} * {first})"
        if self.kind == "divide":
            return f"floor({first} / {self.parts[1]})"
        return f"max({first}, {self.parts[1]})" if self.kind == "max" else first

    def at(self, domain: Domain, t: Any, j: Any) -> Any:
        """Its value: with ints an int, with an int64 tensor for t a tensor."""
        if self.kind == "u":
            return domain.calls.at(domain, t, j)
        if self.kind in ("t", "j"):
            return t if self.kind == "t" else j
        if self.kind == "constant":
            return self.parts[0]
        first = self.parts[0].at(domain, t, j)
        if self.kind == "add":
            return first + self.parts[1].at(domain, t, j)
        if self.kind == "multiply":
            return first * self.parts[1]
        if self.kind == "divide":
            return first // self.parts[1]
        least = self.parts[1]
        return first.clamp(min=least) if isinstance(first, torch.Tensor) else max(first, least)

    def __str__(self) -> str:
        if self.kind in ("t", "j", "u"):
            return self.kind
        if self.kind == "constant":
            return str(self.parts[0])
        first, second = self.parts
        if self.kind == "add":
            text = str(second)
            return f"{first} - {text[1:]}" if text.startswith("-") else f"{first} + {text}"
        inner = str(first) if first.kind in ("t", "j", "u", "max") else f"({first})"
        if self.kind == "multiply":
            return f"-{inner}" if second == -1 else f"{second} * {inner}"
        return f"{inner} // {second}" if self.kind == "divide" else f"max({first}, {second})"


def constant(value: int) -> Index:
    """A number as an index."""
    return Index("constant", (value,))


def as_index(value: Whole) -> Index:
    """The index, or the number as one.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, Index):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"expected an index such as t - 3, or a whole number, got {value!r}")
    return constant(value)


T, J, U = Index("t"), Index("j"), Index("u")


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
    """

    every: int = 1
    times: int = 1
    start: int = 0
    nth: int = 1
    first: int = 0
    stop: int | None = None

    @property
    def calls(self) -> Index:
        """u, the calls before (t, j), those that `nth` leaves out counted, too."""
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
        if self.nth > 1:
            parts.append(f"({self.calls.isl(self)} + 1) mod {self.nth} = 0")
        return " and ".join(parts)

    def calls_at(self, t: int) -> list[int]:
        """The calls j of step t."""
        if t < self.start or (t - self.start) % self.every:
            return []
        stop = self.times if self.stop is None else min(self.stop, self.times)
        if self.nth == 1:
            return list(range(self.first, stop))
        before = (t - self.start) // self.every * self.times
        return [j for j in range(self.first, stop) if (before + j + 1) % self.nth == 0]
