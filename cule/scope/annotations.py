"""Annotations: phases, operations and iterations, which cost next to nothing without a listener.

Each thread's open annotations are always known, so that a recording can begin in the middle of an
operation. Everything else is done by listeners: recordings, the light mode, the log of a captured
graph.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from cule.errors import InvalidType

Function = TypeVar("Function", bound=Callable[..., Any])


class Listener(Protocol):
    """An object that is called at the begin and end of each annotation."""

    def began(self, annotation: Annotation) -> None:
        """An annotation has begun on this thread."""

    def ended(self, annotation: Annotation) -> None:
        """An annotation has ended on this thread."""


_listeners: tuple[Listener, ...] = ()
_changing = threading.Lock()
# The open annotations of each thread that has had any, and the thread.
_threads: dict[int, tuple[threading.Thread, list[Annotation]]] = {}


class _Local(threading.local):
    """The open annotations of a thread, outer ones first."""

    def __init__(self) -> None:
        self.open: list[Annotation] = []
        _threads[threading.get_ident()] = (threading.current_thread(), self.open)


_local = _Local()


def listen(listener: Listener) -> None:
    """Adds a listener for all annotations of all threads.

    At a begin listeners are called in the order in which they were added, at an end in the reverse
    order.
    """
    global _listeners
    with _changing:
        _listeners = (*_listeners, listener)


def stop_listening(listener: Listener) -> None:
    """Removes a listener."""
    global _listeners
    with _changing:
        _listeners = tuple(other for other in _listeners if other is not listener)


def open_annotations() -> dict[int, tuple[threading.Thread, list[Annotation]]]:
    """The annotations that are open on each living thread, by its identity, outer ones first."""
    return {
        number: (thread, list(opened))
        for number, (thread, opened) in list(_threads.items())
        if thread.is_alive()
    }


def _forget_parent() -> None:
    """In a forked child: its parent's recording is not its own, nor are open annotations.

    Nor is a lock that another thread may have had.
    """
    global _listeners, _changing
    _listeners, _changing = (), threading.Lock()
    _threads.clear()
    _local.open = []
    _threads[threading.get_ident()] = (threading.current_thread(), _local.open)


os.register_at_fork(after_in_child=_forget_parent)


class Annotation:
    """A `with` block that has a name; also a decorator of functions.

    Args:
        name: what it is called in reports.

    Raises:
        TypeError: the name is not a string.
    """

    __slots__ = ("name",)
    kind = ""

    def __init__(self, name: str):
        if type(name) is not str:
            raise InvalidType(
                f"expected the name of a scope.{self.kind} to be a string, got {name!r}"
            )
        self.name = name

    def __enter__(self) -> None:
        _local.open.append(self)
        if _listeners:
            for listener in _listeners:
                listener.began(self)

    def __exit__(self, *_: object) -> None:
        opened = _local.open
        if opened and opened[-1] is self:
            opened.pop()
        elif self in opened:
            # What was opened inside it was left open.
            while opened.pop() is not self:
                pass
        if _listeners:
            for listener in reversed(_listeners):
                listener.ended(self)

    def __call__(self, function: Function) -> Function:
        """The function as one block of this name."""

        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return annotated  # type: ignore[return-value]


class operation(Annotation):
    """An operation of the algorithm, such as "inference"; operations nest.

    Time belongs to the innermost operation that is open. So does the GPU work that is launched, or
    captured in a CUDA graph, meanwhile.

    Args:
        name: what it is called in reports.

    Raises:
        TypeError: the name is not a string.
    """

    __slots__ = ()
    kind = "operation"


class phase(Annotation):
    """A phase of the program, such as "training"; time belongs to the innermost open phase.

    Args:
        name: what it is called in reports.

    Raises:
        TypeError: the name is not a string.
    """

    __slots__ = ()
    kind = "phase"


class iteration(Annotation):
    """An iteration of the training loop. Recordings count iterations, reports divide by them."""

    __slots__ = ()
    kind = "iteration"

    def __init__(self) -> None:
        super().__init__("iteration")
