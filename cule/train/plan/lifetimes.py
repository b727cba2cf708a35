"""How many slots the ring of a Recurrent needs.

Slot i mod L holds index i until index i + L is written. So L has to be more than the distance from
any index that may still be accessed to any later one that may already be written. An access is sure
to be done before a write if it is in an earlier iteration, in a group that comes before the
write's, or before it in the same group. Of a group that follows another, the calls that the other
one waits for are sure, too.

Reads of the same indices for ever, such as x[0] and x[t % 4], have memory of their own, as a ring
would have to be endless.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from cule.errors import InvalidValue
from cule.train.plan.groups import Group
from cule.train.plan.polyhedra import Polyhedra, Read
from cule.train.plan.program import Operation, Recurrent


def surely_before(polyhedra: Polyhedra, groups: list[Group]) -> isl.UnionMap:
    """The pairs of calls of which the first is sure to be done before the second begins."""
    same = polyhedra.same_iteration()
    sure = polyhedra.later_iteration()
    for number, group in enumerate(groups):
        mine = polyhedra.calls_of(group.operations)
        if not group.together:
            inside = polyhedra.before.intersect_domain(mine).intersect_range(mine)
            inside = inside.subtract(polyhedra.of_other_calls(group.batched))
            sure = sure.union(inside.intersect(same)).union(mine.identity())
        if group.follows is not None:
            others = polyhedra.calls_of(group.follows.operations)
            sure = sure.union(polyhedra.steps_apart(mine, others, group.lead).intersect(same))
        later = [
            operation
            for other in groups[number + 1 :]
            if other.stream == group.stream or _leads_to(group, other)
            for operation in other.operations
        ]
        if later:
            pairs = isl.UnionMap.from_domain_and_range(mine, polyhedra.calls_of(later))
            sure = sure.union(pairs.intersect(same))
    return sure


def _leads_to(first: Group, second: Group) -> bool:
    return any(other is first or _leads_to(first, other) for other in second.after)


@dataclass(frozen=True)
class Early:
    """Reads of a Recurrent that never go beyond some index, as of x[0] and x[t % 4].

    Attributes:
        count: the indices from 0 on that they read.
        reads: the reads; none where a ring has all that is read.
    """

    count: int = 0
    reads: frozenset[Read] = frozenset()


NO_EARLY = Early()


def kept_of(polyhedra: Polyhedra, sure: isl.UnionMap, recurrent: Recurrent) -> tuple[int, Early]:
    """The slots of a Recurrent's ring, and the reads that have memory of their own.

    Args:
        polyhedra: the program's sets and relations.
        sure: the result of surely_before.
        recurrent: the Recurrent.

    Raises:
        ValueError: an operation reads a window that grows with time.
    """
    length = _ring(polyhedra, sure, recurrent, None, NO_EARLY)
    if length is not None:
        return length, NO_EARLY
    early = _early_reads(polyhedra, recurrent)
    length = _ring(polyhedra, sure, recurrent, None, early)
    if length is None:
        names = [o.name for o in polyhedra.program.operations if _reads(o, recurrent)]
        raise InvalidValue(
            f"expected windows of {recurrent.name} that have an end in the past, but what "
            f"{', '.join(names)} reads grows with time"
        )
    return length, early


def ring_length(
    polyhedra: Polyhedra, sure: isl.UnionMap, recurrent: Recurrent, readers: list[Operation]
) -> int:
    """The slots that are enough for some of the operations that read a Recurrent's ring."""
    length = _ring(polyhedra, sure, recurrent, readers, NO_EARLY)
    assert length is not None, "a ring is long enough for all that read it"
    return length


def _early_reads(polyhedra: Polyhedra, recurrent: Recurrent) -> Early:
    if recurrent.store is not None:
        return NO_EARLY  # it may need other indices for one, such as those of a stack
    lasts = {
        (operation, str(access)): polyhedra.last_index(operation, access)
        for operation in polyhedra.program.operations
        for access in operation.reads
        if access.recurrent is recurrent
    }
    some = {read: last for read, last in lasts.items() if last is not None}
    return Early(max([0, *(last + 1 for last in some.values())]), frozenset(some))


def _ring(
    polyhedra: Polyhedra,
    sure: isl.UnionMap,
    recurrent: Recurrent,
    readers: list[Operation] | None,
    early: Early,
) -> int | None:
    """The slots of a ring for some readers, or all, without early reads; None: it is endless."""
    writes = polyhedra.writes[recurrent]
    if writes.is_empty():
        return 1
    reads = (
        polyhedra.reads_but(recurrent, early.reads) if early.reads else polyhedra.reads[recurrent]
    )
    if readers is not None:
        reads = polyhedra.accesses_of(recurrent, readers, "reads")
    accesses = reads.union(writes)
    unsure = isl.UnionMap.from_domain_and_range(accesses.domain(), writes.domain()).subtract(sure)
    name = writes.range().as_set().get_tuple_name()
    later = isl.UnionMap(f"{{ {name}[i] -> {name}[k] : k > i }}")
    clash = accesses.reverse().apply_range(unsure).apply_range(writes).intersect(later)
    furthest = polyhedra.furthest(clash, recurrent)
    if furthest is None:
        return None
    window = max(
        a.most + recurrent.stack - 1
        for o in polyhedra.program.operations
        for a in (*o.reads, *o.writes)
        if a.recurrent is recurrent
        and (
            a in o.writes or ((readers is None or o in readers) and (o, str(a)) not in early.reads)
        )
    )
    return max(furthest + 1, window)


def _reads(operation: Operation, recurrent: Recurrent) -> bool:
    return any(access.recurrent is recurrent for access in operation.reads)
