"""Notes which operation each node of a CUDA graph was captured in.

It is always on, from the import of cule.scope: a graph is captured long before anybody records. It
costs nothing but at captures. See design/scope.md.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from cule.scope.annotations import Annotation, listen, stop_listening
from cule.scope.driver import NESTED, WORKING, Driver, RawNode, demangled
from cule.scope.events import Node

# Markers have these sizes, in bytes, which programs rarely set: an odd number above this one.
MARKER_BASE, MARKERS = 4001, 2000

# The nodes of all graphs that were captured, by number.
graphs: dict[int, list[Node]] = {}
_numbers = itertools.count(1)


class Markers:
    """Marks the begins and ends of operations in graphs, by memsets of a few thousand bytes."""

    def __init__(self, driver: Driver):
        self._driver = driver
        self._memory: dict[torch.device, torch.Tensor] = {}
        self._sizes = itertools.cycle(range(MARKER_BASE, MARKER_BASE + 2 * MARKERS, 2))

    def prepare(self) -> None:
        """Allocates the memory that markers set, on the current GPU; not in a capture."""
        device = torch.device("cuda", torch.cuda.current_device())
        if device not in self._memory:
            size = MARKER_BASE + 2 * MARKERS
            self._memory[device] = torch.empty(size, dtype=torch.uint8, device=device)

    def mark(self) -> None:
        """Captures a marker on the current stream."""
        device = torch.device("cuda", torch.cuda.current_device())
        memory = self._memory.get(device)
        if memory is not None:
            stream = torch.cuda.current_stream().cuda_stream
            self._driver.memset(memory.data_ptr(), next(self._sizes), stream)


class CaptureLog:
    """A listener while a graph is captured: how many nodes there were at each change of operation.

    Args:
        driver: CUDA's driver.
        graph: the handle of the graph that is captured.
        markers: marks operations in the graph; None: operations are not marked.
    """

    def __init__(self, driver: Driver, graph: int, markers: Markers | None):
        self.driver, self.graph, self.markers = driver, graph, markers
        self._thread = threading.get_ident()
        self._open: list[str] = []
        # From which node on which operation is the innermost.
        self.changes: list[tuple[int, str | None]] = [(0, None)]

    def _note(self, annotation: Annotation, begins: bool) -> None:
        if annotation.kind != "operation" or threading.get_ident() != self._thread:
            return
        if begins:
            self._open.append(annotation.name)
        elif annotation.name in self._open:
            while self._open.pop() != annotation.name:
                pass
        if self.markers is not None:
            self.markers.mark()
        innermost = self._open[-1] if self._open else None
        self.changes.append((self.driver.count(self.graph), innermost))

    def began(self, annotation: Annotation) -> None:
        """An annotation has begun."""
        self._note(annotation, True)

    def ended(self, annotation: Annotation) -> None:
        """An annotation is about to end."""
        self._note(annotation, False)

    def finish(self) -> list[Node] | None:
        """The nodes that become work; None: some nodes hold graphs of their own."""
        return nodes_of(self.driver.nodes(self.graph), self.changes)


def _is_marker(size: int) -> bool:
    return MARKER_BASE <= size < MARKER_BASE + 2 * MARKERS and size % 2 == 1


def nodes_of(
    raw: Sequence[RawNode], changes: Sequence[tuple[int, str | None]]
) -> list[Node] | None:
    """The nodes that become work, with their operations.

    Args:
        raw: all nodes, in the order of capture.
        changes: (node, operation) in order: from this node on, this operation is the innermost.

    Returns:
        The nodes, whose `after` skips nodes that become no work. None: some nodes hold graphs of
        their own.
    """
    if any(node.kind in NESTED for node in raw):
        return None
    nodes: list[Node] = []
    # For each raw node, the nodes that have to end before what depends on it.
    behind: list[tuple[int, ...]] = []
    names: dict[str, str] = {}
    coming = list(changes)
    operation = None
    for place, one in enumerate(raw):
        while coming and coming[0][0] <= place:
            operation = coming.pop(0)[1]
        after = tuple(sorted({index for before in one.after for index in behind[before]}))
        if one.kind not in WORKING:
            behind.append(after)
            continue
        behind.append((len(nodes),))
        marker = WORKING[one.kind] == "memset" and _is_marker(one.bytes)
        if one.name and one.name not in names:
            names[one.name] = demangled(one.name)
        nodes.append(Node(
            WORKING[one.kind], operation, one.grid, one.bytes, after, marker,
            names.get(one.name, ""),
        ))  # fmt: skip
    return nodes


# The captures ------------------------------------------------------------------------------------

_driver: Driver | None = None
_markers: Markers | None = None
# What replays a graph while a recording notes replays: it gets torch's function and the graph.
noted_replay: Callable[[Callable[[Any], None], Any], None] | None = None


def mark_graphs() -> None:
    """Marks operations in all graphs that are captured from now on.

    Two branches of a graph with the same kernels can only be told apart by markers. A marker costs
    the graph a microsecond or two at each replay.
    """
    global _markers
    if _driver is not None and _markers is None:
        _markers = Markers(_driver)


def _begin(capture_begin: Callable[..., Any]) -> Callable[..., Any]:
    def begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
        if _markers is not None:
            _markers.prepare()
        result = capture_begin(graph, *args, **kwargs)
        assert _driver is not None
        handle = _driver.captured_graph(torch.cuda.current_stream().cuda_stream)
        if handle:
            graph._cule_scope_log = CaptureLog(_driver, handle, _markers)
            listen(graph._cule_scope_log)
        return result

    return begin


def _end(capture_end: Callable[..., Any]) -> Callable[..., Any]:
    def end(graph: Any) -> Any:
        log = getattr(graph, "_cule_scope_log", None)
        if log is not None:
            graph._cule_scope_log = None
            stop_listening(log)
            nodes = log.finish()
            if nodes is not None:
                graph._cule_scope_number = number = next(_numbers)
                graphs[number] = nodes
        return capture_end(graph)

    return end


def _replay(replay: Callable[[Any], None]) -> Callable[[Any], None]:
    def replayed(graph: Any) -> None:
        if noted_replay is None:
            replay(graph)
        else:
            noted_replay(replay, graph)

    return replayed


def watch_captures() -> None:
    """Notes all captures from now on, if there is a GPU.

    Programs keep `graph.replay` as a bound method, so that it is replaced here, before, and not
    when a recording begins.
    """
    global _driver
    if _driver is not None or not torch.backends.cuda.is_built():
        return
    try:
        _driver = Driver()
    except OSError:
        return
    torch.cuda.CUDAGraph.capture_begin = _begin(torch.cuda.CUDAGraph.capture_begin)  # type: ignore
    torch.cuda.CUDAGraph.capture_end = _end(torch.cuda.CUDAGraph.capture_end)  # type: ignore
    torch.cuda.CUDAGraph.replay = _replay(torch.cuda.CUDAGraph.replay)  # type: ignore
