"""Matches the work of a replayed CUDA graph to the graph's nodes, and so to operations.

All work of a replay has the correlation of its launch. Where Kineto gives node ids, they are in the
order in which nodes were captured. Where it does not, work is matched in the order of its starts:
a node can only begin after those that it depends on. Among nodes that could have begun, kind, grid,
size and name decide, then the stream: what follows on a stream was captured after what was there
before. Where that fails, the n-th work of a name is the n-th node of that name, and what has no
such node belongs to the operation of what came before it on its stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cule.scope.events import BOOKKEEPING, Node, Work


@dataclass
class Owned:
    """The operations that own the work of a replay.

    Attributes:
        operations: the operation of each work: BOOKKEEPING for a marker; None: none was open in the
            capture.
        guessed: how many works match no node, and have the operation of the work before them.
    """

    operations: list[str | None]
    guessed: int = 0


def _driver_kernels(works: Sequence[Work], nodes: Sequence[Node]) -> set[str]:
    """The names of kernels by which the driver runs copies and memsets.

    No node has these names, and there are as many of them as copies and memsets are missing.
    """
    names = {node.name for node in nodes}
    foreign = [work.name for work in works if work.kind == "kernel" and work.name not in names]
    missing = sum(node.kind != "kernel" for node in nodes)
    missing -= sum(work.kind != "kernel" for work in works)
    return set(foreign) if len(foreign) == missing else set()


def _difference(work: Work, node: Node, driver: set[str]) -> tuple[bool, bool] | None:
    """Whether size and name of a work differ from a node's; None: it cannot be that node.

    Names of the same kernel may differ, and so may grids.
    """
    if work.name in driver and work.kind == "kernel":
        return None if node.kind == "kernel" else (False, False)
    if work.kind != node.kind:
        return None
    sizes = (work.grid, node.grid), (work.bytes, node.bytes)
    size = any(mine and its and mine != its for mine, its in sizes)
    return size, work.kind == "kernel" and bool(node.name) and work.name != node.name


def _in_order(works: Sequence[Work]) -> list[int]:
    """The places of works in the order of their starts."""
    return sorted(range(len(works)), key=lambda place: (works[place].start, place))


def _by_ids(works: Sequence[Work], nodes: Sequence[Node]) -> list[int] | None:
    ids = sorted({work.node for work in works})
    if 0 in ids or len(ids) != len(nodes):
        return None
    place = {number: index for index, number in enumerate(ids)}
    return [place[work.node] for work in works]


def _by_order(works: Sequence[Work], nodes: Sequence[Node]) -> list[int] | None:
    followers: list[list[int]] = [[] for _ in nodes]
    missing = [len(node.after) for node in nodes]
    for index, node in enumerate(nodes):
        for before in node.after:
            followers[before].append(index)
    driver = _driver_kernels(works, nodes)
    ready = [index for index, count in enumerate(missing) if count == 0]
    last_on_stream: dict[int, int] = {}
    matched = [0] * len(works)
    for place in _in_order(works):
        work = works[place]
        before = last_on_stream.get(work.stream, -1)
        fitting = [
            (difference, before not in nodes[index].after, index)
            for index in ready
            if (difference := _difference(work, nodes[index], driver)) is not None
        ]
        if not fitting:
            return None
        chosen = min(fitting)[-1]
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
        The indices, or None if they are not one to one.
    """
    if len(works) != len(nodes):
        return None
    indices = _by_ids(works, nodes)
    return _by_order(works, nodes) if indices is None else indices


def _by_name(works: Sequence[Work], nodes: Sequence[Node]) -> list[int | None]:
    """The index of each work's node, as far as as many works as nodes have its name and size."""
    wanted: dict[tuple, list[int]] = {}
    for index, node in enumerate(nodes):
        wanted.setdefault((node.kind, node.name, node.grid, node.bytes), []).append(index)
    there: dict[tuple, list[int]] = {}
    for place in _in_order(works):
        work = works[place]
        name = work.name if work.kind == "kernel" else ""
        there.setdefault((work.kind, name, work.grid, work.bytes), []).append(place)
    indices: list[int | None] = [None] * len(works)
    for key, places in there.items():
        if len(places) == len(wanted.get(key, ())):
            for place, index in zip(places, wanted[key], strict=True):
                indices[place] = index
    return indices


def _operation(node: Node) -> str | None:
    return BOOKKEEPING if node.is_marker else node.operation


def operations_of(works: Sequence[Work], nodes: Sequence[Node]) -> Owned | None:
    """The operation of each work.

    Returns:
        The operations, or None if most of this work cannot be that graph's.
    """
    exact = match(works, nodes)
    if exact is not None:
        return Owned([_operation(nodes[index]) for index in exact])
    indices = _by_name(works, nodes)
    guessed = indices.count(None)
    if 2 * guessed > len(works):
        return None
    operations: list[str | None] = [None] * len(works)
    newest: dict[int, str | None] = {}
    for place in _in_order(works):
        index, stream = indices[place], works[place].stream
        operations[place] = newest.get(stream) if index is None else _operation(nodes[index])
        if operations[place] != BOOKKEEPING:
            newest[stream] = operations[place]
    return Owned(operations, guessed)


def in_words(works: Iterable[Work | Node]) -> str:
    """How many there are of each kind, such as "12 kernel, 1 memset"."""
    counted = Counter(work.kind for work in works)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items()))
