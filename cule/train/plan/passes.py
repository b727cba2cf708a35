"""Changes of a program that leave what it computes as it is.

- alias: a copy of an object that is never older than the object needs no memory: its readers read
  the object itself.
- merge: two writes of the same value (`Access.same`) are computed once: of an operation whose calls
  all repeat another's at the same steps, readers read what that one writes; where some calls repeat
  earlier ones, their values are copied.
- prune: what nobody reads and is no output is not computed, unless it has an effect outside.
- batch: calls of an operation that do not depend on each other, and that can be made together, are
  one call with a leading dimension. groups.py does it; `batchable` says which operations.
- beside: what learns from an iteration runs on a stream of its own, call by call as soon as its
  steps are played. groups.py does it. Tensors over time need more memory.
- ahead: of a gradient that is computed in chunks, those parts that are in the host's memory are
  read on a stream of their own, while the chunk before is computed. memory.py says where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl

from cule.train.plan.domain import Domain
from cule.train.plan.index import Index
from cule.train.plan.polyhedra import Polyhedra
from cule.train.plan.program import Access, Operation, Program, Recurrent


@dataclass(frozen=True)
class Passes:
    """Which passes are made.

    Attributes:
        alias, merge, prune, batch, beside, ahead: as above; the last two None: on a GPU.
    """

    alias: bool = True
    merge: bool = True
    prune: bool = True
    batch: bool = True
    beside: bool | None = None
    ahead: bool | None = None


def apply(program: Program, passes: Passes) -> tuple[Program, list[str]]:
    """The program after the passes, and their changes, a line each."""
    notes: list[str] = []
    if passes.alias:
        program = alias(program, notes)
    if passes.merge:
        program = merge(program, notes)
    if passes.prune:
        program = prune(program, notes)
    return program, notes


def alias(program: Program, notes: list[str]) -> Program:
    """Leaves out copies of objects that are never older than the objects."""
    for copy in [o for o in program.operations if o.copies is not None]:
        without = _without_copy(program, copy)
        polyhedra = Polyhedra(without)
        if not polyhedra.dependences.subtract(polyhedra.before).is_empty():
            continue
        notes.append(f"{copy.name} is left out: its readers read {copy.reads[0].recurrent.name}")
        program = without
    return program


def _without_copy(program: Program, copy: Operation) -> Program:
    source, target = copy.reads[0].recurrent, copy.writes[0].recurrent
    assert copy.copies is not None

    def read(access: Access) -> Access:
        if access.recurrent is not target:
            return access
        version = copy.copies.with_t(access.first)  # type: ignore[union-attr]
        return replace(access, recurrent=source, first=version, stop=version + 1)

    operations = [
        _with(o, reads=tuple(read(a) for a in o.reads)) for o in program.operations if o is not copy
    ]
    return program.with_operations(operations)


def _with(operation: Operation, **changes: Any) -> Operation:
    if all(getattr(operation, name) == value for name, value in changes.items()):
        return operation
    return replace(operation, **changes)


def prune(program: Program, notes: list[str]) -> Program:
    """Leaves out operations without an effect outside whose writes are neither read nor outputs."""
    needed = {
        o
        for o in program.operations
        if o.role == "effect" or any(write.recurrent.output for write in o.writes)
    }
    while True:
        read = {access.recurrent for o in needed for access in o.reads}
        more = {
            o for o in program.operations if any(write.recurrent in read for write in o.writes)
        } - needed
        if not more:
            break
        needed |= more
    for operation in program.operations:
        if operation not in needed:
            notes.append(f"{operation.name} is left out: nobody reads what it writes")
    return program.with_operations(o for o in program.operations if o in needed)


def merge(program: Program, notes: list[str]) -> Program:
    """Computes values once that two operations would compute from the same reads."""
    for second in list(program.operations):
        keys = [write.same for write in second.returned]
        if not keys or None in keys:
            continue
        for first in program.operations:
            by_key = {write.same: write for write in first.returned}
            if first is second or first.place > second.place or not by_key.keys() >= set(keys):
                continue
            sources = [by_key[key] for key in keys]
            merged = _shared(program, first, sources, second) or _merged(
                program, first, sources, second
            )
            if merged is not None:
                program = merged[0]
                notes.append(merged[1])
                break
    return program


def _shared(
    program: Program, first: Operation, sources: Sequence[Access], second: Operation
) -> tuple[Program, str] | None:
    """The program without `second`, all of whose calls compute what `first` has at the same steps.

    With a note; None: some do not. The arguments are those of _merged.
    """
    if first.domain.isl() != second.domain.isl():
        return None
    if not Polyhedra(program).read_alike(first, second):
        return None
    instead = {}
    for source, write in zip(sources, second.returned, strict=True):
        mine, its = source.recurrent, write.recurrent
        alike = (mine.shape, mine.dtype, mine.stack) == (its.shape, its.dtype, its.stack)
        if not alike or its.output or source.first.text != write.first.text:
            return None
        instead[its] = mine

    def read(access: Access) -> Access:
        other = instead.get(access.recurrent)
        return access if other is None else replace(access, recurrent=other)

    operations = [
        _with(o, reads=tuple(read(a) for a in o.reads))
        for o in program.operations
        if o is not second
    ]
    return program.with_operations(operations), f"{second.name} is {first.name}'s: made once"


def _merged(
    program: Program, first: Operation, sources: Sequence[Access], second: Operation
) -> tuple[Program, str] | None:
    """The program in which calls of `second` that repeat one of `first` copy its values.

    With a note; None: there are none, or they cannot be found.

    Args:
        program: the program.
        first: an operation.
        sources: its writes of the values that `second` returns.
        second: the other operation.
    """
    if first.domain.times > 1 or first.domain.every > 1:
        return None
    if [a.recurrent for a in first.reads] != [a.recurrent for a in second.reads]:
        return None
    places = _places(first, second)
    if places is None:
        return None
    calls = _repeated(program, first, second)
    if calls is None:
        return None
    copied = replace(second.domain, first=calls[0], stop=calls[1])
    indices = [source.first.with_t(places) for source in sources]
    reads = [
        Access(source.recurrent, index, index + 1, window=False)
        for source, index in zip(sources, indices, strict=True)
    ]
    writes = [replace(write, same=None) for write in second.returned]
    copy = Operation(
        f"{second.name} (kept)", "copy", copied, tuple(reads), tuple(writes),
        lambda *values: values, batched=True, captured=True,
        place=(second.place[0], second.place[1] - 1),
    )  # fmt: skip
    rest = _rest(second, calls)
    operations = []
    for operation in program.operations:
        operations += [copy, *rest] if operation is second else [operation]
    left = sum((o.domain.stop or 0) - o.domain.first for o in rest)
    line = (
        f"{second.name}: {calls[1] - calls[0]} of {calls[1] - calls[0] + left} are "
        f"{first.name}'s own"
    )
    return program.with_operations(operations), line


def _places(first: Operation, second: Operation) -> Index | None:
    """The step t of `first` that reads what `second` reads, by the first read that says it."""
    for mine, its in zip(first.reads, second.reads, strict=True):
        if mine.recurrent.object is None and not mine.window and not its.window:
            shift = mine.first.at(first.domain, 0, 0)
            if mine.first.at(first.domain, 5, 0) - 5 == shift:
                return its.first - shift
    return None


def _repeated(program: Program, first: Operation, second: Operation) -> tuple[int, int] | None:
    """Of which calls j of `second` each repeats one of `first`; None if they are no range."""
    polyhedra = Polyhedra(program)
    same: isl.UnionMap | None = None
    for mine, its in zip(first.reads, second.reads, strict=True):
        one = isl.UnionMap("{ " + polyhedra.access_text(first, mine, read=False) + " }")
        two = isl.UnionMap("{ " + polyhedra.access_text(second, its, read=False) + " }")
        pairs = two.apply_range(one.reverse())
        same = pairs if same is None else same.intersect(pairs)
    assert same is not None
    covered = same.intersect(polyhedra.before.reverse()).domain()
    every = polyhedra.calls_of([second])
    name = every.as_set().get_tuple_name()
    repeated = _numbers(every, name).subtract(_numbers(every.subtract(covered), name))
    if repeated.is_empty():
        return None
    begin, end = (repeated.dim_min_val(0).to_python(), repeated.dim_max_val(0).to_python() + 1)
    if not repeated.is_equal(isl.Set(f"{{ [j] : {begin} <= j < {end} }}")):
        return None
    return begin, end


def _numbers(calls: isl.UnionSet, name: str) -> isl.Set:
    """The j of some calls of an operation."""
    if calls.is_empty():
        return isl.Set("{ [j] : false }")
    return calls.apply(isl.UnionMap(f"{{ {name}[t, j] -> [j] }}")).as_set()


def _rest(operation: Operation, calls: tuple[int, int]) -> list[Operation]:
    """The operation without a range of its calls, in up to two parts."""
    domain = operation.domain
    stop = domain.times if domain.stop is None else domain.stop
    rest = []
    for number, (begin, end) in enumerate(((domain.first, calls[0]), (calls[1], stop))):
        if begin < end:
            name = operation.name if number else f"{operation.name} (before)"
            part: Domain = replace(domain, first=begin, stop=end)
            rest.append(replace(operation, name=name, domain=part))
    return rest


def unread(program: Program) -> set[Recurrent]:
    """The tensors that nobody reads, which need no memory."""
    read = {access.recurrent for o in program.operations for access in o.reads}
    return {r for r in program.recurrents if r not in read and not r.output and r.object is None}


def batchable(operation: Operation, period: int) -> bool:
    """Whether an operation's declaration allows that its calls are made together."""
    several = operation.domain.every < period or operation.domain.times > 1
    return (
        several
        and operation.batched
        and any(access.recurrent.object is None for access in operation.reads)
        and not any(access.window for access in operation.reads)
        and not any(write.recurrent.object is not None for write in operation.writes)
    )
