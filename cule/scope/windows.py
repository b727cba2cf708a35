"""Windows of a program with different instruments, in turns, for calibrate and check.

Each window has a run of the program of its own, as in RL-Scope, or all are of one run (turns.py),
which is many times faster.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cule.errors import Failed
from cule.scope.events import Process
from cule.scope.storage import names_in, read_process
from cule.scope.turns import folder_of

# A set of instruments, as of Recorder.
Kind = Sequence[str]


@dataclass(frozen=True)
class Program:
    """A program that is measured.

    Attributes:
        command: the command without "python", as program.program_of returns it.
        iterations: the first iteration of the window, and the one after its last.
        boundaries: as of Recorder.
        together: whether one run has all windows; else each window has a run of its own.
    """

    command: Sequence[str]
    iterations: tuple[int, int]
    boundaries: Sequence[str] = ()
    together: bool = False


def name_of(kind: Kind) -> str:
    """A set of instruments as text."""
    return ",".join(kind) or "none"


def _run(program: Program, options: Sequence[str]) -> None:
    """Runs the command under `cule.scope run`.

    Raises:
        RuntimeError: it fails.
    """
    first, end = program.iterations
    # Without warnings the last line that a program writes before it fails is why.
    words = [
        sys.executable, "-W", "ignore", "-m", "cule.scope", "run", *options,
        "--iterations", f"{first}:{end}", *(f"--boundary={name}" for name in program.boundaries),
        "--", *program.command,
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise Failed(f"expected {shlex.join(program.command)} to end well, got: {said}")


def _read(program: Program, folder: Path) -> Process:
    """The first process of a recording, which has a window.

    Raises:
        RuntimeError: it has none.
    """
    there = folder.is_dir() and any(folder.glob("*.process.json"))
    process = read_process(folder, names_in(folder)[0]) if there else None
    if process is None or process.end <= process.start:
        first, end = program.iterations
        raise Failed(
            f"expected iterations {first} to {end} of {shlex.join(program.command)}, got none: the "
            "training loop marks them by `with scope.iteration():`"
        )
    return process


def run_once(program: Program, kind: Kind, folder: Path) -> Process:
    """Runs a command until its window is recorded, in a process of its own.

    Raises:
        RuntimeError: it fails.
    """
    options = [
        "--out", str(folder), "--overwrite", "--finish", "--instruments", name_of(kind),
    ]  # fmt: skip
    if "cuda" not in kind:
        options.append("--no-markers")
    _run(program, options)
    return _read(program, folder)


def measure(
    program: Program, kinds: Sequence[Kind], turns: int, progress: Callable[[str], None]
) -> Iterator[list[Process]]:
    """The windows of each turn, one of each kind.

    Args:
        program: what is run.
        kinds: sets of instruments.
        turns: how many windows of each kind.
        progress: called with a text that says which measurement comes next.

    Raises:
        RuntimeError: the command fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if program.together:
            progress(f"{turns} turns in one run")
            each = [f"--turn={name_of(kind)}" for kind in kinds]
            _run(program, ["--out", str(folder), "--turns", str(turns), *each])
        for turn in range(turns):
            windows = []
            for place, kind in enumerate(kinds):
                if program.together:
                    windows.append(_read(program, folder_of(folder, turn, place)))
                else:
                    progress(f"turn {turn + 1} with {name_of(kind)}")
                    windows.append(run_once(program, kind, folder))
            yield windows
