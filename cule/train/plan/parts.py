"""Executes a group in which the host's threads compute an operation in parts, side by side.

The plan's order is, for example: act, emulate, act, emulate. For one row that is what happens. But
rows do not depend on each other: while some are emulated on the host's threads, the device acts for
others. A part's results are fetched when an operation reads them, or when something else follows
that is not made by parts.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext

from cule.train.plan import annotate
from cule.train.plan.execution import Executor, Step
from cule.train.plan.groups import Group
from cule.train.plan.program import AsyncOperation, Operation, Recurrent
from cule.train.plan.storage import Storage
from cule.train.plan.stores import Store

Replayed = Callable[[Hashable, Callable[[], None]], None]


def make_executor(group: Group, storage: Storage, period: int) -> Executor:
    """The executor that a group needs."""
    asynchronous = [o.asynchronous for o in group.operations if o.asynchronous is not None]
    if asynchronous:
        return AsyncExecutor(group, storage, period, asynchronous[0])
    return Executor(group, storage, period)


def at_once(_: Hashable, function: Callable[[], None]) -> None:
    """Executes a piece without capturing it."""
    function()


def by_parts(operation: Operation) -> bool:
    """Whether an operation is called part by part."""
    return operation.by_row or operation.asynchronous is not None


class PartStorage(Storage):
    """Stores of some rows of a storage's tensors, in the same memory.

    Args:
        whole: the storage.
        rows: the rows.
        recurrents: the tensors.
    """

    def __init__(self, whole: Storage, rows: slice, recurrents: Sequence[Recurrent]):
        super().__init__({}, whole.device)

        def parts(stores: dict[Recurrent, Store]) -> dict[Recurrent, Store]:
            return {r: stores[r].part(rows) for r in recurrents if r in stores}

        self.far, self.near, self.first = map(parts, (whole.far, whole.near, whole.first))
        self._early = whole._early


class Part(Executor):
    """Executes the calls of a part's rows.

    Attributes:
        first: the first of its rows.
        behind: by how much (t, j) the part's time is behind the group's.
        staged: the operation whose inputs the device is copying; None: none is.
        flying: the operation that is in flight; None: none is.
    """

    def __init__(self, group: Group, storage: Storage, period: int, rows: slice):
        operations = [o for o in group.operations if by_parts(o)]
        recurrents = {a.recurrent: None for o in operations for a in (*o.reads, *o.writes)}
        super().__init__(group, PartStorage(storage, rows, list(recurrents)), period)
        self.first, self.behind = rows.start, [0, 0]
        self.staged: Operation | None = None
        self.flying: Operation | None = None

    def call(self, operation: Operation) -> None:
        """Calls an operation that works part by part, at the part's time."""
        with operation.in_part(self.first) if operation.in_part else nullcontext():
            self._call(operation, ((0, 0),), annotate.reading_of(annotate.part_of(operation)))

    def read(self, operation: Operation) -> list[object]:
        """The arguments of an operation at the part's time."""
        with annotate.operation("storage"):
            return self._arguments(operation, self.clock.t, self.clock.j, {})

    def write(self, operation: Operation, values: object) -> None:
        """Stores an operation's results at the part's time."""
        with annotate.operation("storage"):
            self._write(operation, values, self.clock.t, self.clock.j, {})


class AsyncExecutor(Executor):
    """Executes the calls of a group with an asynchronous operation.

    Args:
        group: the group.
        storage: the stores of the program's tensors.
        period: steps in an iteration.
        asynchronous: the functions of the operation.
    """

    def __init__(self, group: Group, storage: Storage, period: int, asynchronous: AsyncOperation):
        super().__init__(group, storage, period)
        self.asynchronous = asynchronous
        self.parts = [Part(group, storage, period, rows) for rows in asynchronous.parts]

    def landing(self) -> list[Step]:
        """See Executor."""
        return [Step(0, 0, ())]

    def begin_at(self, steps: int) -> None:
        """See Executor."""
        super().begin_at(steps)
        for part in self.parts:
            part.begin_at(steps)
            part.behind = [0, 0]

    def _warm_up(self, operation: Operation) -> None:
        if not by_parts(operation):
            super()._warm_up(operation)
            return
        for part in self.parts:
            part._warm_up(operation)

    def make(self, step: Step) -> None:
        """See Executor."""
        self.make_in_pieces(step, at_once)

    def make_in_pieces(self, step: Step, replayed: Replayed) -> None:
        """See Executor. A step without calls, such as an iteration's last, lands all parts."""
        if not step.calls:
            self._land_all(replayed)
        with annotate.operation(annotate.PLAYING):
            for part in self.parts:
                part.behind = [part.behind[0] + step.t, part.behind[1] + step.j]
            self.clock.move(step.t, step.j)
        for in_parts, calls in itertools.groupby(step.calls, key=lambda call: by_parts(call[0])):
            if in_parts:
                self._make_by_parts([operation for operation, _ in calls], replayed)
                continue
            self._land_all(replayed)
            rest = Step(0, 0, tuple(calls))
            if replayed is at_once:
                super().make(rest)
            else:
                super().make_in_pieces(rest, replayed)

    def _make_by_parts(self, operations: Sequence[Operation], replayed: Replayed) -> None:
        """Calls operations part by part; the last of them may stay in flight.

        A part's results and what follows them on the device are one piece if a graph may hold it.
        While the device works for a part, the host prepares the next one, if that has landed. If
        not, it sends what it has before it waits.
        """
        names = tuple(operation.name for operation in operations)
        in_graph = all(o.captured for o in operations if o.asynchronous is None)
        sent = next((o for o in operations if o.asynchronous is not None), None)
        for number, part in enumerate(self.parts):
            with annotate.operation(annotate.PLAYING):
                if number and not self._is_done(number):
                    self._send(number - 1)
                landed = self._wait(number)
                if not in_graph:
                    self._store(number, landed, replayed)
                    landed = None
                (t, j), part.behind = part.behind, [0, 0]
                key = (self.group, names, number, t, j, landed and landed.name)
                call = functools.partial(self._on_device, operations, number, t, j, landed)
                (replayed if in_graph else at_once)(key, call)
                if sent is not None:
                    self.asynchronous.staged(number)
                    part.staged = sent
                if number:
                    self._send(number - 1)
        with annotate.operation(annotate.PLAYING):
            self._send(len(self.parts) - 1)

    def _send(self, number: int) -> None:
        """Starts a part that is staged, once the device has copied its inputs."""
        part = self.parts[number]
        if part.staged is not None:
            self.asynchronous.send(number)
            part.flying, part.staged = part.staged, None

    def _is_done(self, number: int) -> bool:
        """Whether the host need not wait for a part."""
        return self.parts[number].flying is None or self.asynchronous.is_done(number)

    def _on_device(
        self, operations: Sequence[Operation], number: int, t: int, j: int,
        landed: Operation | None,
    ) -> None:  # fmt: skip
        """Does a part's work on the device that comes before that of the host's threads."""
        part = self.parts[number]
        if landed is not None:
            self._land(landed, number)
        part.clock.move(t, j)
        for operation in operations:
            if operation.asynchronous is None:
                part.call(operation)
            else:
                self.asynchronous.stage(number, *part.read(operation))

    def _land_all(self, replayed: Replayed) -> None:
        for number in range(len(self.parts)):
            with annotate.operation(annotate.PLAYING):
                self._store(number, self._wait(number), replayed)

    def _wait(self, number: int) -> Operation | None:
        """Waits for a part that is in flight, and returns its operation; None: none is."""
        part = self.parts[number]
        operation, part.flying = part.flying, None
        if operation is not None:
            with annotate.operation(annotate.name_of(operation)):
                self.asynchronous.recv(number)
        return operation

    def _land(self, landed: Operation, number: int) -> None:
        """Stores the results of a part that has landed."""
        self.parts[number].write(landed, self.asynchronous.results(number))

    def _store(self, number: int, landed: Operation | None, replayed: Replayed) -> None:
        """Stores the results of a part, if it has landed, in a piece of its own."""
        if landed is not None:
            key = (self.group, landed.name, number, "landing")
            replayed(key, functools.partial(self._land, landed, number))
