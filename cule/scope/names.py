"""What processes are called in a recording."""

from __future__ import annotations

import multiprocessing
import os
import re

from cule.scope.startup.sitecustomize import title_of_program

# What the parent of this process, if os.fork made it, was called.
_name_at_fork: str | None = None


def process_name() -> str:
    """The name of this process: "rank0" under torchrun, else "main", or multiprocessing's.

    A process that a rank starts has both; one that os.fork made has its pid.
    """
    name = multiprocessing.current_process().name
    parts = [f"rank{os.environ['RANK']}"] if "RANK" in os.environ else []
    if name != "MainProcess":
        parts.append(re.sub(r"[^\w.-]", "-", name))
    parts = parts or ["main"]
    if name == _name_at_fork:
        parts.append(str(os.getpid()))
    return "-".join(parts)


def title_of_process() -> str:
    """What a report calls a process that another one started: "main" would be misread."""
    name = process_name()
    return title_of_program() if name == "main" else name


def _after_fork_in_child() -> None:
    global _name_at_fork
    _name_at_fork = multiprocessing.current_process().name


os.register_at_fork(after_in_child=_after_fork_in_child)
