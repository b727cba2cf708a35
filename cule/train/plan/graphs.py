"""CUDA graphs of a plan: which calls are captured together, on which streams, with which waits.

An iteration is one graph with a branch for each stream if a graph may hold all of it and it is not
too long. Otherwise each step of a group is a graph, replayed as often as it occurs, and what a
graph may not hold runs between them. Streams are reached through `Streams`, so that tests can
record what would be captured on a machine without a GPU.
"""

from __future__ import annotations

import bisect
import functools
import gc
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch

from cule.train.plan import annotate
from cule.train.plan.execution import Executor, Step, Turn, in_turns
from cule.train.plan.groups import Group
from cule.train.plan.program import Operation

# How often a function is called before it is captured: libraries choose kernels and allocate memory
# in these calls.
CALLS_BEFORE_CAPTURE = 3
# Steps of groups up to which an iteration is one graph.
MOST_STEPS = 512
NewStream = Callable[[], torch.cuda.Stream]


class Streams(Protocol):
    """The streams of a device. Stream 0 is the current one."""

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """Work in a `with` block goes to this stream."""

    def record(self, stream: int) -> Any:
        """An event after all work of a stream so far."""

    def wait(self, stream: int, event: Any) -> None:
        """Later work of a stream waits for an event."""

    def capture(self, function: Callable[[], None]) -> Callable[[], None]:
        """A function captured without being executed, to be replayed."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """In a `with` block, Python collects no garbage.

    Garbage may hold a CUDA graph of another program. To free a graph while one is captured ends
    that capture with an error.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def workspaces_of_its_own() -> Iterator[None]:
    """In a `with` block, libraries' workspaces are new, and none is kept for later.

    torch keeps a workspace of cuBLAS (32 MB on an H100) for each stream. One that a capture made
    would lie in the graph's memory: it would still be used once the graph is freed
    (https://github.com/pytorch/pytorch/issues/193402), and hold that memory for ever.
    """
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()


class CudaStreams:
    """Streams of a GPU.

    Args:
        device: the GPU.
        count: how many side streams there are, besides the current one.
        makers: two functions that make streams, for stream 0 and for side streams, on two disjoint
            sets of multiprocessors; None: all streams use all multiprocessors.
    """

    def __init__(
        self, device: torch.device, count: int, makers: tuple[NewStream, NewStream] | None = None
    ):
        self.device = device
        # Acting and emulating wait for each other, and all else has time while they do: where both
        # have kernels to start, theirs come first (a negative priority is a high one).
        anywhere = functools.partial(torch.cuda.Stream, device)
        self.main, self.side = makers or (functools.partial(anywhere, priority=-1), anywhere)
        self.sides = [self.side() for _ in range(count)]
        # For each stream that is captured: on which stream, and the last graph.
        self._on: dict[torch.cuda.Stream, torch.cuda.Stream] = {}
        self._last: dict[torch.cuda.Stream, weakref.ref[torch.cuda.CUDAGraph]] = {}

    def _stream(self, stream: int) -> torch.cuda.Stream:
        return self.sides[stream - 1] if stream else torch.cuda.current_stream(self.device)

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """See Streams."""
        # To enter a stream takes the host 60 us, in which torch asks how many GPUs there are.
        return torch.cuda.stream(self.sides[stream - 1]) if stream else nullcontext()

    def record(self, stream: int) -> torch.cuda.Event:
        """See Streams."""
        return self._stream(stream).record_event()

    def wait(self, stream: int, event: torch.cuda.Event) -> None:
        """See Streams."""
        self._stream(stream).wait_event(event)

    def capture(
        self, function: Callable[[], None], generator: torch.Generator | None = None
    ) -> Callable[[], None]:
        """See Streams; the function may also draw from this generator of the device."""
        current, graph = torch.cuda.current_stream(self.device), torch.cuda.CUDAGraph()
        if current not in self._on:
            self._on[current] = self.side() if current in self.sides else self.main()
        own, last = self._on[current], self._last.get(current)
        earlier = None if last is None else last()
        if generator is not None:
            graph.register_generator_state(generator)
        self._last[current] = weakref.ref(graph)
        # Graphs of a stream never run at the same time, so they share their memory. Other threads
        # may use CUDA during the capture.
        pool = None if earlier is None else earlier.pool()
        with (
            no_garbage_collection(),
            workspaces_of_its_own(),
            torch.cuda.graph(graph, pool, own, capture_error_mode="thread_local"),
        ):
            function()
        # A capture begins with writing to what all graphs read of torch's generator, on its stream.
        own.synchronize()
        return _Replay(graph, self.device)


# By the number of a device: the stream of the last replay that drew random numbers, and an event
# after it.
_last_draw: dict[int, tuple[torch.cuda.Stream, torch.cuda.Event]] = {}


class _Replay:
    """Replays a graph; one that draws random numbers comes after all earlier ones that do.

    A replay writes the offset of torch's generator to one place of the device, from which the
    kernels of all graphs read it. Another replay must not write there meanwhile.
    """

    def __init__(self, graph: torch.cuda.CUDAGraph, device: torch.device):
        self.graph, self.device = graph, device
        self._draws = True  # until it is known

    def __call__(self) -> None:
        if not self._draws:
            self.graph.replay()
            return
        stream = torch.cuda.current_stream(self.device)
        number = stream.device_index
        last, generator = _last_draw.get(number), torch.cuda.default_generators[number]
        if last is not None and last[0] != stream:
            stream.wait_event(last[1])
        offset = generator.get_offset()
        self.graph.replay()
        self._draws = generator.get_offset() != offset
        if self._draws:
            _last_draw[number] = stream, stream.record_event()


class _Waits:
    """What the streams of an iteration wait for.

    Args:
        streams: the streams.
        groups: of the iteration's turns.
        several: whether they are on more than one stream.
    """

    def __init__(self, streams: Streams, groups: Sequence[Group], several: bool):
        self.streams, self.several = streams, several
        self.begun = streams.record(0) if several else None
        self.followers = {g.follows: g for g in groups if g.follows is not None}
        # For each group its turns, each with an event after it; how far it has waited for another.
        self.done: dict[Group, list[tuple[Turn, Any]]] = {}
        self.seen: dict[Group, int] = {}
        self.forked = {0}

    def before(self, turn: Turn) -> None:
        """Lets the turn's stream wait for what has to be done before it."""
        group = turn.executor.group
        if group.stream not in self.forked:
            self.streams.wait(group.stream, self.begun)
            self.forked.add(group.stream)
        if group not in self.done:
            for other in group.after:
                if other.stream != group.stream:
                    self.streams.wait(group.stream, self.done[other][-1][1])
        if group.follows is not None:
            self._wait_until(group, group.follows, turn.end)
        if group in self.followers:
            follower = self.followers[group]
            self._wait_until(group, follower, turn.end - follower.lead)

    def _wait_until(self, group: Group, other: Group, time: int) -> None:
        """Waits for the other group's turns with steps up to this time."""
        turns = self.done.get(other, [])
        due = bisect.bisect_right(turns, time, key=lambda turn: turn[0].begin)
        if due > self.seen.get(group, 0):
            self.streams.wait(group.stream, turns[due - 1][1])
            self.seen[group] = due

    def after(self, turn: Turn) -> None:
        """Notes that the turn is launched."""
        if self.several:
            group = turn.executor.group
            event = self.streams.record(group.stream)
            self.done.setdefault(group, []).append((turn, event))

    def at_end(self) -> None:
        """Lets stream 0 wait for all others."""
        last = {group.stream: turns[-1][1] for group, turns in self.done.items()}
        for stream, event in last.items():
            if stream:
                self.streams.wait(0, event)


class Launcher:
    """Launches iterations on streams, captured where that is possible.

    Args:
        executors: the executors of all groups, in their order.
        streams: the streams of the device.
        capture: whether to capture CUDA graphs.
        most_steps: the most steps in a graph of a whole iteration.
    """

    def __init__(
        self,
        executors: Sequence[Executor],
        streams: Streams,
        *,
        capture: bool = True,
        most_steps: int = MOST_STEPS,
    ):
        self.executors, self.streams = list(executors), streams
        self.capture, self.most_steps = capture, most_steps
        self._calls: dict[Hashable, int] = {}
        self._graphs: dict[Hashable, Callable[[], None]] = {}

    @property
    def captured(self) -> int:
        """How many graphs there are."""
        return len(self._graphs)

    def run(self, iteration: int, *, captured: bool = True) -> None:
        """Launches an iteration, on demand without graphs; does not wait for it."""
        capture = self.capture and captured
        if not capture:
            # Graphs keep their memory, which an iteration without them needs once more.
            self.free()
        turns = list(in_turns(self.executors, iteration))
        whole = capture and all(executor.group.captured for executor in self.executors)
        if whole and sum(len(turn.steps) for turn in turns) <= self.most_steps:
            key = tuple((turn.executor, tuple(turn.steps)) for turn in turns)
            planned = [o for executor in self.executors for o in executor.group.operations]
            with annotate.operation(annotate.parts_of(planned)):
                self._replayed(key, lambda: self._launch(turns, self._step))
        else:
            self._launch(turns, self._pieces if capture else self._step, annotate.launching)

    def _launch(
        self,
        turns: Sequence[Turn],
        make: Callable[[Executor, Step], None],
        around: Callable[[Sequence[Operation]], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Executes all steps of an iteration on their groups' streams, each turn in a context."""
        # On one stream order is enough, and events would cost calls.
        several = any(turn.executor.group.stream for turn in turns)
        waits = _Waits(self.streams, [turn.executor.group for turn in turns], several)
        for turn in turns:
            group = turn.executor.group
            with around(group.operations):
                waits.before(turn)
                with self.streams.on(group.stream):
                    for step in turn.steps:
                        make(turn.executor, step)
                waits.after(turn)
        waits.at_end()

    def _step(self, executor: Executor, step: Step) -> None:
        executor.make(step)

    def _pieces(self, executor: Executor, step: Step) -> None:
        """Executes a step in pieces: graphs, and between them the calls that no graph may hold."""
        executor.make_in_pieces(step, self._replayed)

    def _replayed(self, key: Hashable, function: Callable[[], None]) -> None:
        if key not in self._graphs:
            self._calls[key] = self._calls.get(key, 0) + 1
            if self._calls[key] <= CALLS_BEFORE_CAPTURE:
                function()
                return
            self._graphs[key] = self.streams.capture(function)
        self._graphs[key]()

    def free(self) -> None:
        """Frees the graphs; later iterations capture them again."""
        self._graphs.clear()
