"""Channels between processes that share memory: those of a machine on CPUs, or those of one GPU.

NCCL connects no two processes of a GPU, and gloo copies each message through sockets. Here the
sender's buffers are the receiver's: a file without a name (memfd_create(2)) that both map, or
memory of the GPU that CUDA's inter-process communication shows to both. A pipe counts the messages
that were sent, another one those that were read, a byte for each. So both ends can wait, and ask
whether they would have to, and nothing is left behind by a process that is killed.

On a GPU an event of each buffer says when it was written, and another one when it was read: streams
wait for them, and the hosts only for each other's bytes, which are written once an event has been
recorded.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.reductions import reduce_tensor

from cule.train.distributed.channels import Like, Parcel, bytes_of
from cule.train.distributed.process_group import timeout_now

HOST = torch.device("cpu")
ENDED = "the process at the other end of a channel has ended"


class _Memory:
    """What both ends have: the parcels, and on a GPU their events."""

    def __init__(self, like: Sequence[Like], slots: int, buffer: torch.Tensor, made: Any = None):
        size = bytes_of(like)
        self.parcels = [
            Parcel(like, buffer.device, buffer[slot * size : (slot + 1) * size])
            for slot in range(slots)
        ]
        self.slot = -1
        self.events: list[tuple[Any, Any]] = []
        if buffer.device.type == "cuda":
            handles = [(None, None)] * slots if made is None else made
            self.events = [
                (_event(buffer.device, written), _event(buffer.device, read))
                for written, read in handles
            ]

    def move(self) -> None:
        """Moves on to the next parcel."""
        self.slot = (self.slot + 1) % len(self.parcels)

    def next_is_written(self) -> bool:
        """Whether the other end's stream has written the next parcel, once it says that it will."""
        place = (self.slot + 1) % len(self.parcels)
        return not self.events or bool(self.events[place][0].query())

    def record(self, kind: int) -> None:
        """Notes that the current stream has written (0) or read (1) the parcel."""
        if self.events:
            self.events[self.slot][kind].record()

    def wait(self, kind: int) -> None:
        """Lets the current stream wait until the parcel was written (0) or read (1)."""
        if self.events:
            torch.cuda.current_stream().wait_event(self.events[self.slot][kind])


class MemoryOut:
    """Sends through memory; see Outbox in channels.py. The other end has to be made, too.

    Args:
        like: the shapes and dtypes of a parcel's tensors.
        device: the device of the tensors.
        rank: the process that gets the parcels.
        slots: parcels that can be on their way.
    """

    def __init__(self, like: Sequence[Like], device: torch.device, rank: int, slots: int):
        slots += 1  # one is being read
        size, shown, file = max(1, bytes_of(like) * slots), None, -1
        if device.type == "cuda":
            buffer = torch.zeros(size, dtype=torch.uint8, device=device)
            shown = reduce_tensor(buffer)
        else:
            file = os.memfd_create("cule")
            os.ftruncate(file, size)
            buffer = _mapped(os.getpid(), file, size)
        self.memory = _Memory(like, slots, buffer)
        handles = [tuple(event.ipc_handle() for event in pair) for pair in self.memory.events]
        sent, read = os.pipe(), os.pipe()
        ends = {"sent": sent[0], "read": read[1], "file": file}
        told = [{"pid": os.getpid(), "slots": slots, "ends": ends, "cuda": (shown, handles)}]
        dist.send_object_list(told, rank, device=HOST)
        # Once it has opened them, the other end's are its own: then their end is seen here.
        dist.recv(torch.zeros(1, dtype=torch.uint8), rank)
        for end in ends.values():
            if end >= 0:
                os.close(end)
        self._sent, self._read, self._free = sent[1], read[0], slots

    def next(self) -> Parcel:
        """See Outbox."""
        if not self._free:
            _byte(self._read)
            self._free += 1
        self._free -= 1
        self.memory.move()
        self.memory.wait(1)
        return self.memory.parcels[self.memory.slot]

    def send(self) -> None:
        """See Outbox."""
        self.memory.record(0)
        _say(self._sent)

    def __del__(self) -> None:
        for end in (getattr(self, "_sent", -1), getattr(self, "_read", -1)):
            if end >= 0:
                os.close(end)


class MemoryIn:
    """Receives through memory; see Inbox in channels.py. The other end has to be made, too.

    Args:
        like: the shapes and dtypes of a parcel's tensors.
        device: the device of the tensors.
        rank: the process that sends the parcels.
    """

    def __init__(self, like: Sequence[Like], device: torch.device, rank: int):
        told: list[Any] = [None]
        dist.recv_object_list(told, rank, device=HOST)
        pid, slots, ends = told[0]["pid"], told[0]["slots"], told[0]["ends"]
        shown, handles = told[0]["cuda"]
        if device.type == "cuda":
            rebuild, values = shown
            buffer = rebuild(*values)
        else:
            buffer = _mapped(pid, ends["file"], max(1, bytes_of(like) * slots))
        self._sent = os.open(_path(pid, ends["sent"]), os.O_RDONLY)
        self._read = os.open(_path(pid, ends["read"]), os.O_WRONLY)
        dist.send(torch.zeros(1, dtype=torch.uint8), rank)
        self.memory = _Memory(like, slots, buffer, handles)
        self._held = False

    def expect(self) -> None:
        """See Inbox."""

    def ready(self) -> bool:
        """See Inbox."""
        poll = select.poll()
        poll.register(self._sent, select.POLLIN)
        return bool(poll.poll(0)) and self.memory.next_is_written()

    def receive(self) -> Parcel:
        """See Inbox."""
        if self._held:
            self.memory.record(1)
            _say(self._read)
        _byte(self._sent)
        self._held = True
        self.memory.move()
        self.memory.wait(0)
        return self.memory.parcels[self.memory.slot]

    def __del__(self) -> None:
        for end in (getattr(self, "_sent", -1), getattr(self, "_read", -1)):
            if end >= 0:
                os.close(end)


def _event(device: torch.device, handle: Any) -> torch.cuda.Event:
    """An event that both ends have: a new one, or that of the other end's handle."""
    if handle is None:
        return torch.cuda.Event(interprocess=True)
    return torch.cuda.Event.from_ipc_handle(device, handle)


def _path(pid: int, end: int) -> str:
    return f"/proc/{pid}/fd/{end}"


def _mapped(pid: int, file: int, size: int) -> torch.Tensor:
    """The bytes of a process's file as a tensor."""
    return torch.from_file(_path(pid, file), shared=True, size=size, dtype=torch.uint8)


def _byte(pipe: int) -> None:
    """Waits for a byte.

    Raises:
        RuntimeError: the process at the other end has ended, or says nothing for too long.
    """
    seconds = timeout_now().total_seconds()
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    if not poll.poll(1e3 * seconds):
        raise dist.DistError(
            f"the process at the other end of a channel has said nothing for {seconds:g} s"
        )
    if not os.read(pipe, 1):
        raise dist.DistError(ENDED)


def _say(pipe: int) -> None:
    """Writes a byte.

    Raises:
        RuntimeError: the process at the other end has ended.
    """
    try:
        os.write(pipe, b"\0")
    except BrokenPipeError as problem:
        raise dist.DistError(ENDED) from problem
