"""Runs a command while it is recorded: what `python -m cule.scope run` does."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cule.scope.boundary import find_boundary
from cule.scope.capture import mark_graphs
from cule.scope.recorder import INSTRUMENTS, Finished, Recorder


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
    raise ValueError(
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
        raise ValueError(f"expected a script that exists, got {script}")
    sys.argv = list(words)
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")


def status_of(end: SystemExit) -> int:
    """The exit status of a program that ends so; prints its message if it has one, as Python."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(f"{end.code}\n")
    return 1


def run_recorded(
    command: Sequence[str],
    folder: Path,
    iterations: tuple[int, int] | None,
    *,
    boundaries: Iterable[str] = (),
    instruments: Iterable[str] = INSTRUMENTS,
    markers: bool = True,
    overwrite: bool = False,
    finish: bool = False,
) -> tuple[int, Recorder]:
    """Runs a command in this process, and records it.

    Args:
        command: as of `program_of`.
        folder: as of Recorder.
        iterations: as of Recorder; None: the whole program.
        boundaries: as of Recorder.
        instruments: as of Recorder.
        markers: whether operations in CUDA graphs are marked (capture.mark_graphs).
        overwrite: as of Recorder.
        finish: as of Recorder.

    Returns:
        The program's exit status, and the recorder.

    Raises:
        ValueError: an argument is wrong.
    """
    words, names = program_of(command), tuple(boundaries)
    for name in names:
        find_boundary(name)
    recorder = Recorder(
        folder, iterations=iterations, boundaries=names, instruments=instruments,
        overwrite=overwrite, finish=finish,
    )  # fmt: skip
    if markers:
        mark_graphs()
    status = 0
    recorder.start()
    try:
        _run(words)
    except SystemExit as end:
        status = status_of(end)
    except Finished:
        pass
    finally:
        recorder.stop()
    return status, recorder
