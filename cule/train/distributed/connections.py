"""Which way a message takes between two processes: through memory that they share, or sent."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from cule.train.distributed.channels import (
    Inbox,
    Like,
    MessageIn,
    MessageOut,
    Outbox,
    bytes_of,
)
from cule.train.distributed.process_group import ProcessGroup, timeout_now
from cule.train.distributed.ranks import machine
from cule.train.distributed.shared_memory import MemoryIn, MemoryOut


class Connections:
    """How the processes that train reach each other. All of them have to make it.

    Both ends of a channel have to be made, and several channels between two processes in the same
    order.

    Args:
        processes: this process among the others.
        asynchronous: whether networks are sent in another order than steps.

    Attributes:
        bytes: of the messages' buffers that this process has, on its device.
    """

    def __init__(self, processes: ProcessGroup, *, asynchronous: bool = False):
        self.device, self.rank, self.bytes = processes.device, processes.rank, 0
        self.places = processes.gather(_place(processes.device))
        # NCCL's messages between two processes of a group have one order on both sides.
        self._apart = None
        if asynchronous and self.device.type == "cuda":
            self._apart = dist.new_group(backend="nccl", timeout=timeout_now())

    def share_memory(self, rank: int) -> bool:
        """Whether this process shares memory with another one."""
        return self.places[rank] == self.places[self.rank]

    def outbox(
        self, like: Sequence[Like], rank: int, slots: int, *, announces: bool = False
    ) -> Outbox:
        """The end of a channel that sends.

        Args:
            like: the shapes and dtypes of a message's tensors.
            rank: the process at the other end.
            slots: messages that can be on their way.
            announces: the other end asks whether a message has come.
        """
        shared = self.share_memory(rank)
        self.bytes += (slots + shared) * bytes_of(like)
        if shared:
            return MemoryOut(like, self.device, rank, slots)
        group = self._apart if announces else None
        return MessageOut(like, self.device, rank, slots, announces, group)

    def inbox(self, like: Sequence[Like], rank: int, *, announced: bool = False) -> Inbox:
        """The end of a channel that receives; see `outbox`."""
        if self.share_memory(rank):
            return MemoryIn(like, self.device, rank)
        self.bytes += bytes_of(like)
        group = self._apart if announced else None
        return MessageIn(like, self.device, rank, announced, group)


def _place(device: torch.device) -> str:
    """What processes have in common that share memory: a machine's, or that of one of its GPUs."""
    if device.type != "cuda":
        return machine()
    return f"{machine()} {torch.cuda.get_device_properties(device).uuid}"
