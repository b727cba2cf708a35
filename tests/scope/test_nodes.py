"""Work of a replayed graph is matched to the nodes that were captured."""

from __future__ import annotations

import random

import pytest

from cule.scope.capture import MARKER_BASE, CaptureLog, nodes_of
from cule.scope.driver import RawNode
from cule.scope.events import BOOKKEEPING, Call, Key, Node, Replay, Work
from cule.scope.lanes import assemble
from cule.scope.nodes import match
from cule.scope.nodes import operations_of as owned_by
from tests.scope.made import MAIN, kernel, launch, marks, process


def operations_of(works: list[Work], nodes: list[Node]) -> list[str | None] | None:
    """The operations, if all works could be matched."""
    owned = owned_by(works, nodes)
    if owned is None:
        return None
    assert owned.guessed == 0
    return owned.operations


def chain(*operations: str | None) -> list[Node]:
    """Kernels one after the other, all alike."""
    return [
        Node("kernel", operation, (1,) * 6, after=(index - 1,) if index else ())
        for index, operation in enumerate(operations)
    ]


def test_kernels_of_a_chain_are_in_the_order_of_capture():
    works = [kernel(10 * i, 10 * i + 8, 5, grid=(1,) * 6) for i in range(4)]
    assert operations_of(works, chain("a", "a", "b", None)) == ["a", "a", "b", None]


def test_node_ids_decide_where_kineto_gives_them():
    """The order in which the nodes began would say otherwise."""
    nodes = [Node("kernel", name) for name in "abc"]
    works = [kernel(start, 50, node=node) for start, node in ((0, 31), (1, 12), (2, 20))]
    assert operations_of(works, nodes) == ["c", "a", "b"]


@pytest.mark.parametrize("seed", range(20))
def test_branches_are_told_apart_by_what_they_depend_on(seed):
    """Random graphs of up to three streams, with different kernels, replayed with random times."""
    draw = random.Random(seed)
    nodes, newest = [], {}
    for index in range(40):
        stream = draw.randrange(3)
        after = {newest[stream]} if stream in newest else set()
        # Streams that begin alike could not be told apart.
        grid = (index % 7 + 1 if stream in newest else 100 + stream,) * 6
        if newest and draw.random() < 0.2:
            after.add(draw.choice(list(newest.values())))
        nodes.append(
            (
                stream,
                Node("kernel", f"op{stream}", grid, after=tuple(sorted(after))),
            )
        )
        newest[stream] = index
    works, ends = [], []
    free = {}
    for stream, node in nodes:
        ready = max([free.get(stream, 0), *(ends[before] for before in node.after)])
        start = ready + draw.randrange(1, 9)
        ends.append(start + draw.randrange(1, 30))
        free[stream] = ends[-1]
        works.append(kernel(start, ends[-1], 5, stream, grid=node.grid))
    shuffled = list(range(40))
    draw.shuffle(shuffled)
    found = match([works[i] for i in shuffled], [node for _, node in nodes])
    assert [nodes[index][1].operation for index in found] == [
        nodes[index][1].operation for index in shuffled
    ]


def test_branches_with_the_same_kernels_are_told_apart_by_markers():
    """Of two branches that look alike, the second begins first."""
    size = MARKER_BASE
    raw = [
        RawNode(0, (), (9,) * 6),
        RawNode(2, (0,), bytes=size), RawNode(0, (1,), (1,) * 6), RawNode(2, (2,), bytes=size + 2),
        RawNode(5, (0,)),
        RawNode(2, (4,), bytes=size + 4), RawNode(0, (5,), (1,) * 6),
        RawNode(2, (6,), bytes=size + 6),
    ]  # fmt: skip
    nodes = nodes_of(raw, [(0, None), (2, "a"), (4, None), (6, "b"), (8, None)])
    assert [node.after for node in nodes] == [(), (0,), (1,), (2,), (0,), (4,), (5,)]
    assert [node.is_marker for node in nodes] == [False, True, False, True, True, False, True]

    def memset(start, bytes_, stream):
        return Work(start, start + 1, "Memset (Device)", "memset", stream=stream, bytes=bytes_)

    works = [
        kernel(0, 5, stream=1, grid=(9,) * 6), memset(6, size + 4, 2), memset(7, size, 1),
        kernel(8, 20, stream=2, grid=(1,) * 6), kernel(9, 30, stream=1, grid=(1,) * 6),
        memset(21, size + 6, 2), memset(31, size + 2, 1),
    ]  # fmt: skip
    assert operations_of(works, nodes) == [
        None, BOOKKEEPING, BOOKKEEPING, "b", "a", BOOKKEEPING, BOOKKEEPING,
    ]  # fmt: skip


@pytest.mark.parametrize("count", [2, 4])
def test_other_work_than_was_captured_is_not_matched(count):
    works = [kernel(10 * i, 10 * i + 8, grid=(1,) * 6) for i in range(count)]
    assert operations_of(works, chain("a", "a", "b")) is None
    assert match([Work(0, 1, "copy", "memcpy")] * 3, chain("a", "a", "b")) is None


def test_work_that_runs_otherwise_than_it_was_captured_is_matched_by_its_order():
    works = [kernel(10 * i, 10 * i + 8, grid=(2,) * 6) for i in range(3)]
    assert operations_of(works, chain("a", "a", "b")) == ["a", "a", "b"]


def test_names_tell_kernels_of_the_same_grid_apart():
    nodes = [Node("kernel", "a", (1,) * 6, name="k"), Node("kernel", "b", (1,) * 6, name="l")]
    works = [Work(0, 9, "l", grid=(1,) * 6, stream=1), Work(1, 9, "k", grid=(1,) * 6, stream=2)]
    assert operations_of(works, nodes) == ["b", "a"]
    works[0].name = "l(int)"  # as another demangler has it
    assert sorted(operations_of(works, nodes)) == ["a", "b"]


def test_graph_with_graphs_inside_has_no_nodes():
    assert nodes_of([RawNode(0), RawNode(4, (0,))], [(0, None)]) is None


def copies() -> tuple[list[Node], list[Work]]:
    """A chain with a copy and a memset, which the driver runs by kernels of its own."""
    kinds = [("kernel", "k"), ("memcpy", ""), ("memset", ""), ("kernel", "l"), ("kernel", "l")]
    nodes = [
        Node(kind, operation, (1,) * 6 if name else (), after=(i - 1,) if i else (), name=name)
        for i, ((kind, name), operation) in enumerate(zip(kinds, "abcde", strict=True))
    ]
    names = ["k", "memcpy32_post", "memset64", "l", "l"]
    grids = [(1,) * 6, (4,) * 6, (5,) * 6, (1,) * 6, (1,) * 6]
    works = [
        Work(10 * i, 10 * i + 8, name, grid=grid, stream=7)
        for i, (name, grid) in enumerate(zip(names, grids, strict=True))
    ]
    return nodes, works


def test_copies_that_the_driver_runs_as_kernels_are_matched():
    nodes, works = copies()
    assert operations_of(works, nodes) == list("abcde")


def test_copy_by_a_kernel_of_the_driver_is_no_kernel_that_could_run_then():
    """On one branch a kernel is next, on the other a memset, and the memset runs first."""
    nodes = [
        Node("kernel", "a", (1,) * 6, name="k"),
        Node("kernel", "b", (1,) * 6, after=(0,), name="l"),
        Node("memset", "c", bytes=16), Node("kernel", "d", (1,) * 6, after=(2,), name="k"),
    ]  # fmt: skip
    works = [
        Work(start, start + 5, name, grid=(1,) * 6, stream=stream)
        for start, name, stream in ((0, "memset8", 2), (1, "k", 1), (10, "k", 2), (20, "l", 1))
    ]
    assert operations_of(works, nodes) == ["c", "a", "d", "b"]


def test_work_that_no_node_is_like_belongs_to_what_came_before_it():
    nodes, works = copies()
    more = Work(25, 27, "unknown", grid=(9,) * 6, stream=7)
    owned = owned_by([*works, more], nodes)
    # The copy and the memset are among what is not known by name.
    assert owned.operations == ["a", "a", "a", "d", "e", "a"]
    assert owned.guessed == 3
    assert owned_by(works[1:3], nodes) is None


class FakeDriver:
    """A driver whose graph grows as the test says."""

    def __init__(self):
        self.raw = []

    def count(self, graph):
        return len(self.raw)

    def nodes(self, graph):
        return self.raw


def test_log_of_a_capture_gives_nodes_their_operations():
    from cule.scope import operation, phase
    from cule.scope.annotations import listen, stop_listening

    driver = FakeDriver()
    log = CaptureLog(driver, 1, None)
    with operation("outside"):
        listen(log)
        driver.raw += [RawNode(0)]
        with phase("ignored"), operation("a"):
            driver.raw += [RawNode(0, (0,)), RawNode(3, (1,))]
            with operation("b"):
                driver.raw += [RawNode(1, (2,))]
            driver.raw += [RawNode(0, (3,))]
        stop_listening(log)
    nodes = log.finish()
    assert [node.operation for node in nodes] == [None, "a", "b", "a"]
    assert [node.after for node in nodes] == [(), (0,), (1,), (2,)]
    assert [node.kind for node in nodes] == ["kernel", "kernel", "memcpy", "kernel"]


def replayed(nodes: list[Node], works: list[Work]):
    """A process that replays a graph in operation "play"; the keys of the work."""
    made = process(
        100, marks((0, 20, "play")), [launch(2, 4, 5, "cudaGraphLaunch")], works,
    )  # fmt: skip
    made.threads[MAIN].calls.insert(0, Call(1, 6, "backend", "torch.cuda.CUDAGraph.replay"))
    made.threads[MAIN].replays = [Replay(1, 6, 3)]
    made.graphs = {3: nodes}
    assemble(made)
    return made, [work.key for work in made.work]


def test_work_of_a_replay_belongs_to_what_was_captured_else_to_what_replayed():
    works = [kernel(10 * i + 10, 10 * i + 18, 5, grid=(1,) * 6) for i in range(3)]
    made, keys = replayed(chain("infer", None, "store"), works)
    assert keys == [Key("", "infer"), Key("", "play"), Key("", "store")]
    assert made.problems == []


def test_replay_of_other_work_is_said():
    made, keys = replayed(chain("infer"), [kernel(10, 20, 5), kernel(20, 30, 5)])
    assert keys == [Key("", "play")] * 2
    assert "(1 kernel captured, 2 kernel executed)" in made.problems[0]
    assert len(made.problems) == 1


def test_guesses_are_said():
    nodes, works = copies()
    works += [Work(5, 6, "unknown", grid=(9,) * 6, stream=7)]
    for work in works:
        work.correlation = 5
    made, keys = replayed(nodes, works)
    assert [key.operation for key in keys].count("a") == 4
    assert "got 3 of 6 that no node is like" in made.problems[0]
