"""A process that another one started records itself into that one's folder.

A fork begins at once, a new Python when it imports torch, cule or a simulator
(startup/sitecustomize.py). The recording ends with the window of the root, or with the process:
also by os._exit, with which multiprocessing ends forks, and by SIGTERM, with which a Pool ends its
workers (sigterm.py). Only SIGKILL leaves a recording that is cut off.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

from cule.scope.following import Follow
from cule.scope.recorder import Recorder
from cule.scope.sigterm import Sigterm
from cule.scope.startup.sitecustomize import call_before_exit

SECONDS_BETWEEN_LOOKS = 0.02


class Follower:
    """Records this process while the root's window is open.

    Args:
        follow: what the root says.
        is_fork: this process is a fork, and its main thread calls this.
        thread_before_fork: the forking thread's number in the parent, under which Kineto still
            knows it; None: Kineto does not.
    """

    def __init__(self, follow: Follow, is_fork: bool, thread_before_fork: int | None):
        self.follow, self.thread_before_fork = follow, thread_before_fork
        # Python may not know it yet after a fork, where this is the main thread.
        known = None if is_fork else threading.main_thread().native_id
        self.thread = known or threading.get_native_id()
        self.recorder: Recorder | None = None
        self.ended = False
        self.sigterm = Sigterm()
        # The program's own handler of a signal may end the process while the main thread has it.
        self._lock = threading.RLock()
        self._watch = threading.Thread(target=self._look, name="cule.scope", daemon=True)

    def start(self) -> None:
        """Begins to record, or to wait for the window."""
        if self.follow.window.exists():
            self.begin()
        self._watch.start()
        atexit.register(self.end)

    def begin(self) -> None:
        """Begins to record. If that fails, the root's report says that the process is missing."""
        with self._lock:
            if self.recorder is not None or self.ended:
                return
            try:
                recorder = Recorder(
                    Path(self.follow.folder), boundaries=self.follow.boundaries, overwrite=True,
                    instruments=self.follow.instruments, followed=self.follow, thread=self.thread,
                    thread_before_fork=self.thread_before_fork,
                )  # fmt: skip
                recorder.start()
            except Exception:  # whatever it is, the program goes on
                self.ended = True
                return
            self.recorder = recorder

    def end(self) -> None:
        """Ends the recording. Can be called again."""
        with self._lock, suppress(Exception):
            self.ended = True
            if self.recorder is not None:
                self.recorder.stop()

    def _look(self) -> None:
        """Begins and ends with the root's window, or ends by SIGTERM."""
        asked = False
        while not self.ended:
            asked = self.sigterm.wait(SECONDS_BETWEEN_LOOKS)
            if asked:
                break
            if self.follow.window.exists():
                self.begin()
            elif self.recorder is not None:
                self.end()
        self.end()
        if self.sigterm.close() or asked:
            os.kill(os.getpid(), signal.SIGTERM)


_follower: Follower | None = None
_forking = 0


def _leave() -> None:
    """This process is about to end; in a fork of a fork its parent's follower is not asked."""
    if _follower is not None:
        _follower.end()


def _start(follow: Follow, is_fork: bool, thread_before_fork: int | None = None) -> None:
    """Begins to follow; a fork also when it ends by os._exit, as multiprocessing's do."""
    global _follower
    _follower = Follower(follow, is_fork, thread_before_fork)
    _follower.start()
    if is_fork:
        call_before_exit(_leave)


def follow_started(text: str, *, is_fork: bool) -> None:
    """In a Python that was started, or a fork server's fork: begins to follow.

    Args:
        text: what an environment variable says.
        is_fork: it is the latter.
    """
    _start(Follow.parse(text), is_fork)


def _before_fork() -> None:
    global _forking
    _forking = threading.get_native_id()
    if _follower is not None:
        _follower.sigterm.before_fork()


def _after_fork_in_parent() -> None:
    if _follower is not None:
        _follower.sigterm.after_fork_in_parent()


def _after_fork_in_child() -> None:
    """A fork of a process that records, or waits for the window, does so, too."""
    global _follower
    parents, _follower = _follower, None
    abandoned = Recorder.abandoned
    follow = None
    if abandoned is not None:
        follow = abandoned.follow
    elif parents is not None and not parents.ended:
        follow = parents.follow
    if parents is not None:
        atexit.unregister(parents.end)
        parents.sigterm.after_fork_in_child()
    if follow is None:
        return
    _start(follow, True, _forking)


def follow_forks() -> None:
    """From now on forks of a process that is recorded are recorded, too."""
    # After the recorder's own function, which this one reads the result of.
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )  # fmt: skip
