"""The events of a recording, as plain lists. All times are nanoseconds since the Unix epoch.

design/scope.md says how tables are made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cule.errors import InvalidType, InvalidValue

# The levels of the software stack, as in RL-Scope's figure 3, and where a thread waits for another
# process or thread.
LEVELS = ("python", "simulator", "backend", "cuda_api", "waiting")
RESOURCES = ("cpu", "gpu", "both", "none")
UNATTRIBUTED = "(unattributed)"
BOOKKEEPING = "(book-keeping)"
# Calls into torch of which torch.profiler records nothing on the calling thread: in the first, the
# thread waits for others that compute gradients.
BACKWARD, REPLAY = "torch.autograd.run_backward", "torch.cuda.CUDAGraph.replay"
# The kinds of annotations.
KINDS = ("operation", "phase", "iteration")


# Above any time in nanoseconds, and any number that a driver gives.
_MOST = 2**64


def whole(value: Any) -> int:
    """A whole number of a recording.

    Raises:
        OverflowError, TypeError, ValueError: it is none, or is larger than any can be.
    """
    number = int(value)
    if abs(number) >= _MOST:
        raise InvalidValue("a number is above 2**64")
    return number


def check_time(value: Any) -> int:
    """A time of a recording.

    Raises:
        OverflowError, TypeError, ValueError: it is none.
    """
    time = whole(value)
    if time < 0:
        raise InvalidValue(f"{time} is no time")
    return time


def span(start: Any, end: Any) -> tuple[int, int]:
    """The times of a begin and an end.

    Raises:
        OverflowError, TypeError, ValueError: they are none.
    """
    if check_time(end) < check_time(start):
        raise InvalidValue(f"{end} is an end before its begin, {start}")
    return int(start), int(end)


def text(value: Any, known: Sequence[str] | None = None) -> str:
    """A text of a recording, one of the known ones.

    Raises:
        TypeError, ValueError: it is none.
    """
    if not isinstance(value, str):
        raise InvalidType(f"{repr(value)[:40]} is no text")
    if known is not None and value not in known:
        raise InvalidValue(f"{repr(value)[:40]} is none of {', '.join(known)}")
    return value


class Key(NamedTuple):
    """The owner of time: an operation and a phase, which is "" where none was open."""

    phase: str
    operation: str


NOBODY = Key("", UNATTRIBUTED)


class Mark(NamedTuple):
    """A begin or an end of an annotation on a thread; `kind` is one of KINDS."""

    time: int
    begins: bool
    kind: str
    name: str


@dataclass(slots=True)
class Call:
    """A call that a thread makes into a level below Python.

    Attributes:
        start: when it began.
        end: when it returned.
        level: one of LEVELS, not "python".
        name: such as "aten::add", "cudaLaunchKernel", "cule._core.Backend.step".
        correlation: what connects a CUDA call with its work on the GPU; 0: nothing.
        waits_until: until when the call only waited for the GPU; 0: it did not.
    """

    start: int
    end: int
    level: str
    name: str
    correlation: int = 0
    waits_until: int = 0


@dataclass(slots=True)
class Work:
    """Work of a GPU: a kernel, a copy or a memset.

    Attributes:
        start: when it began.
        end: when it ended.
        name: the kernel's name.
        kind: "kernel", "memcpy" or "memset".
        device: the GPU's index.
        stream: the stream's number.
        correlation: of the call that launched it; all nodes of a replayed graph share one.
        grid: of a kernel: blocks and threads, six numbers; else empty.
        bytes: of a copy or memset.
        node: the graph node's id; 0 where it is not known.
        key: its owner; set by lanes.py.
        launched: when its launch began; 0 where it is not known; set by lanes.py.
    """

    start: int
    end: int
    name: str
    kind: str = "kernel"
    device: int = 0
    stream: int = 0
    correlation: int = 0
    grid: tuple[int, ...] = ()
    bytes: int = 0
    node: int = 0
    key: Key = NOBODY
    launched: int = 0


@dataclass(slots=True)
class Allocation:
    """Memory that a thread took for a tensor of torch's, or gave back.

    Attributes:
        time: when.
        thread: the number of the thread.
        device: the GPU's index; -1: the host.
        address: where the memory begins.
        bytes: how many; less than 0: they were given back.
        total: bytes of torch's that were in use on the device after it, as torch counts them: on
            the host those that it saw being taken.
        key: its owner; set by lanes.py.
    """

    time: int
    thread: int
    device: int
    address: int
    bytes: int
    total: int
    key: Key = NOBODY


@dataclass(slots=True)
class Node:
    """A node of a captured CUDA graph that becomes work, in the order of capture.

    Attributes:
        kind: as of Work.
        operation: the innermost operation that was opened during the capture and was open when the
            node was captured; None: none was.
        grid: as of Work.
        bytes: as of Work.
        after: indices of the nodes that have to end before it begins.
        is_marker: it marks an operation's begin or end, and does nothing else.
        name: of the kernel; "" where it is not known.
    """

    kind: str
    operation: str | None = None
    grid: tuple[int, ...] = ()
    bytes: int = 0
    after: tuple[int, ...] = ()
    is_marker: bool = False
    name: str = ""


class Replay(NamedTuple):
    """A thread replayed a captured graph."""

    start: int
    end: int
    graph: int


@dataclass
class Thread:
    """The events of a thread.

    Attributes:
        number: the operating system's id of the thread.
        name: Python's name of the thread; "" if Python did not start it.
        marks: begins and ends of annotations, in the order of time.
        calls: calls into libraries, in the order of their starts; they nest. A list, or columns
            (columns.py).
        replays: replays of graphs, in the order of time.
    """

    number: int
    name: str = ""
    marks: list[Mark] = field(default_factory=list)
    calls: Iterable[Call] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)


def window_end(end: int, asked: int | None, work: Sequence[int]) -> int:
    """The end of a window: that of the GPU's last work, or the begin of the wait for it.

    While a GPU is recorded, the call that waits for it returns up to milliseconds late.

    Args:
        end: when the call that waits for the GPU returned.
        asked: when that call began; None: it is not known.
        work: the end of each piece of the GPU's work.
    """
    return end if asked is None or not work else min(end, max(asked, max(work)))


@dataclass
class Process:
    """The events of a process.

    Attributes:
        name: such as "main" or "rank0".
        start: the window's begin.
        end: the window's end.
        main: the number of the thread that opened the recording.
        threads: by their numbers, which are the operating system's.
        pthreads: the number of a thread by the low 32 bits of its pthread_t.
        work: the work of the GPUs, in the order of its starts.
        allocations: memory taken and given back, in the order of time; only if memory is recorded.
        graphs: the nodes of the captured graphs, by the number of the graph.
        about: the description of the process (about.py).
        problems: sentences about missing or damaged parts.
        activities_missing: there is no trace of torch.profiler.
        cut_off: the program was killed while it was recorded.
        folder: of the recording; None: it was not read from one.
        parent: the recorded process that started it; None: it is not recorded.
        goes_on: another part of the recording comes after this one.
        pauses: begin and end of the times between the parts of the recording, in which it was
            written; they are not in it.
    """

    name: str
    start: int
    end: int
    main: int
    threads: dict[int, Thread] = field(default_factory=dict)
    pthreads: dict[int, int] = field(default_factory=dict)
    work: list[Work] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    graphs: dict[int, list[Node]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    activities_missing: bool = False
    cut_off: bool = False
    folder: Path | None = None
    parent: str | None = None
    goes_on: bool = False
    pauses: list[tuple[int, int]] = field(default_factory=list)

    def thread(self, number: int) -> Thread:
        """The thread of this number; a new one if nothing is known of it yet."""
        if number not in self.threads:
            self.threads[number] = Thread(number)
        return self.threads[number]

    @property
    def seconds(self) -> float:
        """The window's length: the wall clock."""
        return (self.end - self.start - sum(end - start for start, end in self.pauses)) / 1e9

    @property
    def iterations(self) -> int:
        """How many iterations ended in the window."""
        return sum(
            mark.kind == "iteration" and not mark.begins and self.start <= mark.time <= self.end
            for thread in self.threads.values()
            for mark in thread.marks
        )
