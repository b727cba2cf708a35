"""Calls into JAX, recorded by its own profiler: a compiled function's call goes from Python to C++.

So there is no function that could be replaced (boundary.py). XLA notes what its threads do, at a
cost of tenths of a microsecond, while a session of its profiler is open. What it notes of GPUs is
left out, as torch's profiler records them (activities.py). NumPy's functions that make an array of
a JAX array wait for it where neither sees it: they are replaced.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from cule.scope.annotations import Annotation, listen, stop_listening
from cule.scope.collect import Collected, ThreadLists
from cule.scope.imports import ImportHook

# An event of this name, with a number of ours, says which thread XLA means.
_THREAD = "cule.scope thread "
_OF_NUMPY = ("array", "asarray", "asanyarray", "ascontiguousarray")
# Sessions of a fork's parent, whose ends would wait for its threads.
_left: list[Any] = []
# JAX, and so a profile of it, cannot be used in a fork of a process that used it.
_usable = True


class JaxCalls:
    """The calls that threads with annotations make into JAX.

    They are appended to the threads' lists when recording ends. It begins when JAX is imported, or
    at once if it was.

    Attributes:
        problem: why nothing is recorded, although the program uses JAX; None: nothing went wrong.

    Args:
        collected: the lists.
        offset: as of Collected.news.
        timed: wraps a function so that its calls are noted, as Boundaries.timed.
    """

    def __init__(self, collected: Collected, offset: int, timed: Callable[..., Any]):
        self.collected, self.offset, self._timed = collected, offset, timed
        self.problem: str | None = None
        self._session: Any = None
        self._imports = ImportHook({"jax"}, self._imported)
        # Those of threads that XLA was told of.
        self._lists: list[ThreadLists] = []
        self._local = threading.local()
        self._replaced: dict[str, Any] = {}

    def start(self) -> None:
        """Begins to record, or to wait for JAX. Does nothing in a fork of a process with JAX."""
        if _usable and "jax" in sys.modules:
            self._begin()
        elif _usable:
            self._imports.install()

    def _imported(self, name: str, inside: bool) -> None:
        if name == "jax" and not inside and self._session is None:
            self._begin()

    def _begin(self) -> None:
        try:
            from jax.profiler import ProfileOptions

            jax_in_c, profiler = map(importlib.import_module, ("jaxlib._jax", "jaxlib._profiler"))
            options = ProfileOptions()
            options.python_tracer_level = 0
            # Not jax.profiler.start_trace, which chooses JAX's devices before the program does.
            self._session = profiler.ProfilerSession(options)
            for name in _OF_NUMPY:
                self._replaced[name] = getattr(np, name)
                setattr(np, name, self._of_arrays(self._replaced[name], jax_in_c.ArrayImpl))
        except Exception as problem:  # whatever JAX says, and other versions' lack of something
            self.problem = (
                "expected to record calls into JAX by its profiler, got "
                f"{type(problem).__name__}: {problem}: they count as Python's"
            )
            return
        self._mark_thread()
        listen(self)

    def _of_arrays(self, function: Callable[..., Any], kind: type) -> Callable[..., Any]:
        """The function, wrapped so that its calls with JAX's arrays are noted."""
        noted = self._timed(function, "backend", f"numpy.{function.__name__}")

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            chosen = noted if args and type(args[0]) is kind else function
            return chosen(*args, **kwargs)

        return call

    def _restore(self) -> None:
        """Restores NumPy's functions."""
        while self._replaced:
            setattr(np, *self._replaced.popitem())

    def _mark_thread(self) -> None:
        """Tells XLA which thread this one is."""
        from jax.profiler import TraceAnnotation

        self._local.told = True
        self._lists.append(self.collected.here())
        # A place in the list: another thread may append at the same time.
        with TraceAnnotation(f"{_THREAD}{self._lists.index(self.collected.here())}"):
            pass

    def began(self, annotation: Annotation) -> None:
        """Looks whether it is the first annotation of a thread."""
        if not getattr(self._local, "told", False):
            self._mark_thread()

    def ended(self, annotation: Annotation) -> None:
        """An annotation has ended."""

    def stop(self) -> None:
        """Ends recording, and appends the calls."""
        self._imports.uninstall()
        stop_listening(self)
        self._restore()
        self._local = threading.local()
        session, self._session = self._session, None
        if session is None:
            return
        from jax.profiler import ProfileData

        try:
            profile = ProfileData.from_serialized_xspace(session.stop())
            begun = next(
                dict(plane.stats)["profile_start_time"]
                for plane in profile.planes
                if plane.name == "Task Environment"
            )
            for plane in profile.planes:
                if plane.name == "/host:CPU":
                    for line in plane.lines:
                        self._add(line, int(begun))
        except Exception as problem:
            self.problem = (
                f"expected JAX's profile, got {type(problem).__name__}: {problem}: calls into JAX "
                "count as Python's"
            )

    def _add(self, line: Any, begun: int) -> None:
        """Appends what a thread did, if it is one with annotations."""
        events = sorted(
            (round(one.start_ns), -round(one.duration_ns), one.name) for one in line.events
        )
        told = [name for _, _, name in events if name.startswith(_THREAD)]
        if not told:
            return
        lists, reached = self._lists[int(told[0].removeprefix(_THREAD))], 0
        for start, negative, name in events:
            # Only outer ones: what is inside them is JAX's, too.
            if start >= reached and negative and not name.startswith(_THREAD):
                reached = start - negative
                moved = begun - self.offset
                lists.calls.append((start + moved, reached + moved, "backend", name))

    def abandon(self) -> None:
        """In a forked child: JAX cannot be used there."""
        self._imports.uninstall()
        self._restore()
        if self._session is not None:
            _left.append(self._session)
            self._session = None


def _after_fork_in_child() -> None:
    global _usable
    _usable = _usable and "jax" not in sys.modules


os.register_at_fork(after_in_child=_after_fork_in_child)
