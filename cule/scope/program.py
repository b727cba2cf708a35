"""Runs a command while it is recorded, for `python -m cule.scope run`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cule.errors import InvalidValue
from cule.scope.capture import mark_graphs
from cule.scope.recorder import Finished, Recorder
from cule.scope.turns import Turns


def program_of(command: Sequence[str]) -> list[str]:
    """The command without a leading "python": `-m MODULE ...` or `SCRIPT.py ...`.

    Raises:
        ValueError: it is neither.
    """
    words = list(command)
    if words and Path(words[0]).name.startswith("python"):
        words = words[1:]
    if words[:1] == ["-m"] and len(words) > 1 and not words[1].startswith("-"):
        return words
    if words and words[0].endswith(".py"):
        return words
    raise InvalidValue(
        "expected a command after '--', as -m MODULE ... or SCRIPT.py ..., got "
        f"{' '.join(command) or 'none'}"
    )


def _run(words: Sequence[str]) -> Any:
    """Runs a program as Python would.

    Raises:
        ValueError: there is no such script.
    """
    if words[0] == "-m":
        sys.argv = list(words[1:])
        sys.path[0] = ""
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    script = Path(words[0])
    if not script.is_file():
        raise InvalidValue(f"expected a script that exists, got {script}")
    sys.argv = list(words)
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")


def status_of(end: SystemExit) -> int:
    """The exit status of a program that ends so; prints its message if it has one, as Python."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(f"{end.code}\n")
    return 1


def run_recorded(command: Sequence[str], recorder: Recorder | Turns, markers: bool = True) -> int:
    """Runs a command in this process, and records it.

    Args:
        command: as of `program_of`.
        recorder: records it.
        markers: whether operations in CUDA graphs are marked (capture.mark_graphs).

    Returns:
        The program's exit status.

    Raises:
        ValueError: the command is wrong.
    """
    words = program_of(command)
    if markers:
        mark_graphs()
    recorder.start()
    try:
        _run(words)
    except SystemExit as end:
        return status_of(end)
    except Finished:
        return 0
    finally:
        recorder.stop()
    return 0
