"""Whole numbers that depend on when an operation is called.

An index is an expression of `t` (the step), `j` (which of the calls at this step), `u` (how many
calls the operation had before) and numbers that are known only when it runs (`Bound`). It can be
written for isl, and it can be evaluated: with Python's integers, or with tensors on a device.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, Protocol, Union

import torch

from cule.errors import InvalidType, InvalidValue
from cule.train.plan.unknowns import Unknowns

Whole = Union["Index", int]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class HasCalls(Protocol):
    """When an operation is called, as far as an index asks (domain.py's Domain)."""

    @property
    def calls(self) -> Index:
        """u, the calls before (t, j)."""


@dataclass(frozen=True, eq=False)
class Index:
    """An expression; `t + 1`, `(t - 3) // 4`, `2 * u`, `t % 4`.

    Attributes:
        kind: "t", "j", "u", "constant", "bound", "add", "multiply", "divide", "modulo", "min",
            "max" or "case".
        parts: the expressions, conditions, numbers or the Bound that it is made of.
    """

    kind: str
    parts: tuple[Any, ...] = ()

    def __bool__(self) -> NoReturn:
        raise InvalidType(
            f"expected an index to be compared, as in cases((t == 0, 4), 1), got {self} where "
            "Python asks whether it is true: a program is declared before its steps are counted"
        )

    __hash__ = object.__hash__

    def __eq__(self, other: Whole) -> Condition:  # type: ignore[override]
        return self._compared("==", other)

    def __ne__(self, other: Whole) -> Condition:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Whole) -> Condition:
        return self._compared("<", other)

    def __le__(self, other: Whole) -> Condition:
        return self._compared("<=", other)

    def __gt__(self, other: Whole) -> Condition:
        return self._compared(">", other)

    def __ge__(self, other: Whole) -> Condition:
        return self._compared(">=", other)

    def _compared(self, how: str, other: Whole) -> Condition:
        return Condition(how, (self, as_index(other)))

    def __mod__(self, divisor: int) -> Index:
        return self._divided("modulo", divisor)

    def __truediv__(self, other: object) -> Index:
        raise InvalidType(f"expected an index divided by //, got {self} / {other!r}")

    @cached_property
    def text(self) -> str:
        """Its expression; equal ones are the same index."""
        return str(self)

    @cached_property
    def linear(self) -> tuple[dict[str, int], int]:
        """The factors of what is not a sum, by its text, and the constant beside them."""
        if self.kind == "constant":
            return {}, self.parts[0]
        if self.kind == "multiply":
            (factors, rest), by = self.parts[0].linear, self.parts[1]
            return ({name: by * n for name, n in factors.items()} if by else {}), by * rest
        if self.kind == "add":
            (factors, rest), (others, more) = (part.linear for part in self.parts)
            sums = {name: factors.get(name, 0) + others.get(name, 0) for name in factors | others}
            return {name: n for name, n in sums.items() if n}, rest + more
        return {self.text: 1}, 0

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
        if isinstance(factor, bool) or not isinstance(factor, int):
            raise InvalidType(f"expected an index times a whole number, got times {factor!r}")
        if self.kind == "constant":
            return constant(self.parts[0] * factor)
        return self if factor == 1 else Index("multiply", (self, factor))

    def __rmul__(self, factor: int) -> Index:
        return self * factor

    def __floordiv__(self, divisor: int) -> Index:
        divided = self._divided("divide", divisor)
        return self if divisor == 1 else divided

    def _divided(self, kind: str, divisor: int) -> Index:
        if isinstance(divisor, bool) or not isinstance(divisor, int) or divisor < 1:
            raise InvalidValue(
                f"expected an index divided by a whole number of 1 or more, got by {divisor!r}"
            )
        return Index(kind, (self, divisor))

    def at_least(self, least: Whole) -> Index:
        """This, or `least` if that is more."""
        return maximum(self, least)

    def with_t(self, t: Index) -> Index:
        """The same expression with `t` in place of t."""
        if self.kind == "t":
            return t
        parts: tuple[Any, ...] = tuple(
            part.with_t(t) if isinstance(part, (Index, Condition)) else part for part in self.parts
        )
        if self.kind == "add":
            return parts[0] + parts[1]
        return Index(self.kind, parts)

    @property
    def is_known(self) -> bool:
        """Whether it is known when the program is planned: it has no Bound."""
        inner = [part for part in self.parts if isinstance(part, (Index, Condition))]
        return self.kind != "bound" and all(part.is_known for part in inner)

    def isl(self, domain: HasCalls, unknowns: Unknowns) -> str:
        """In isl's language, for an operation with this domain; its variables are added."""
        kind, parts = self.kind, self.parts
        if kind == "u":
            return domain.calls.isl(domain, unknowns)
        if kind in ("t", "j"):
            return kind
        if kind == "constant":
            return str(parts[0])
        if kind == "bound":
            return self._is_one_of(unknowns, f"{parts[0].least} <= {{}} <= {parts[0].most}")
        texts = [
            part.isl(domain, unknowns) if isinstance(part, (Index, Condition)) else str(part)
            for part in parts
        ]
        if kind == "case":
            condition, value, other = texts
            return self._is_one_of(
                unknowns,
                f"(({condition} and {{0}} = {value}) or (not ({condition}) and {{0}} = {other}))",
            )
        return {
            "add": "({} + {})", "multiply": "({1} * {0})", "divide": "floor({} / {})",
            "modulo": "(({}) mod {})", "min": "min({}, {})", "max": "max({}, {})",
        }[kind].format(*texts)  # fmt: skip

    @staticmethod
    def _is_one_of(unknowns: Unknowns, condition: str) -> str:
        name = unknowns.new()
        unknowns.conditions.append(condition.format(name))
        return name

    def at(self, domain: HasCalls, t: Any, j: Any) -> Any:
        """Its value: with ints an int, with an int64 tensor for t a tensor."""
        kind, parts = self.kind, self.parts
        if kind == "u":
            return domain.calls.at(domain, t, j)
        if kind in ("t", "j"):
            return t if kind == "t" else j
        if kind == "constant":
            return parts[0]
        if kind == "bound":
            return parts[0].now(t)
        first, *rest = (
            part.at(domain, t, j) if isinstance(part, (Index, Condition)) else part
            for part in parts
        )
        if kind == "add":
            return first + rest[0]
        if kind == "multiply":
            return first * rest[0]
        if kind == "divide":
            return first // rest[0]
        if kind == "modulo":
            return first % rest[0]
        if kind == "case":
            if isinstance(first, torch.Tensor):
                return torch.where(first, *rest)
            return rest[0] if first else rest[1]
        return _extreme(kind, first, rest[0])

    def __str__(self) -> str:
        if self.kind in ("t", "j", "u"):
            return self.kind
        if self.kind in ("constant", "bound"):
            return str(self.parts[0]) if self.kind == "constant" else self.parts[0].name
        if self.kind in ("min", "max"):
            return f"{self.kind}({self.parts[0]}, {self.parts[1]})"
        if self.kind == "case":
            return f"({self.parts[1]} if {self.parts[0]} else {self.parts[2]})"
        first, second = self.parts
        if self.kind == "add":
            text = str(second)
            return f"{first} - {text[1:]}" if text.startswith("-") else f"{first} + {text}"
        simple = first.kind not in ("add", "multiply", "divide", "modulo")
        inner = str(first) if simple else f"({first})"
        if self.kind == "multiply":
            return f"-{inner}" if second == -1 else f"{second} * {inner}"
        return f"{inner} {'//' if self.kind == 'divide' else '%'} {second}"


@dataclass(frozen=True, eq=False)
class Condition:
    """A comparison of two indices; or "and", "or" or "not" of conditions, as `&`, `|` and `~`.

    Attributes:
        kind: "<", "<=", ">", ">=", "==", "!=", "and", "or" or "not".
        parts: the indices or conditions.
    """

    kind: str
    parts: tuple[Any, ...]

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise InvalidType(
            f"expected a condition in cases() or in when=, got {self} where Python asks whether it "
            "is true: a program is declared before its steps are counted. Conditions are joined by "
            "&, | and ~"
        )

    def __and__(self, other: Condition) -> Condition:
        return Condition("and", (self, as_condition(other)))

    def __or__(self, other: Condition) -> Condition:
        return Condition("or", (self, as_condition(other)))

    def __invert__(self) -> Condition:
        return Condition("not", (self,))

    @property
    def is_known(self) -> bool:
        """As of an Index."""
        return all(part.is_known for part in self.parts)

    def with_t(self, t: Index) -> Condition:
        """The same with `t` in place of t."""
        return Condition(self.kind, tuple(part.with_t(t) for part in self.parts))

    def isl(self, domain: HasCalls, unknowns: Unknowns) -> str:
        """As of an Index."""
        texts = [part.isl(domain, unknowns) for part in self.parts]
        if self.kind == "not":
            return f"(not {texts[0]})"
        sign = {"==": "=", "!=": "!="}.get(self.kind, self.kind)
        return f"({texts[0]} {sign} {texts[1]})"

    def at(self, domain: HasCalls, t: Any, j: Any) -> Any:
        """Whether it holds: with ints a bool, with an int64 tensor for t a bool tensor."""
        values = [part.at(domain, t, j) for part in self.parts]
        if self.kind == "not":
            return ~values[0] if isinstance(values[0], torch.Tensor) else not values[0]
        if self.kind in ("and", "or"):
            first, second = values
            return first & second if self.kind == "and" else first | second
        return COMPARISONS[self.kind](*values)

    def __str__(self) -> str:
        if self.kind == "not":
            return f"not ({self.parts[0]})"
        joined = self.kind in ("and", "or")
        first, second = (f"({part})" if joined else str(part) for part in self.parts)
        return f"{first} {self.kind} {second}"


def _extreme(kind: str, first: Any, second: Any) -> Any:
    """The least or the greatest of two numbers or tensors."""
    if not isinstance(first, torch.Tensor):
        first, second = second, first
    if not isinstance(first, torch.Tensor):
        return min(first, second) if kind == "min" else max(first, second)
    if isinstance(second, torch.Tensor):
        return torch.minimum(first, second) if kind == "min" else torch.maximum(first, second)
    return first.clamp(max=second) if kind == "min" else first.clamp(min=second)


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


def as_condition(value: Any) -> Condition:
    """The condition.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, Condition):
        raise InvalidType(f"expected a condition such as t % 4 == 0, got {value!r}")
    return value


def minimum(first: Whole, *others: Whole) -> Index:
    """The least of some indices."""
    least = as_index(first)
    for other in others:
        least = Index("min", (least, as_index(other)))
    return least


def maximum(first: Whole, *others: Whole) -> Index:
    """The greatest of some indices."""
    most = as_index(first)
    for other in others:
        most = Index("max", (most, as_index(other)))
    return most


def cases(*choices: tuple[Condition, Whole] | Whole) -> Index:
    """The index beside the first condition that holds; if none does, the last one.

    For example `cases((t == 0, 0), (t % 4 == 0, t - 4), t - 1)`.

    Raises:
        TypeError: a choice but the last is no condition with an index, or the last no index.
    """
    if not choices:
        raise InvalidType("expected cases((condition, index), ..., index), got nothing")
    *first, last = choices
    result = as_index(last)  # type: ignore[arg-type]
    for choice in reversed(first):
        if not isinstance(choice, tuple) or len(choice) != 2:
            raise InvalidType(
                f"expected cases((condition, index), ..., index), got {choice!r} before the last"
            )
        result = Index("case", (as_condition(choice[0]), as_index(choice[1]), result))
    return result


T, J, U = Index("t"), Index("j"), Index("u")
