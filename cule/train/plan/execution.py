"""Executes calls: gathers what they read, calls the functions, stores what they write.

Each group has its own time on the device, so that groups can run side by side, and a captured call
reads where it is in time when it is replayed.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from cule.train.plan import annotate
from cule.train.plan.groups import Group
from cule.train.plan.program import Access, Operation, calls_in_order
from cule.train.plan.storage import Storage
from cule.train.plan.stores import Window

Call = tuple[Operation, int, int]
# Calls that are made as one: an operation's calls of an iteration, or a single call.
Calls = tuple[Call, ...]
# The slots that a call uses, by the first index, the stop, the store's length, `since`, and whether
# it is a store of the first indices.
Slots = dict[tuple[str, str, int, int | None, bool], torch.Tensor]


@dataclass(frozen=True)
class Step:
    """Calls that are executed as one, after the group's clock has moved on.

    Two equal steps of a group are the same work at different times.

    Attributes:
        t, j: by how much the group's clock moves on before the calls.
        calls: the operations, each with the times (t, j) of its calls, relative to the clock.
    """

    t: int
    j: int
    calls: tuple[tuple[Operation, tuple[tuple[int, int], ...]], ...]

    @cached_property
    def parts(self) -> list[tuple[str, list[tuple[Operation, tuple[tuple[int, int], ...]]]]]:
        """The calls by the part of an iteration that they belong to, in their order."""
        by_part = itertools.groupby(self.calls, lambda call: annotate.part_of(call[0]))
        return [(part, list(calls)) for part, calls in by_part]


class Clock:
    """The time of a group, on the device.

    Attributes:
        t, j: (1,) int64: the step, and the call in the step.
    """

    def __init__(self, device: torch.device):
        self.t = torch.zeros(1, dtype=torch.int64, device=device)
        self.j = torch.zeros(1, dtype=torch.int64, device=device)

    def move(self, t: int, j: int) -> None:
        """Moves on."""
        if t:
            self.t += t
        if j:
            self.j += j


class Executor:
    """Executes the calls of a group.

    Args:
        group: the group.
        storage: the stores of the program's tensors.
        period: steps in an iteration.
    """

    def __init__(self, group: Group, storage: Storage, period: int):
        self.group, self.storage, self.period = group, storage, period
        self.clock = Clock(storage.device)
        self._offsets: dict[tuple[tuple[int, int], ...], tuple[torch.Tensor, torch.Tensor]] = {}
        domains = [operation.domain for operation in group.operations]
        # From this step on iterations differ only in the calls of these domains.
        self._all_begun = max(domain.start for domain in domains)
        self._uneven = [d for d in domains if not d.is_even or period % d.every]
        self._known_steps: dict[Hashable, list[Step]] = {}
        for operation in group.operations:
            for access in operation.reads:
                # Made now, as streams share them.
                storage.range(access.most)

    def steps(self, iteration: int) -> list[Step]:
        """The steps of an iteration; they leave the clock at the next iteration's first step."""
        begin = iteration * self.period
        if begin < self._all_begun:
            return self._steps(begin)
        times = range(begin, begin + self.period)
        key = tuple(tuple(domain.calls_at(t)) for domain in self._uneven for t in times)
        if key not in self._known_steps:
            self._known_steps[key] = self._steps(begin)
        return self._known_steps[key]

    def _steps(self, begin: int) -> list[Step]:
        """The steps of the iteration that begins at step `begin` of the program."""
        end = begin + self.period
        calls = calls_in_order(self.group.operations, begin, end)
        if self.group.together:
            times = tuple((t - begin, j) for _, t, j in calls)
            batched = [Step(0, 0, ((self.group.operations[0], times),))] if calls else []
            return [*batched, Step(self.period, 0, ())]
        steps, t, j = [], begin, 0
        for (at_t, at_j), some in itertools.groupby(self._merged(calls), key=lambda one: one[1:3]):
            made = tuple((operation, times) for operation, _, _, times in some)
            steps.append(Step(at_t - t, at_j - j, made))
            t, j = at_t, at_j
        return [*steps, Step(end - t, -j, ())]

    def _merged(
        self, calls: Sequence[Call]
    ) -> Iterator[tuple[Operation, int, int, tuple[tuple[int, int], ...]]]:
        """Calls (operation, t, j) with the times of those that are made as one, from (t, j) on."""
        batched = self.group.batched
        of_step: dict[tuple[Operation, int], list[int]] = {}
        for operation, t, j in calls:
            if operation in batched:
                of_step.setdefault((operation, t), []).append(j)
        for operation, t, j in calls:
            if operation not in batched:
                yield operation, t, j, ((0, 0),)
            elif some := of_step.pop((operation, t), None):
                yield operation, t, j, tuple((0, k - j) for k in some)

    def make(self, step: Step) -> None:
        """Executes a step."""
        move = step.t, step.j
        for part, calls in step.parts or [(annotate.part_of(self.group.operations[-1]), [])]:
            with annotate.operation(part):
                self.clock.move(*move)
                for operation, times in calls:
                    self._call(operation, times, annotate.reading_of(part))
            move = 0, 0

    def make_in_pieces(
        self, step: Step, replayed: Callable[[Hashable, Callable[[], None]], None]
    ) -> None:
        """Executes a step in pieces: those that can be captured, and the calls between them.

        Args:
            step: the step.
            replayed: executes a piece that can be captured. It gets a key, equal for equal work,
                and a function that does the work.
        """
        for piece in pieces(step):
            if all(operation.captured for operation, _ in piece.calls):
                planned = [operation for operation, _ in piece.calls] or self.group.operations
                with annotate.operation(annotate.parts_of(planned)):
                    replayed((self.group, piece), lambda piece=piece: self.make(piece))  # type: ignore[misc]
            else:
                self.make(piece)

    def landing(self) -> list[Step]:
        """The steps after which all calls so far are done, also those of the host's threads."""
        return []

    def begin_at(self, steps: int) -> None:
        """Sets the group's time to the first call of a step."""
        self.clock.t.fill_(steps)
        self.clock.j.zero_()

    def warm_up(self) -> None:
        """Calls the `warm_up` of each operation that has one."""
        for operation in self.group.operations:
            self._warm_up(operation)

    def _warm_up(self, operation: Operation) -> None:
        if operation.warm_up is not None:
            operation.warm_up(*self._arguments(operation, self.clock.t, self.clock.j, {}))

    def _arguments(
        self, operation: Operation, t: torch.Tensor, j: torch.Tensor, slots: Slots
    ) -> list[Any]:
        read = [self._read(operation, access, t, j, slots) for access in operation.reads]
        return read + [index.at(operation.domain, t, j) for index in operation.moments]

    def _call(self, operation: Operation, times: tuple[tuple[int, int], ...], reading: str) -> None:
        slots: Slots = {}
        with annotate.operation(reading):
            t, j = self._times(times)
            arguments = self._arguments(operation, t, j, slots)
        with annotate.operation(annotate.name_of(operation)):
            result = operation.function(*arguments)
        with annotate.operation("storage"):
            self._write(operation, result, t, j, slots)

    def _times(self, times: tuple[tuple[int, int], ...]) -> tuple[torch.Tensor, torch.Tensor]:
        if times == ((0, 0),):
            return self.clock.t, self.clock.j
        if times not in self._offsets:
            both = torch.tensor(times, device=self.storage.device)
            self._offsets[times] = both[:, 0].contiguous(), both[:, 1].contiguous()
        t, j = self._offsets[times]
        return self.clock.t + t, self.clock.j + j

    def _read(
        self, operation: Operation, access: Access, t: torch.Tensor, j: torch.Tensor, slots: Slots
    ) -> Any:
        recurrent = access.recurrent
        if recurrent.object is not None:
            return recurrent.object
        early = self.storage.is_early(access, operation)
        store = self.storage.first[recurrent] if early else self.storage.of(recurrent, operation)
        place = self._slots(operation, access, store.length, t, j, slots, early=early)
        if access.window:
            return Window(store, place, self._count(operation, access, t, j))
        value = store.read(place)
        return value if operation in self.group.batched else value[0]

    def _count(
        self, operation: Operation, access: Access, t: torch.Tensor, j: torch.Tensor
    ) -> torch.Tensor | None:
        """How many indices a window has now, (1,) int64; None: always as many."""
        if access.length() is not None:
            return None
        first, stop = (index.at(operation.domain, t, j) for index in (access.first, access.stop))
        return torch.as_tensor(stop - first, device=t.device).expand(1)

    def _slots(
        self,
        operation: Operation,
        access: Access,
        length: int,
        t: torch.Tensor,
        j: torch.Tensor,
        slots: Slots,
        *,
        early: bool,
    ) -> torch.Tensor:
        key = access.first.text, access.stop.text, length, access.since, early
        if key not in slots:
            first = access.first.at(operation.domain, t, j)
            if not isinstance(first, torch.Tensor):
                first = torch.full_like(t, first)
            if access.window:
                first = first + self.storage.range(access.most)
                if access.since is not None:
                    first = first.clamp(min=access.since)
            slots[key] = (first + 1).clamp(0, length - 1) if early else first % length
        return slots[key]

    @torch.no_grad()
    def _write(
        self, operation: Operation, result: Any, t: torch.Tensor, j: torch.Tensor, slots: Slots
    ) -> None:
        returned = operation.returned
        values = result if isinstance(result, tuple) else (result,)
        for access, value in zip(returned, values, strict=True):
            recurrent = access.recurrent
            for some in (self.storage.far, self.storage.near, self.storage.first):
                if recurrent in some:
                    store, early = some[recurrent], some is self.storage.first
                    place = self._slots(operation, access, store.length, t, j, slots, early=early)
                    store.write(place, value)


def pieces(step: Step) -> Iterator[Step]:
    """A step cut where an operation must not be captured."""
    t, j, some = step.t, step.j, []
    for call in step.calls:
        if call[0].captured:
            some.append(call)
            continue
        if some or t or j:
            yield Step(t, j, tuple(some))
        yield Step(0, 0, (call,))
        t, j, some = 0, 0, []
    if some or t or j:
        yield Step(t, j, tuple(some))


@dataclass(frozen=True)
class Turn:
    """Steps of a group that are executed one after the other.

    Attributes:
        executor: executes them.
        steps: the steps.
        begin, end: when the first and the last of them are, in steps from the iteration's begin.
    """

    executor: Executor
    steps: list[Step]
    begin: int
    end: int


def in_turns(executors: Sequence[Executor], iteration: int) -> Iterator[Turn]:
    """The steps of an iteration: of each group, and of one that follows it between them."""
    followers = {e.group.follows: e for e in executors if e.group.follows is not None}
    for executor in executors:
        if executor.group.follows is not None:
            continue
        steps = executor.steps(iteration)
        follower = followers.get(executor.group)
        if follower is None:
            yield Turn(executor, steps, 0, executor.period)
        else:
            yield from _taking_turns(executor, steps, follower, follower.steps(iteration))


def _taking_turns(
    executor: Executor, steps: list[Step], follower: Executor, following: list[Step]
) -> Iterator[Turn]:
    """Steps of a group and of one that follows it, each after the other's up to its time."""
    at, its = (list(itertools.accumulate(s.t for s in some)) for some in (steps, following))
    done, first = 0, 0
    for number, t in enumerate(its):
        due = bisect.bisect_right(at, t)
        if due > done:
            if first < number:
                yield Turn(follower, following[first:number], its[first], its[number - 1])
            own = [*steps[done:due], *executor.landing()]
            yield Turn(executor, own, at[done], at[due - 1])
            done, first = due, number
    yield Turn(follower, following[first:], its[first], its[-1])
    if done < len(steps):
        yield Turn(executor, steps[done:], at[done], at[-1])


def in_order(
    executors: Sequence[Executor],
    iteration: int,
    progress: Callable[[int], object] = lambda steps: None,
) -> None:
    """Executes an iteration group by group.

    Args:
        executors: the executors of all groups, in their order.
        iteration: the number of the iteration.
        progress: called with the steps emulated so far, after each.
    """
    played: dict[Executor, int] = {}
    for turn in in_turns(executors, iteration):
        executor = turn.executor
        for step in turn.steps:
            executor.make(step)
            if any(operation.role == "simulate" for operation, _ in step.calls):
                played[executor] = played.get(executor, 0) + 1
                progress(iteration * executor.period + played[executor])
