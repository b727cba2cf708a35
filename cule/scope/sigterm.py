"""SIGTERM, for a process that has something to write before it ends by it.

A handler of the module signal runs in the main thread, between two instructions of Python: late if
that thread is in C code, and never if the signal comes just before it begins to wait there. One of
faulthandler's writes nothing in a thread that Python does not know yet, and while a thread begins
the signal is for that one. The core's handler writes into a pipe for another thread, whichever
thread has the signal.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress

from cule import _core
from cule.disk.files import identity_of


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
        pipe = os.pipe()
        if _core.catch_signal(signal.SIGTERM, pipe[1]):
            self._pipe, self._of_pipe = pipe, identity_of(pipe[0])
        for file in pipe:
            if self._pipe is None:
                os.close(file)
            else:
                os.set_blocking(file, False)

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
            _core.release_signal(signal.SIGTERM)
            came = self._is_there() and self._came()
            self._close_pipe()
            return came

    def before_fork(self) -> None:
        """SIGTERM is as before for the time of a fork."""
        self._changing.acquire()
        if self._pipe is not None:
            _core.release_signal(signal.SIGTERM)

    def after_fork_in_parent(self) -> None:
        """The other end of `before_fork`."""
        if self._pipe is not None and self._is_there():
            _core.catch_signal(signal.SIGTERM, self._pipe[1])
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

    def _came(self) -> bool:
        """Whether something is in the pipe, which is empty after that."""
        assert self._pipe is not None
        with suppress(BlockingIOError):
            return bool(os.read(self._pipe[0], 1 << 20))
        return False
