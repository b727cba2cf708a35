"""Which operations of an iteration belong together, in which order, and what may run side by side.

Inside an iteration operations depend on each other. Those that do so in a circle, such as acting
and emulating, are a part that is executed step by step. What is connected to the part that emulates
goes before it, after it or into it, and shares its stream. What is not may run at the same time: it
is a branch with a stream of its own. So is what learns from an iteration while it is played: each
of its calls follows the steps that come before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cule.train.plan.passes import batchable
from cule.train.plan.polyhedra import Pair, Polyhedra
from cule.train.plan.program import Operation, Program, calls_in_order


@dataclass(eq=False)
class Group:
    """Operations that are executed in the program's order, as one sequence of calls.

    Attributes:
        operations: the operations, in the program's order.
        stream: the number of its stream; 0 is the main one.
        together: the group is one operation, whose calls of an iteration are made as one.
        after: the groups that have to be done before this one begins.
        follows: the group of another stream beside which this one runs: each call comes after the
            other's calls at the same and at earlier steps.
        lead: by how many steps that group gets ahead at most: its calls at a step come after this
            one's calls so many steps before.
        batched: the operations whose calls of a step, or with `together` of an iteration, are made
            as one.
    """

    operations: list[Operation]
    stream: int = 0
    together: bool = False
    after: list[Group] = field(default_factory=list)
    follows: Group | None = None
    lead: int = 0
    batched: frozenset[Operation] = frozenset()

    @property
    def name(self) -> str:
        """The names of its operations."""
        return " + ".join(operation.name for operation in self.operations)

    @property
    def captured(self) -> bool:
        """Whether a CUDA graph may hold all of it."""
        return all(operation.captured for operation in self.operations)


Reach = dict[Operation, set[Operation]]
LEAD = 2  # rounds of what follows that may be left when the next steps are played
PLAYING = ("simulate", "act")  # the roles of what an iteration is played by


def reach_of(operations: Iterable[Operation], pairs: set[Pair]) -> Reach:
    """For each operation, those that depend on it, directly or not."""
    reach: Reach = {operation: set() for operation in operations}
    for first, second in pairs:
        reach[first].add(second)
    for middle in reach:
        for first in reach:
            if middle in reach[first]:
                reach[first] |= reach[middle]
    return reach


def make_groups(
    program: Program, polyhedra: Polyhedra, *, batch: bool, beside: bool
) -> list[Group]:
    """The groups of an iteration, in an order in which one after the other can be executed.

    Args:
        program: the program after the passes.
        polyhedra: its sets and relations.
        batch: make calls together where they do not depend on each other.
        beside: let what learns from an iteration run beside what plays it.
    """
    pairs = polyhedra.within_iteration()
    reach = reach_of(program.operations, pairs)
    batched = {
        o
        for o in program.operations
        if batch and batchable(o, program.period) and o not in reach[o]
    }
    parts = _circles(program.operations, reach)
    streams = _streams(parts, reach)
    following = _following(program, parts, reach, batched) if beside else []
    rest = [part for part in parts if part[0] not in following]
    fused = _fused(rest, {o: streams[o] for part in rest for o in part}, reach, batched)
    follower = []
    if following:
        stream = max(streams.values()) + 1
        often = min(o.domain.every for o in following if o.role == "learn")
        follower = [
            Group(
                following, stream, lead=LEAD * often,
                batched=_batched_in_steps(following, batched, reach),
            )
        ]  # fmt: skip
    groups = _ordered([*fused, *follower], reach)
    if groups is None:
        # What was put together would have to run both before and after something else.
        alone = [_of_part(part, streams[part[0]], together=part[0] in batched) for part in rest]
        groups = _ordered([*alone, *follower], reach)
        assert groups is not None, "parts of circles have an order"
    for group in follower:
        group.follows = next(g for g in groups if any(o.role in PLAYING for o in g.operations))
        group.after.remove(group.follows)
        # What it waits for has to be done before the first of its calls, which are among the
        # other's.
        groups.sort(key=lambda g: 0 if g in group.after else 1)
    return groups


def _of_part(part: list[Operation], stream: int, *, together: bool) -> Group:
    return Group(part, stream, together, batched=frozenset(part if together else ()))


def _following(
    program: Program, parts: list[list[Operation]], reach: Reach, batched: set[Operation]
) -> list[Operation]:
    """What depends on playing, is not waited for by it, and begins before an iteration's end.

    All of it, in the program's order; nothing where an iteration is played in one call.
    """
    playing = [part for part in parts if any(o.role in PLAYING for o in part)]
    if len(playing) != 1 or playing[0][0] in batched:
        return []
    player = playing[0][0]
    following = [
        o
        for o in program.operations
        if o in reach[player] and player not in reach[o] and o not in playing[0]
    ]
    period = program.period
    # An iteration in which everything has begun.
    begin = -(-max((o.domain.start for o in following), default=0) // period) * period
    learning = [o for o in following if o.role == "learn"]
    early = calls_in_order(learning, begin, begin + 2 * period)
    if all(t % period == period - 1 for _, t, _ in early):
        return []
    return sorted(following, key=lambda o: o.place)


def _batched_in_steps(
    operations: Sequence[Operation], batched: set[Operation], reach: Reach
) -> frozenset[Operation]:
    """Those of which all calls of a step can be made before the next operation's."""
    found: set[Operation] = set()
    for _, stage in itertools.groupby(operations, key=lambda o: o.place[0]):
        some = list(stage)
        in_order = all(two not in reach[one] for two, one in itertools.combinations(some, 2))
        if in_order and batched.issuperset(some):
            found.update(some)
    return frozenset(found)


def _circles(operations: list[Operation], reach: Reach) -> list[list[Operation]]:
    """The strongly connected parts, in the program's order."""
    parts: list[list[Operation]] = []
    for operation in operations:
        for part in parts:
            if part[0] in reach[operation] and operation in reach[part[0]]:
                part.append(operation)
                break
        else:
            parts.append([operation])
    return parts


def _related(first: Operation, second: Operation, reach: Reach) -> bool:
    return first is second or second in reach[first] or first in reach[second]


def _streams(parts: list[list[Operation]], reach: Reach) -> dict[Operation, int]:
    """The stream of each operation: 0 for what is before, in or after acting and emulating."""
    main = [part for part in parts if any(o.role in PLAYING for o in part)] or parts[:1]
    aside = [part for part in parts if not any(_related(part[0], m[0], reach) for m in main)]
    streams = {operation: 0 for part in parts for operation in part}
    number = 0
    for part in aside:
        if streams[part[0]]:
            continue
        number += 1
        connected = [part]
        for some in connected:
            for operation in some:
                streams[operation] = number
            connected += [
                other
                for other in aside
                if streams[other[0]] == 0 and _related(other[0], some[0], reach)
                and other not in connected
            ]  # fmt: skip
    return streams


def _fused(
    parts: list[list[Operation]],
    streams: dict[Operation, int],
    reach: Reach,
    batched: set[Operation],
) -> list[Group]:
    """Parts of a stream that are alike to all other streams, as one group each."""
    others = sorted(set(streams.values()))
    on = {stream: [o for o in streams if streams[o] == stream] for stream in others}
    groups: dict[tuple[object, ...], Group] = {}
    for part in parts:
        stream = streams[part[0]]
        if part[0] in batched:
            groups[("batched", part[0].name)] = _of_part(part, stream, together=True)
            continue
        key: list[object] = [stream]
        for other in others:
            if other != stream:
                before = any(o in reach[part[0]] for o in on[other])
                after = any(part[0] in reach[o] for o in on[other])
                key += [before, after]
        key += _sides(part[0], batched, reach)
        groups.setdefault(tuple(key), Group([], stream)).operations.extend(part)
    for group in groups.values():
        group.operations.sort(key=lambda o: o.place)
    return list(groups.values())


def _sides(operation: Operation, batched: set[Operation], reach: Reach) -> list[object]:
    """Which of the batched operations come after it: it must not be put together with what does."""
    return [operation in reach[other] for other in sorted(batched, key=lambda o: o.place)]


def _ordered(groups: list[Group], reach: Reach) -> list[Group] | None:
    """The groups in an order that respects all dependences, with `after`; None if there is none."""
    for group in groups:
        group.after = [
            other
            for other in groups
            if other is not group
            and any(mine in reach[its] for mine in group.operations for its in other.operations)
        ]
    left, done = sorted(groups, key=lambda g: g.operations[0].place), []
    while left:
        ready = next((g for g in left if all(other in done for other in g.after)), None)
        if ready is None:
            return None
        left.remove(ready)
        done.append(ready)
    return done
