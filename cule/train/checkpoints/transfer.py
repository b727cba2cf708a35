"""Files of checkpoints on their way between machines that share no folder.

Process 0's machine has all files. Another process sends it what it saves, and gets it from there
when a run is resumed: so a machine that is replaced, or whose number changes, takes nothing with
it. A file goes in pieces, each after its length; 0 is the end, and FAILED an end without the rest.
Only process 0 needs room on a disk. Who resumes has its whole file in memory for a moment.
"""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from cule.errors import Failed
from cule.train.distributed.process_group import ProcessGroup

PIECE_BYTES = 1 << 22
FAILED = -1
# Who waits for its turn may wait for as long as others take; one that is lost is the watchdog's.
LONG = timedelta(days=30)


def group_of(processes: ProcessGroup) -> Any:
    """A process group for files alone; None: no process is far. All have to call it."""
    return dist.new_group(backend="gloo", timeout=LONG) if processes.far else None


class Outgoing(io.RawIOBase):
    """A file that is sent to another process while it is written.

    Args:
        rank: the other process.
        group: the process group by which it goes; None: that of all.
    """

    def __init__(self, rank: int, group: Any = None):
        super().__init__()
        self.rank, self.group = rank, group

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, content: Any) -> int:
        """Sends a piece; returns how many bytes of the content that were."""
        piece = memoryview(content).cast("B")[:PIECE_BYTES]
        if piece.nbytes:
            self._send_number(piece.nbytes)
            dist.send(torch.frombuffer(bytearray(piece), dtype=torch.uint8), self.rank, self.group)
        return piece.nbytes

    def end(self, *, failed: bool = False) -> None:
        """Says that nothing more comes."""
        self._send_number(FAILED if failed else 0)

    def _send_number(self, number: int) -> None:
        dist.send(torch.tensor([number]), self.rank, self.group)


def send(write: Any, rank: int, group: Any = None) -> None:
    """Sends a file to another process.

    Args:
        write: takes a file and writes the content to it.
        rank: the other process, which calls `Incoming`.
        group: as of `Outgoing`.
    """
    raw = Outgoing(rank, group)
    file = io.BufferedWriter(raw, PIECE_BYTES)
    try:
        write(file)
        file.flush()
    except BaseException:
        raw.end(failed=True)
        raise
    finally:
        file.detach()
    raw.end()


class Incoming:
    """A file that another process sends.

    Args:
        rank: the other process.
        group: as of `Outgoing`.
    """

    def __init__(self, rank: int, group: Any = None):
        self.rank, self.group = rank, group
        self._piece = torch.empty(PIECE_BYTES, dtype=torch.uint8)
        self._number = torch.ones(1, dtype=torch.int64)

    def _next(self) -> Any:
        """The next piece; it is empty at the end."""
        dist.recv(self._number, self.rank, self.group)
        piece = self._piece[: max(0, int(self._number))]
        if len(piece):
            dist.recv(piece, self.rank, self.group)
        return piece.numpy().data

    def copy_to(self, file: Any) -> None:
        """Writes all of it to a file.

        Raises:
            RuntimeError: the other process could not send all.
        """
        while len(piece := self._next()):
            file.write(piece)
        if int(self._number) == FAILED:
            raise Failed(f"expected the whole file of process {self.rank}, got a part of it")

    def drain(self) -> None:
        """Receives what is left, after an error of this process, so that nobody waits for it."""
        while int(self._number) > 0:
            self._next()
