"""A program over time: tensors over time, operations on them, and their order.

The order in which operations are declared, step after step, defines what a program computes. Each
index of a Recurrent is written once. Operations next to each other that are called the same number
of times at the same steps share a loop: all of them are called for j = 0, then for j = 1.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args

import torch

from cule.errors import InvalidValue
from cule.train.checks import is_name
from cule.train.plan.domain import Domain
from cule.train.plan.index import Condition, Index, J, T, U, as_condition, as_index
from cule.train.plan.unknowns import Bound
from cule.train.plan.work import Work

Role = Literal["simulate", "act", "learn", "reduce", "copy", "hand over", "effect"]
Over = Literal["step", "update"]
MOST_BOUND = 2**20  # for which windows can be declared to have room
ROLES, OVERS = get_args(Role), get_args(Over)
# The marker of a Recurrent without an initial value.
NOTHING: Any = object()


@dataclass(eq=False)
class Recurrent:
    """A tensor over time.

    Attributes:
        name: for messages and for saved states.
        shape: of the value at one index.
        dtype: of the values.
        over: what its indices count: steps of the envs, or calls of the operation that writes it.
        initial: the value at all indices before the first that is written; NOTHING: there is none.
        stack: how many values a read stacks; index i reads the values at i - stack + 1 .. i.
        object: for an object, the Python object whose versions the indices count; else None.
        output: it is one of the program's results, and computed even if no operation reads it.
        deferred: stacks may be read from the values by what uses them, without being put together.
        store: the class that stores the values (stores.py's Store, with `bytes_of`); None: a Ring.
    """

    name: str
    shape: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32
    over: Over = "step"
    initial: Any = NOTHING
    stack: int = 1
    object: Any = None
    output: bool = False
    deferred: bool = False
    store: Any = None

    def __post_init__(self) -> None:
        if self.stack > 1 and self.store is None:
            raise InvalidValue(f"expected a store for the stacks of {self.name}, got none")

    def __getitem__(self, key: Index | int | slice) -> Access:
        """`x[t]` is a value, `x[t - 3:t + 1]` a window of four.

        Raises:
            ValueError: a window without a beginning or an end, or with a step.
        """
        if not isinstance(key, slice):
            return Access(self, as_index(key), as_index(key) + 1, window=False)
        if key.start is None or key.stop is None or key.step is not None:
            raise InvalidValue(f"expected a window {self.name}[first:stop], got {key}")
        return Access(self, as_index(key.start), as_index(key.stop), window=True)

    @property
    def slot_bytes(self) -> int:
        """Bytes of the value at one index."""
        return 0 if self.object is not None else math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Access:
    """A read or a write of a Recurrent.

    Attributes:
        recurrent: the Recurrent.
        first: its first index.
        stop: the index after its last.
        window: whether it is a window, or a single value.
        since: a window leaves out indices before this one; None: none are left out.
        most: the most indices that it can have; a window whose length depends on the time gets it
            from the plan.
        same: in a write: a key of the function that computes the value. Two writes with equal keys
            by operations that read the same values write the same value; None: there is no key.
    """

    recurrent: Recurrent
    first: Index
    stop: Index
    window: bool
    since: int | None = None
    most: int = 1
    same: Hashable | None = None
    _length: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        factors, count = (self.stop - self.first).linear
        object.__setattr__(self, "_length", None if factors else count)
        object.__setattr__(self, "most", max(self.most, self._length or 1))

    def __str__(self) -> str:
        place = f"{self.first}:{self.stop}" if self.window else str(self.first)
        return f"{self.recurrent.name}[{place}]"

    def length(self) -> int | None:
        """Indices in the window; None if that depends on the time."""
        return self._length


class AsyncOperation(Protocol):
    """The functions of an operation that is called part by part, beside other work.

    Its parts are computed by the host's threads while the device does other things; all parts may
    be in flight at once. Functions that are said to be capturable only give work to the device.

    Attributes:
        parts: the rows of each part; a Recurrent's first dimension is over rows.
    """

    parts: Sequence[slice]

    def stage(self, part: int, *read: Any) -> None:
        """Copies the operation's inputs to fixed memory of the host. Capturable."""

    def staged(self, part: int) -> None:
        """Notes that the device has been given all that `stage` does."""

    def send(self, part: int) -> None:
        """Starts a part once the device has copied its inputs; does not wait for the part."""

    def is_done(self, part: int) -> bool:
        """Whether `recv` would not wait."""

    def recv(self, part: int) -> None:
        """Waits until a part is done."""

    def results(self, part: int) -> tuple[Any, ...]:
        """Copies a part's results to the device: as the operation's function returns them.

        Capturable.
        """


@dataclass(eq=False)
class Operation:
    """A function that is called again and again.

    Attributes:
        name: for messages, explain() and cule.scope.
        role: its part in training; "effect": it does something outside of the program, such as
            sending a message, and is never left out.
        domain: when it is called.
        reads: its inputs; the function gets one argument for each.
        writes: its outputs; the function returns a tuple with a value for each, or the value if
            there is one. Objects are changed in place: nothing is returned for them.
        function: computes it.
        moments: indices that the function gets after what it reads, as (1,) int64 tensors.
        batched: the function also takes several calls at once, in a leading dimension.
        captured: whether a CUDA graph may hold it.
        copies: of an operation that copies an object: the version that it copies, as an index in
            which t is the version that it writes; None: it copies none.
        work: the memory that a call needs besides tensors over time; None: hardly any.
        warm_up: called once before the first iteration, with the operation's inputs, to compile and
            load its kernels; it must change nothing. None: not called.
        asynchronous: the functions with which it is called part by part; None: it is called for all
            rows at once.
        by_row: a row of its outputs depends on the same row of its inputs only, so that it may be
            called for some rows.
        in_part: the context of a call for some rows; it gets the first of them. None: no context.
        place: its loop among those of a step, and its place in the loop.
    """

    name: str
    role: Role
    domain: Domain
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    function: Callable[..., Any]
    moments: tuple[Index, ...] = ()
    batched: bool = False
    captured: bool = True
    copies: Index | None = None
    work: Work | None = None
    warm_up: Callable[..., Any] | None = None
    asynchronous: AsyncOperation | None = None
    by_row: bool = False
    in_part: Callable[[int], AbstractContextManager[object]] | None = None
    place: tuple[int, int] = (0, 0)

    @property
    def returned(self) -> tuple[Access, ...]:
        """The writes that the function returns a value for."""
        return tuple(write for write in self.writes if write.recurrent.object is None)


def problem_of_window(operation: str, access: Access) -> str | None:
    """The error message of a window that is empty; None: it is not."""
    length = access.length()
    if length is not None and length < 1:
        return (
            f"expected {operation} to read a window of at least one index, got {access}, which has "
            f"{length}"
        )
    return None


@dataclass(eq=False)
class Program:
    """Operations in an order that defines what is computed.

    Attributes:
        period: steps in an iteration; the plan orders calls inside an iteration.
        operations: in their order.
        bounds: the names of the numbers that only the run knows.
    """

    period: int = 1
    operations: list[Operation] = field(default_factory=list)
    bounds: set[str] = field(default_factory=set)
    t: Index = T
    u: Index = U
    j: Index = J

    def recurrent(
        self,
        name: str,
        shape: Sequence[int] = (),
        dtype: torch.dtype = torch.float32,
        over: Over = "step",
        initial: Any = NOTHING,
        **more: Any,
    ) -> Recurrent:
        """A new tensor over time; see Recurrent.

        Raises:
            ValueError: `over` is neither "step" nor "update", or `initial` is no number or tensor.
        """
        if over not in OVERS:
            raise InvalidValue(f'expected over to be "step" or "update", got {over!r}')
        if initial is not NOTHING and not isinstance(initial, (numbers.Real, torch.Tensor)):
            raise InvalidValue(
                f"expected the initial value of {name} to be a number or a tensor, got {initial!r}"
            )
        return Recurrent(name, tuple(shape), dtype, over, initial, **more)

    def object(self, name: str, object_: Any, *, output: bool = False) -> Recurrent:
        """A Recurrent of the versions of an object that operations change in place.

        Args:
            name: for messages and for saved states.
            object_: such as a network; its present state is version 0.
            output: the object is a result of the program, see Recurrent.
        """
        return Recurrent(name, over="update", initial=object_, object=object_, output=output)

    def bound(self, name: str, value: torch.Tensor, least: int, most: int) -> Index:
        """A number for indices of reads that is known only when the program runs.

        Args:
            name: no other one's of the program.
            value: a real number on the device, such as a schedule's; it may change between
                iterations, and fractions are cut off.
            least: what it is at least; a lower value counts as this.
            most: what it is at most; a higher value counts as this.

        Raises:
            ValueError: it is no such tensor, or `least` is more than `most`.
        """
        if not is_name(name) or name in ("t", "j", "u") or name in self.bounds:
            raise InvalidValue(f"expected a name of its own for a bound, got {name!r}")
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.is_complex():
            raise InvalidValue(f"expected a tensor of one real number as {name}, got {value!r}")
        for number in (least, most):
            if isinstance(number, bool) or not isinstance(number, int) or abs(number) > MOST_BOUND:
                raise InvalidValue(
                    f"expected whole numbers up to {MOST_BOUND:,} as least and most of {name}, got "
                    f"{number!r}"
                )
        if least > most:
            raise InvalidValue(f"expected a range for {name}, got {name} from {least} to {most}")
        self.bounds.add(name)
        return Index("bound", (Bound(name, value, least, most),))

    def operation(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        role: Role,
        reads: Iterable[Access] = (),
        writes: Iterable[Access] = (),
        every: int = 1,
        times: int = 1,
        start: int = 0,
        nth: int = 1,
        when: Condition | None = None,
        **more: Any,
    ) -> Operation:
        """Appends an operation; see Operation and Domain.

        Raises:
            TypeError: `when` is no condition.
            ValueError: the role, a number or a window is wrong, the name is taken, or `when` asks
                for a number that is not known when the program is planned.
        """
        if role not in ROLES:
            raise InvalidValue(
                f"expected the role of {name} to be one of {', '.join(ROLES)}, got {role!r}"
            )
        if name in {operation.name for operation in self.operations}:
            raise InvalidValue(f"expected another name for a second operation {name}")
        if min(every, times, nth) < 1 or start < 0:
            raise InvalidValue(
                f"expected {name} with every, times and nth of at least 1 and start of at least 0, "
                f"got {every}, {times}, {nth} and {start}"
            )
        if when is not None and not as_condition(when).is_known:
            raise InvalidValue(
                f"expected {name} with a condition of t and j alone, as the plan has to know when "
                f"it is called, got {when}"
            )
        domain = Domain(every, times, start, nth, when=when)
        operation = Operation(
            name, role, domain, tuple(reads), tuple(writes), function,
            place=self._next_place(domain), **more,
        )  # fmt: skip
        for access in operation.reads:
            if problem := problem_of_window(name, access):
                raise InvalidValue(problem)
        for access in operation.writes:
            if access.window:
                raise InvalidValue(f"expected {name} to write single indices, got {access}")
            if not access.first.is_known:
                raise InvalidValue(
                    f"expected {name} to write indices that are known when the program is planned, "
                    f"got {access}"
                )
        self.operations.append(operation)
        return operation

    def _next_place(self, domain: Domain) -> tuple[int, int]:
        if not self.operations:
            return 0, 0
        last = self.operations[-1]
        stage, position = last.place
        if domain.loop != last.domain.loop or domain.times == 1:
            stage += 1
        # Room for what passes put between two operations.
        return stage, position + 4

    @property
    def recurrents(self) -> list[Recurrent]:
        """All recurrents that operations access, in the order of their first access."""
        accesses = (a for o in self.operations for a in (*o.reads, *o.writes))
        return list(dict.fromkeys(access.recurrent for access in accesses))

    def with_operations(self, operations: Iterable[Operation]) -> Program:
        """The same with other operations."""
        return replace(self, operations=list(operations))


def calls_in_order(
    operations: Iterable[Operation], begin: int, end: int
) -> list[tuple[Operation, int, int]]:
    """The calls (operation, t, j) at steps begin .. end - 1, in the program's order."""
    stages: dict[int, list[Operation]] = {}
    for operation in sorted(operations, key=lambda o: o.place):
        stages.setdefault(operation.place[0], []).append(operation)
    calls = []
    for t in range(begin, end):
        for stage in stages.values():
            due = {operation: set(operation.domain.calls_at(t)) for operation in stage}
            for j in sorted(set().union(*due.values())):
                calls += [(operation, t, j) for operation in stage if j in due[operation]]
    return calls
