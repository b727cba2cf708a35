"""How many slots the ring of a Recurrent needs.

Slot i mod L holds index i until index i + L is written. So L has to be more than the distance from
any index that may still be accessed to any later one that may already be written. An access is sure
to be done before a write if it is in an earlier iteration, in a group that comes before the
write's, or before it in the same group. Of a group that follows another, the calls that the other
one waits for are sure, too.
"""

from __future__ import annotations

import islpy as isl

from cule.errors import InvalidValue
from cule.train.plan.groups import Group
from cule.train.plan.polyhedra import Polyhedra
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


def ring_length(
    polyhedra: Polyhedra,
    sure: isl.UnionMap,
    recurrent: Recurrent,
    readers: list[Operation] | None = None,
) -> int:
    """The slots that a Recurrent needs.

    Args:
        polyhedra: the program's sets and relations.
        sure: the result of surely_before.
        recurrent: the Recurrent.
        readers: the operations whose reads count; None: all.

    Raises:
        ValueError: an operation reads a window that grows with time.
    """
    writes = polyhedra.writes[recurrent]
    if writes.is_empty():
        return 1
    reads = polyhedra.reads[recurrent]
    if readers is not None:
        reads = polyhedra.accesses_of(recurrent, readers, "reads")
    accesses = reads.union(writes)
    unsure = isl.UnionMap.from_domain_and_range(accesses.domain(), writes.domain()).subtract(sure)
    name = writes.range().as_set().get_tuple_name()
    later = isl.UnionMap(f"{{ {name}[i] -> {name}[k] : k > i }}")
    clash = accesses.reverse().apply_range(unsure).apply_range(writes).intersect(later)
    furthest = polyhedra.furthest(clash, recurrent)
    if furthest is None:
        names = [o.name for o in polyhedra.program.operations if _reads(o, recurrent)]
        raise InvalidValue(
            f"expected windows of {recurrent.name} that have an end in the past, but what "
            f"{', '.join(names)} reads grows with time"
        )
    window = max(
        a.most + recurrent.stack - 1
        for o in polyhedra.program.operations
        for a in (*o.reads, *o.writes)
        if a.recurrent is recurrent and (readers is None or o in readers or a in o.writes)
    )
    return max(furthest + 1, window)


def _reads(operation: Operation, recurrent: Recurrent) -> bool:
    return any(access.recurrent is recurrent for access in operation.reads)
