"""Long recordings are written in parts while the program runs, so that they fit into memory.

torch's profiler keeps each of its events: 200 bytes while it runs, and 2 KB when it ends. So from
time to time a recording ends its profiles, writes them, and begins new ones. Meanwhile the program
waits, which is not in the recording: each part has a window of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cule.scope.annotations import Annotation, open_annotations

# A part ends after so many seconds, or when C and C++ have so many bytes more in small pieces than
# at its begin, as profilers do; but not before this share of the seconds.
PART_SECONDS, PART_BYTES, LEAST_SHARE = 60.0, 64 << 20, 1 / 240


def resident_bytes() -> int:
    """The memory that this process has now; 0 where the system does not say it."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                     "uordblks", "fordblks", "keepcost")
    ]  # fmt: skip


def small_bytes() -> int:
    """The memory that C and C++ have in small pieces, of which glibc says how much it is.

    Arrays and tensors are large pieces, and Python's objects are in large pieces. Takes some
    milliseconds where there are many. Another C library says nothing: then it is all memory.
    """
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return resident_bytes()
    mallinfo2.restype = _Mallinfo2
    return int(mallinfo2().uordblks)


def return_memory() -> None:
    """Gives memory that is not used any more back to the system, as far as glibc is there.

    Else the next part's growth would not be seen, and its memory would come on top.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class Parts:
    """A listener that has a new part begun when it is time to.

    That is at the begin of an iteration, or of an operation while no other one is open.

    Args:
        begin: begins a new part, within the begin of an annotation.
        enabled: whether there are parts.
        thread: the identity of the thread whose annotations count.

    Attributes:
        windows: begin, end and begin of the wait for the GPU of each part that has ended.
    """

    def __init__(self, begin: Callable[[Annotation], None], enabled: bool, thread: int | None):
        self.windows: list[list[int]] = []
        self._begin, self._enabled, self._thread = begin, enabled, thread
        self.restart()

    def restart(self) -> None:
        """A part begins now."""
        self._due, self._since = False, time.monotonic()
        self._bytes, self._small = resident_bytes(), small_bytes()

    def look(self) -> None:
        """Finds out whether it is time to; called by another thread, now and then."""
        passed = time.monotonic() - self._since
        grown = resident_bytes() - self._bytes >= PART_BYTES
        grown = grown and small_bytes() - self._small >= PART_BYTES
        enough = passed >= PART_SECONDS * (LEAST_SHARE if grown else 1)
        self._due = self._enabled and enough

    def began(self, annotation: Annotation) -> None:
        """Has a new part begun if it is time to."""
        if not self._due or threading.get_ident() != self._thread:
            return
        _, opened = open_annotations()[threading.get_ident()]
        operations = [one for one in opened if one.kind == "operation"]
        if not operations or operations == [annotation]:
            self._begin(annotation)

    def ended(self, annotation: Annotation) -> None:
        """An annotation has ended."""
