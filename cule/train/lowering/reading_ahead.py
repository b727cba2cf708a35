"""Reads what is needed next while something else is computed.

What is in the host's memory comes over the bus. On a stream of its own it comes while the device
computes with what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

Read = TypeVar("Read")


class ReadingAhead:
    """Reads on a stream of its own.

    Args:
        device: where everything is read to. Only on a GPU there are streams.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def each(self, reads: Sequence[Callable[[], Read]], *, ahead: bool) -> Iterator[Read]:
        """What each function reads, in their order.

        Whoever uses it must no longer have what came before when asking for the next: its memory is
        what the one after the next is read into.

        Args:
            reads: at least one function, each of which reads something.
            ahead: read the next one while one is used.
        """
        if not ahead:
            for read in reads:
                yield read()
            return
        following: list[tuple[Read, torch.cuda.Event | None]] = [self._begun(reads[0])]
        rest: list[Callable[[], Read] | None] = [*reads[1:], None]
        for one in rest:
            now, there = following.pop()
            if one is not None:
                following.append(self._begun(one))
            if there is not None:
                torch.cuda.current_stream(self.device).wait_event(there)
            yield now
            del now

    def _begun(self, read: Callable[[], Read]) -> tuple[Read, torch.cuda.Event | None]:
        """What is read after all work so far, and an event after it."""
        if self._stream is None:
            return read(), None
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            return read(), self._stream.record_event()
