"""Which way a message takes between two processes: through memory that they share, or sent."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cule.train.distributed.channels import (
    Inbox,
    Like,
    MessageIn,
    MessageOut,
    Outbox,
    bytes_of,
)
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.ranks import machine
from cule.train.distributed.shared_memory import HOST, MemoryIn, MemoryOut


class Connections:
    """How the processes that train reach each other. All of them have to make it.

    Both ends of a channel have to be made, and several channels between two processes in the same
    order.

    Args:
        processes: this process among the others.

    Attributes:
        bytes: of the messages' buffers that this process has, on its device.
    """

    def __init__(self, processes: ProcessGroup):
        self.device, self.rank, self.bytes = processes.device, processes.rank, 0
        self.divided = processes.divided
        self.places = processes.gather(_place(processes))

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
        if shared:
            self.bytes += (slots + 1) * bytes_of(like)
            return MemoryOut(like, self.device, rank, slots)
        device = self._way(announces)
        self.bytes += slots * bytes_of(like) * (device == self.device)
        return MessageOut(like, device, rank, slots, announces)

    def inbox(self, like: Sequence[Like], rank: int, *, announced: bool = False) -> Inbox:
        """The end of a channel that receives; see `outbox`."""
        if self.share_memory(rank):
            return MemoryIn(like, self.device, rank)
        device = self._way(announced)
        self.bytes += bytes_of(like) * (device == self.device)
        return MessageIn(like, device, rank, announced)

    def _way(self, announced: bool) -> torch.device:
        """From which memory messages are sent.

        Who sends an announced one does not wait for the other end, as NCCL does: its first message
        between two processes, and one that does not fit into its buffers, needs both at once, and
        in one order with all others. So these go by way of the host, and so do all where
        any process has a MIG slice, which NCCL does not connect.
        """
        return HOST if announced or self.divided else self.device


def _place(processes: ProcessGroup) -> str:
    """What processes have in common that share memory: a machine's, or that of one of its GPUs."""
    device = processes.device
    if device.type != "cuda":
        return machine()
    own = processes.mig_slice or torch.cuda.get_device_properties(device).uuid
    return f"{machine()} {own}"
