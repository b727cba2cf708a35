"""Python imports this at its start, where a recording follows the processes that a program starts.

A process that imports torch, cule or a simulator is recorded from then on. One that does not leaves
at its end how long it ran, so that the report has it, too. Until then only the standard library is
imported, so that a short program stays short.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "CULE_SCOPE_FOLLOW"
FOLDER = Path(__file__).resolve().parent
# Processes that multiprocessing starts for itself; the second one's forks are the program's.
TRACKER, FORK_SERVER = "multiprocessing.resource_tracker", "multiprocessing.forkserver"


def import_the_other() -> None:
    """Imports the sitecustomize that Python would have imported without this folder."""
    sys.path[:] = [one for one in sys.path if not one or Path(one).resolve() != FOLDER]
    mine = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as problem:
        if problem.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", mine)  # type: ignore[arg-type]


def hook_class() -> Any:
    """ImportHook of cule/scope/imports.py, without cule."""
    path = FOLDER.parent / "imports.py"
    spec = importlib.util.spec_from_file_location("_cule_scope_imports", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ImportHook


def title_of_program() -> str:
    """What a report calls a Python that was started: its program's name."""
    program = Path(sys.argv[0] if sys.argv else "").name
    return "python" if program in ("", "-", "-c") else program


def call_before_exit(function: Callable[[], None]) -> None:
    """Lets os._exit, with which multiprocessing ends forks, call a function first."""
    leave = os._exit

    def called(status: int) -> None:
        function()
        leave(status)

    os._exit = called  # type: ignore[assignment]


class Start:
    """Begins to record this process when it imports what a recording is interested in."""

    def __init__(self, text: str, *, is_fork: bool = False):
        self.text, self.about, self.is_fork = text, json.loads(text), is_fork
        self.begun, self.done, self.pid = time.time_ns(), False, os.getpid()
        packages = {"torch", *self.about["packages"]}
        self.hook = hook_class()(packages, self.imported)
        self.hook.install()
        atexit.register(self.end)
        if is_fork:
            call_before_exit(self.end)
        if not packages.isdisjoint(sys.modules):
            self.imported("torch", False)

    def imported(self, name: str, inside: bool) -> None:
        """Follows, unless the package that imports this one is not complete yet."""
        if inside or self.done:
            return
        self.done = True
        self.hook.uninstall()
        # Another Python may be without cule, or have another one: the report says that the process
        # is missing.
        with contextlib.suppress(Exception):
            importlib.import_module("cule.scope.follower").follow_started(
                self.text, is_fork=self.is_fork
            )

    def forget(self) -> None:
        """In a fork: nothing of its parent's is left."""
        self.hook.uninstall()
        atexit.unregister(self.end)

    def end(self) -> None:
        """Writes how long a process ran that imported nothing of interest."""
        folder, root = Path(self.about["folder"]), self.about["root"]
        forked = os.getpid() != self.pid
        if self.done or forked or not (folder / f"{root}.window").exists():
            return
        name = f"{root}.{self.pid}"
        about = {
            "version": self.about["version"], "state": "complete", "name": name,
            "main": threading.main_thread().native_id, "pid": self.pid, "parent": os.getppid(),
            "host": socket.gethostname(), "root": root,
            "title": title_of_program(),
            "window": [self.begun, time.time_ns()], "instruments": [],
        }  # fmt: skip
        path = folder / f"{name}.process.json"
        unfinished = path.with_suffix(".unfinished")
        try:
            unfinished.write_text(json.dumps(about))
            unfinished.replace(path)
        except OSError:
            pass  # the report says that the process is missing


def begin(text: str | None) -> None:
    """Follows a recording, if there is one, also in forks.

    Args:
        text: of the environment variable; None: there is none.
    """
    words = " ".join(sys.orig_argv)
    if not text or TRACKER in words:
        return
    current = [] if FORK_SERVER in words else [Start(text)]

    def in_fork() -> None:
        if current and current[0].done:
            return  # what records the parent sees to its forks
        for one in current:
            one.forget()
        current[:] = [Start(text, is_fork=True)]

    os.register_at_fork(after_in_child=in_fork)


if __name__ == "sitecustomize":
    import_the_other()
    # An older Python may lack what this needs: it goes on without a recording.
    with contextlib.suppress(Exception):
        begin(os.environ.get(VARIABLE))
