"""Channels between processes: tensors packed into one buffer of bytes, sent, and unpacked.

After GMI-DRL's experience sharing (Wang et al., 2022, section 4.2): whatever a step has becomes one
message. Buffers are allocated once. Sending does not wait: a buffer is filled again only when its
last message has left. Tensors of GPUs go by NCCL, those of the host by gloo.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist

ALIGNED = 16  # bytes
Like = tuple[tuple[int, ...], torch.dtype]


class Parcel:
    """Tensors side by side in one buffer.

    Args:
        like: the shapes and dtypes of the tensors.
        device: the device of the buffer.

    Attributes:
        buffer: (bytes,) uint8.
        parts: the tensors, views of the buffer.
    """

    def __init__(self, like: Sequence[Like], device: torch.device):
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in like]
        places = [-(-size // ALIGNED) * ALIGNED for size in sizes]
        self.buffer = torch.zeros(sum(places), dtype=torch.uint8, device=device)
        pieces = self.buffer.split(places)
        self.parts = [
            piece[:size].view(dtype).view(shape)
            for piece, size, (shape, dtype) in zip(pieces, sizes, like, strict=True)
        ]


class Sender:
    """Sends parcels to some processes.

    Args:
        like: the shapes and dtypes of a parcel's tensors.
        device: the device of the tensors.
        ranks: the processes that get each parcel.
        slots: parcels that can be on their way.
    """

    def __init__(
        self, like: Sequence[Like], device: torch.device, ranks: Sequence[int], slots: int = 1
    ):
        self.ranks = ranks
        self.parcels = [Parcel(like, device) for _ in range(slots)]
        self._under_way: list[list[dist.Work]] = [[] for _ in self.parcels]
        self._next = 0

    @torch.no_grad()
    def send(self, values: Sequence[torch.Tensor]) -> None:
        """Packs and sends; waits only if all slots are on their way."""
        slot, self._next = self._next, (self._next + 1) % len(self.parcels)
        for work in self._under_way[slot]:
            work.wait()
        parcel = self.parcels[slot]
        for part, value in zip(parcel.parts, values, strict=True):
            part.copy_(value)
        self._under_way[slot] = [_started(dist.isend(parcel.buffer, rank)) for rank in self.ranks]


class Receiver:
    """Receives a parcel from each of some processes.

    Args:
        likes: the shapes and dtypes of the tensors of each parcel, by the process that sends it.
        device: the device of the tensors.
    """

    def __init__(self, likes: Mapping[int, Sequence[Like]], device: torch.device):
        self.ranks = list(likes)
        self.parcels = [Parcel(like, device) for like in likes.values()]

    def receive(self) -> list[torch.Tensor]:
        """The next parcels' tensors, those of all processes one after another in dimension 0.

        The next call overwrites them. On a GPU its current stream waits, the host does not.
        """
        works = [
            _started(dist.irecv(parcel.buffer, rank))
            for parcel, rank in zip(self.parcels, self.ranks, strict=True)
        ]
        for work in works:
            work.wait()
        if len(self.parcels) == 1:
            return self.parcels[0].parts
        every = zip(*(parcel.parts for parcel in self.parcels), strict=True)
        return [torch.cat(parts) for parts in every]


def _started(work: dist.Work | None) -> dist.Work:
    """The result of isend and irecv, which is not None for members of a group."""
    assert work is not None
    return work
