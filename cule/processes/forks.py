"""Lets a forked child leave objects whose files, processes or windows are its parent's."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Protocol


def after_fork_in_child(
    function: Callable[[], object], before: Callable[[], object] | None = None
) -> None:
    """Calls `function` in each forked child, and `before` in its parent; Windows has no forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before or (lambda: None), after_in_child=function)


class Owner(Protocol):
    """An object that holds what only the process that made it may use."""

    def leave(self) -> None:
        """Lets go of what it holds, so that the parent's use of it does not depend on the child.

        It is called in the child, before the fork returns. It neither waits nor raises an error.
        """


_owners: weakref.WeakSet[Owner] = weakref.WeakSet()


def leave_in_child(owner: Owner) -> None:
    """Makes each forked child call `owner.leave()`."""
    _owners.add(owner)


def _after_fork_in_child() -> None:
    for owner in list(_owners):
        owner.leave()
    _owners.clear()


after_fork_in_child(_after_fork_in_child)
