"""SIGTERM, for a process that has something to write before it ends by it.

A handler of the module signal runs in the main thread, between two instructions of Python: late if
that thread is in C code, and never if the signal comes just before it begins to wait there.
faulthandler's handler is C code, which runs at once, and writes into a pipe for another thread.
"""

from __future__ import annotations

import faulthandler
import os
import re
import select
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from cule.disk.files import identity_of

_STATUS = Path("/proc/self/status")


def _is_default() -> bool:
    """Whether SIGTERM ends this process. What C code has set, the module signal does not know."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return False
    caught = re.search(r"^SigCgt:\s*(\w+)", _STATUS.read_text(), re.MULTILINE)
    return caught is not None and not int(caught[1], 16) >> (signal.SIGTERM - 1) & 1


class Sigterm:
    """From now on SIGTERM does not end this process but is told to whoever waits here.

    That is so only where it would have ended it, and until the program itself sets a handler. What
    a program does to all its files (it closes them, say) it may do to the pipe, too: then SIGTERM
    ends the process again.
    """

    def __init__(self) -> None:
        self._pipe: tuple[int, int] | None = None
        # Held during forks: a child would write into its parent's pipe.
        self._changing = threading.RLock()
        if _is_default():
            self._pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            self._of_pipe = identity_of(self._pipe[0])
            self._catch()

    def wait(self, seconds: float) -> bool:
        """Waits for the signal. Whether it came."""
        if self._pipe is None:
            time.sleep(seconds)
            return False
        poll = select.poll()
        poll.register(self._pipe[0], select.POLLIN)
        poll.poll(seconds * 1e3)
        if not self._is_there():
            self.close()
            return False
        return self._came()

    def close(self) -> bool:
        """SIGTERM is as before. Whether it had come and nobody was told."""
        with self._changing:
            if self._pipe is None:
                return False
            self._release()
            came = self._is_there() and self._came()
            self._close_pipe()
            return came

    def before_fork(self) -> None:
        """SIGTERM is as before for the time of a fork."""
        self._changing.acquire()
        if self._pipe is not None:
            self._release()

    def after_fork_in_parent(self) -> None:
        """The other end of `before_fork`."""
        if self._pipe is not None and self._is_there() and _is_default():
            self._catch()
        self._changing.release()

    def after_fork_in_child(self) -> None:
        """The other end of `before_fork` in the child, which has a pipe of its own or none."""
        if self._pipe is not None:
            self._close_pipe()
        self._changing.release()

    def _is_there(self) -> bool:
        """Whether the pipe's numbers are not those of other files by now."""
        assert self._pipe is not None
        return all(identity_of(file) == self._of_pipe for file in self._pipe)

    def _close_pipe(self) -> None:
        assert self._pipe is not None
        if self._is_there():
            for file in self._pipe:
                os.close(file)
        self._pipe = None

    def _catch(self) -> None:
        assert self._pipe is not None
        faulthandler.register(signal.SIGTERM, file=self._pipe[1], all_threads=False)

    def _release(self) -> None:
        # It would undo what the program has set.
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            faulthandler.unregister(signal.SIGTERM)

    def _came(self) -> bool:
        """Whether something is in the pipe, which is empty after that."""
        assert self._pipe is not None
        with suppress(BlockingIOError):
            return bool(os.read(self._pipe[0], 1 << 20))
        return False
