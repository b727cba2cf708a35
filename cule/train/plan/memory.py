"""Where a plan stores each Recurrent, within a budget of memory.

The device holds all rings, what is fixed (such as weights and envs), and for a while what an
operation needs for itself, such as the activations of a gradient. If that is more than the budget,
gradients are computed in smaller chunks; if that is not enough, the largest rings go to the host.
Of such a ring the device still has the newest slots, which acting reads.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cule.errors import InvalidValue
from cule.train.plan.groups import Group
from cule.train.plan.lifetimes import NO_EARLY, Early, kept_of, ring_length
from cule.train.plan.polyhedra import Polyhedra, isl
from cule.train.plan.program import Operation, Program, Recurrent
from cule.train.plan.stores import bytes_of

SMALL = 16  # bytes of an env's value, up to which rings over steps may be longer than needed
GIB = 2**30


@dataclass
class Allocation:
    """The memory of a Recurrent.

    Attributes:
        length: slots of its ring.
        host: the ring is in the host's memory.
        near: slots of a second ring on the device with the newest values, for acting; 0: there is
            no second ring.
        bytes: bytes on the device.
        host_bytes: bytes on the host.
        early: reads of indices that are kept for good, beside the ring.
    """

    length: int
    host: bool = False
    near: int = 0
    bytes: int = 0
    host_bytes: int = 0
    early: Early = NO_EARLY


@dataclass
class Memory:
    """The memory of a plan.

    Attributes:
        allocations: of each Recurrent that is no object.
        fixed: bytes besides rings and operations, such as those of weights and envs.
        budget: the most bytes on the device; None: no limit.
        notes: changes that were made to stay within the budget, a line each.
    """

    allocations: dict[Recurrent, Allocation]
    fixed: int
    budget: int | None
    notes: list[str]

    @property
    def ring_bytes(self) -> int:
        """Bytes of all rings on the device."""
        return sum(one.bytes for one in self.allocations.values())


def slots_of(early: Early) -> int:
    """The slots for indices that are kept: one for all before 0, theirs, and one for all later."""
    return early.count + 2


def near_readers(groups: Sequence[Group], recurrent: Recurrent) -> list[Operation]:
    """The operations that act or emulate, and read a Recurrent."""
    return [
        operation
        for group in groups
        for operation in group.operations
        if operation.role in ("simulate", "act")
        and any(access.recurrent is recurrent for access in operation.reads)
    ]


def plan_memory(
    program: Program,
    polyhedra: Polyhedra,
    groups: Sequence[Group],
    sure: isl.UnionMap,
    *,
    fixed: int,
    budget: int | None,
    unread: Collection[Recurrent] = (),
    ahead: bool,
) -> Memory:
    """Plans the lengths and places of all rings, and the chunks of operations.

    Args:
        program: the program after the passes; its operations' `work.at_once` is set.
        polyhedra: its sets and relations.
        groups: the groups of an iteration.
        sure: the result of lifetimes.surely_before.
        fixed: bytes besides rings and operations.
        budget: the most bytes on the device; None: no limit.
        unread: tensors that need no memory.
        ahead: let chunks be read from the host's memory while others are computed.

    Raises:
        ValueError: the budget is below the least that works.
    """
    allocations = {}
    for r in program.recurrents:
        if r.object is None and r not in unread:
            length, early = kept_of(polyhedra, sure, r)
            allocations[r] = Allocation(length, early=early)
    _share_positions(allocations)
    for recurrent, allocation in allocations.items():
        kept = bytes_of(recurrent, slots_of(allocation.early)) if allocation.early.reads else 0
        allocation.bytes = bytes_of(recurrent, allocation.length) + kept
    memory = Memory(allocations, fixed, budget, [])
    works = [o.work for o in program.operations if o.work is not None]
    needed = sum(work.bytes for work in works)
    if budget is None or fixed + memory.ring_bytes + needed <= budget:
        return memory
    _swap(memory, program, polyhedra, groups, sure)
    _chunk(memory, program, ahead=ahead)
    return memory


def _share_positions(allocations: dict[Recurrent, Allocation]) -> None:
    """Makes rings of small values as long as the longest of them, so that they share slots."""
    small = [
        r
        for r in allocations
        if r.over == "step" and allocations[r].length > 1 and r.stack == 1
        and r.slot_bytes <= SMALL * max(1, r.shape[0] if r.shape else 1)
    ]  # fmt: skip
    longest = max((allocations[r].length for r in small), default=0)
    for recurrent in small:
        allocations[recurrent].length = longest


def _least_bytes(program: Program) -> int:
    """Bytes that operations need for a while with the smallest chunks."""
    return sum(o.work.least_bytes for o in program.operations if o.work is not None)


def _swap(
    memory: Memory,
    program: Program,
    polyhedra: Polyhedra,
    groups: Sequence[Group],
    sure: isl.UnionMap,
) -> None:
    """Moves the largest rings to the host until what is left fits beside the smallest chunks."""
    assert memory.budget is not None
    while (least := memory.fixed + memory.ring_bytes + _least_bytes(program)) > memory.budget:
        left = [r for r in memory.allocations if not memory.allocations[r].host]
        gains = {r: _on_host(memory.allocations[r], r, polyhedra, groups, sure) for r in left}
        best = max(left, key=lambda r: memory.allocations[r].bytes - gains[r].bytes, default=None)
        if best is None or gains[best].bytes >= memory.allocations[best].bytes:
            raise InvalidValue(
                f"expected a memory budget of at least {least:,} bytes, which is the least that "
                f"works here, got {memory.budget:,}"
            )
        memory.allocations[best] = gains[best]
        for operation in program.operations:
            if operation.work is not None:
                operation.work.far |= any(access.recurrent is best for access in operation.reads)
        memory.notes.append(
            f"{best.name} is kept on the host ({gains[best].host_bytes / GIB:.2f} GiB), and its "
            f"{gains[best].near} newest slots on the device"
        )


def _on_host(
    allocation: Allocation,
    recurrent: Recurrent,
    polyhedra: Polyhedra,
    groups: Sequence[Group],
    sure: isl.UnionMap,
) -> Allocation:
    """The allocation of a Recurrent whose ring is moved to the host."""
    if allocation.early.reads:
        return allocation
    readers = near_readers(groups, recurrent)
    near = ring_length(polyhedra, sure, recurrent, readers) if readers else 0
    if near >= allocation.length:
        return allocation
    return Allocation(
        allocation.length, host=True, near=near,
        bytes=bytes_of(recurrent, near) if near else 0,
        host_bytes=bytes_of(recurrent, allocation.length),
    )  # fmt: skip


def _chunk(memory: Memory, program: Program, *, ahead: bool) -> None:
    """Divides the rest of the budget among the operations that need memory for a while."""
    assert memory.budget is not None
    spare = memory.budget - memory.fixed - memory.ring_bytes - _least_bytes(program)
    for operation in program.operations:
        work = operation.work
        if work is None:
            continue
        before, room = work.at_once, spare + work.least_bytes
        work.fit(room, ahead=ahead)
        spare = room - work.bytes
        if work.at_once < before:
            memory.notes.append(
                f"{operation.name} computes {work.at_once:,} of {work.samples:,} samples at once"
            )
        if work.ahead:
            memory.notes.append(
                f"{operation.name} reads the next samples from the host while some are computed"
            )
