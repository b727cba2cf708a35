"""Matches the work of a replayed CUDA graph to the graph's nodes, and so to operations.

All work of a replay has the correlation of its launch. Where Kineto gives node ids, they are in the
order in which nodes were captured. Where it does not, work is matched in the order of its starts:
a node can only begin after those that it depends on. Among nodes that could have begun, kind, grid,
size and name decide, then the stream: what follows on a stream was captured after what was there
before.
"""

from __future__ import annotations

from collections.abc import Sequence

from cule.scope.events import BOOKKEEPING, Node, Work


def _fits(work: Work, node: Node, exactly: bool) -> bool:
    if work.kind != node.kind:
        return False
    if not exactly:
        return True
    if work.grid and node.grid and work.grid != node.grid:
        return False
    return not (work.bytes and node.bytes and work.bytes != node.bytes)


def _strange(work: Work, node: Node) -> bool:
    """Whether the names differ; they may do so for a kernel that is the node's."""
    return work.kind == "kernel" and bool(node.name) and work.name != node.name


def _by_ids(works: Sequence[Work], nodes: Sequence[Node]) -> list[int] | None:
    ids = sorted({work.node for work in works})
    if 0 in ids or len(ids) != len(nodes):
        return None
    place = {number: index for index, number in enumerate(ids)}
    return [place[work.node] for work in works]


def _by_order(works: Sequence[Work], nodes: Sequence[Node], exactly: bool) -> list[int] | None:
    followers: list[list[int]] = [[] for _ in nodes]
    missing = [len(node.after) for node in nodes]
    for index, node in enumerate(nodes):
        for before in node.after:
            followers[before].append(index)
    ready = [index for index, count in enumerate(missing) if count == 0]
    last_on_stream: dict[int, int] = {}
    matched = [0] * len(works)
    for place in sorted(range(len(works)), key=lambda place: (works[place].start, place)):
        work = works[place]
        fitting = [index for index in ready if _fits(work, nodes[index], exactly)]
        if not fitting:
            return None
        before = last_on_stream.get(work.stream, -1)
        chosen = min(
            fitting,
            key=lambda index: (
                _strange(work, nodes[index]),
                before not in nodes[index].after,
                index,
            ),
        )
        matched[place] = last_on_stream[work.stream] = chosen
        ready.remove(chosen)
        for follower in followers[chosen]:
            missing[follower] -= 1
            if missing[follower] == 0:
                ready.append(follower)
    return matched


def match(works: Sequence[Work], nodes: Sequence[Node]) -> list[int] | None:
    """The index of each work's node.

    Args:
        works: of one replay, in any order.
        nodes: of the graph, in the order of capture.

    Returns:
        The indices, or None if this work cannot be that graph's.
    """
    if len(works) != len(nodes):
        return None
    found = _by_ids(works, nodes)
    if found is None:
        found = _by_order(works, nodes, exactly=True)
    # A driver may run a node in another way than it was captured: then order and kind have to do.
    return _by_order(works, nodes, exactly=False) if found is None else found


def operations_of(works: Sequence[Work], nodes: Sequence[Node]) -> list[str | None] | None:
    """The operation of each work: BOOKKEEPING for a marker, None if none was open in the capture.

    Returns:
        The operations, or None if this work cannot be that graph's.
    """
    found = match(works, nodes)
    if found is None:
        return None
    chosen = [nodes[index] for index in found]
    return [BOOKKEEPING if node.is_marker else node.operation for node in chosen]
