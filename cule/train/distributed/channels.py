"""Channels between processes: tensors packed into one buffer of bytes, sent, and unpacked.

After GMI-DRL's experience sharing (Wang et al., 2022, section 4.2): whatever a step has becomes one
message. Buffers are allocated once, and there are so many of them that sending does not wait: one
is filled again only when its last message has left.

There are two ways. Processes of one machine on CPUs, or of one GPU, share the memory of the buffers
(shared_memory.py). All others send messages: over NCCL from GPUs, and over gloo from the host.
Messages arrive in the order in which they were sent.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import torch
import torch.distributed as dist

ALIGNED = 16  # bytes
Like = tuple[tuple[int, ...], torch.dtype]
# Of messages which say that another one was sent.
ANNOUNCED = 1


class Parcel:
    """Tensors side by side in one buffer.

    Args:
        like: the shapes and dtypes of the tensors.
        device: the device of the buffer.
        buffer: the buffer, (bytes_of(like),) uint8; None: a new one.

    Attributes:
        buffer: (bytes,) uint8.
        parts: the tensors, views of the buffer.
    """

    def __init__(
        self, like: Sequence[Like], device: torch.device, buffer: torch.Tensor | None = None
    ):
        places = _places(like)
        if buffer is None:
            buffer = torch.zeros(sum(places), dtype=torch.uint8, device=device)
        self.buffer = buffer
        self.parts = [
            piece[: _size(one)].view(one[1]).view(one[0])
            for piece, one in zip(buffer.split(places), like, strict=True)
        ]


def _size(like: Like) -> int:
    return math.prod(like[0]) * like[1].itemsize


def _places(like: Sequence[Like]) -> list[int]:
    return [-(-_size(one) // ALIGNED) * ALIGNED for one in like]


def bytes_of(like: Sequence[Like]) -> int:
    """The bytes of a parcel's buffer."""
    return sum(_places(like))


class Outbox(Protocol):
    """The end of a channel that sends, to one process."""

    def next(self) -> Parcel:
        """The parcel to fill for the next message; waits if all of them are on their way."""

    def send(self) -> None:
        """Sends the parcel that `next` has returned; does not wait."""


class Inbox(Protocol):
    """The end of a channel that receives, from one process."""

    def expect(self) -> None:
        """Says that one more message will be sent; has to be called before `ready`."""

    def ready(self) -> bool:
        """Whether `receive` would not wait. On a GPU its stream may have to."""

    def receive(self) -> Parcel:
        """The next message; waits for it. The next call may overwrite it."""


class MessageOut:
    """Sends over NCCL or gloo; see Outbox.

    Args:
        like: the shapes and dtypes of a parcel's tensors.
        device: the device of the tensors.
        rank: the process that gets the parcels.
        slots: parcels that can be on their way.
        announces: each message is announced, so that the other end can ask whether it has come.
    """

    def __init__(
        self, like: Sequence[Like], device: torch.device, rank: int, slots: int,
        announces: bool,
    ):  # fmt: skip
        self.rank, self.announces = rank, announces
        self.parcels = [Parcel(like, device) for _ in range(slots)]
        self._under_way: list[list[dist.Work]] = [[] for _ in self.parcels]
        self._sign = torch.zeros(1, dtype=torch.uint8)
        self._slot = -1

    def next(self) -> Parcel:
        """See Outbox."""
        self._slot = (self._slot + 1) % len(self.parcels)
        for work in self._under_way[self._slot]:
            work.wait()
        return self.parcels[self._slot]

    def send(self) -> None:
        """See Outbox."""
        buffer = self.parcels[self._slot].buffer
        works = [_started(dist.isend(buffer, self.rank))]
        if self.announces:
            works.append(_started(dist.isend(self._sign, self.rank, tag=ANNOUNCED)))
        self._under_way[self._slot] = works


class MessageIn:
    """Receives over NCCL or gloo; see Inbox.

    torch cannot be asked whether a message has come: gloo notes it only while somebody waits, and
    NCCL's have to be received in the order of the GPU's stream. So a thread waits for a byte that
    is sent after each message.

    Args:
        like: the shapes and dtypes of a parcel's tensors.
        device: the device of the tensors.
        rank: the process that sends the parcels.
        announced: each message is announced.
    """

    def __init__(
        self, like: Sequence[Like], device: torch.device, rank: int, announced: bool
    ):  # fmt: skip
        self.rank = rank
        self.parcel = Parcel(like, device)
        self._signs: deque[Future[Any]] = deque()
        self._thread = ThreadPoolExecutor(1, "messages") if announced else None

    def expect(self) -> None:
        """See Inbox."""
        if self._thread is not None:
            sign = torch.zeros(1, dtype=torch.uint8)
            work = _started(dist.irecv(sign, self.rank, tag=ANNOUNCED))
            self._signs.append(self._thread.submit(work.wait))

    def ready(self) -> bool:
        """See Inbox."""
        return self._signs[0].done()

    def receive(self) -> Parcel:
        """See Inbox."""
        if self._thread is not None:
            self._signs.popleft().result()
        _started(dist.irecv(self.parcel.buffer, self.rank)).wait()
        return self.parcel


class Sender:
    """Sends the same tensors to some processes.

    Args:
        boxes: a channel to each of them.
    """

    def __init__(self, boxes: Sequence[Outbox]):
        self.boxes = boxes

    @torch.no_grad()
    def send(self, values: Sequence[torch.Tensor]) -> None:
        """Packs and sends; waits only if all parcels of a channel are on their way."""
        for box in self.boxes:
            for part, value in zip(box.next().parts, values, strict=True):
                part.copy_(value)
            box.send()


class Receiver:
    """Receives tensors of which some processes have rows.

    Args:
        boxes: a channel from each of them.
    """

    def __init__(self, boxes: Sequence[Inbox]):
        self.boxes = boxes

    def receive(self) -> list[torch.Tensor]:
        """The next message of each, one after another in dimension 0.

        The next call overwrites them. On a GPU its current stream waits, the host does not.
        """
        parcels = [box.receive() for box in self.boxes]
        if len(parcels) == 1:
            return parcels[0].parts
        every = zip(*(parcel.parts for parcel in parcels), strict=True)
        return [torch.cat(parts) for parts in every]


class Newest:
    """Networks of a process that learns, of which the newest is used.

    Each call of `take` stands for one that is sent. What it returns is at most `ahead` - 1 older
    than that one. So a process that acts waits for one that learns only where its policy would be
    too old, and with an `ahead` of 1 it always takes the very one.

    Args:
        boxes: a channel for each of the networks, which are always sent together.
        ahead: how many may be on their way after a call, and one more.

    Attributes:
        asked: how many stood for calls of `take` so far.
        taken: how many of them were received.
    """

    def __init__(self, boxes: Mapping[str, Inbox], ahead: int):
        self.boxes, self.ahead = boxes, ahead
        self.asked = self.taken = 0

    def take(self) -> dict[str, Parcel]:
        """The newest networks that have come, by name; nothing if they were taken before."""
        self.asked += 1
        for box in self.boxes.values():
            box.expect()
        return self._receive(self.asked - self.ahead + 1)

    def settle(self) -> dict[str, Parcel]:
        """Waits for all that calls of `take` stood for; returns the newest as `take` does."""
        return self._receive(self.asked)

    def _receive(self, least: int) -> dict[str, Parcel]:
        newest: dict[str, Parcel] = {}
        boxes = self.boxes.values()
        while self.taken < least or (self.taken < self.asked and all(box.ready() for box in boxes)):
            newest = {name: box.receive() for name, box in self.boxes.items()}
            self.taken += 1
        return newest


def _started(work: dist.Work | None) -> dist.Work:
    """The result of isend and irecv, which is not None for members of a group."""
    assert work is not None
    return work
