"""Ends a process when the one that started it ends, however that happens."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # of prctl(2)
# Loaded with the module, as nothing should be loaded between a fork and a program's start.
_prctl = ctypes.CDLL(None).prctl


def die_with_parent(parent: int) -> None:
    """Lets Linux kill this process once the thread of `parent` that started it has ended."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)
