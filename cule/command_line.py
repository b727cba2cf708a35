"""Shared by the command lines: checks of numbers and outputs, and errors as one sentence."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cule.errors import SHORTAGES, InvalidValue, sentence_of


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    @property
    def program(self) -> str:
        """The name that begins its messages, such as "cule.play"."""
        return self.prog.removeprefix("python -m ")

    def error(self, message: str) -> Any:
        """Exits with status 2."""
        self.exit(2, f"{self.program}: {message}\n")


def number(kind: type[int] | type[float], least: float = 1) -> Callable[[str], float]:
    """Reads a whole number of at least `least`, or a number above 0."""

    def read(text: str) -> float:
        with suppress(ValueError):
            value = kind(text)
            if (value >= least if kind is int else value > 0) and value < float("inf"):
                return value
        what = f"a whole number of at least {least}" if kind is int else "a number above 0"
        raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")

    return read


def check_output(option: str, path: Path) -> None:
    """Checks, before any work is done, that a file can be written. The file is not changed.

    Raises:
        ValueError: it cannot.
    """
    try:
        was_there = path.exists()
        path.open("ab").close()
        if not was_there:
            path.unlink()
    except OSError as problem:
        raise InvalidValue(
            f"expected {option} to name a file that can be written, got {path}: {problem.strerror}"
        ) from problem


def run_main(
    parser: Parser,
    run: Callable[[argparse.Namespace], int | None],
    argv: Sequence[str] | None,
    interrupted: str = "interrupted",
) -> int:
    """Parses the command line and runs the program.

    Args:
        parser: the parser.
        run: the program; it returns the exit status (None: 0).
        argv: the command line (None: that of the process).
        interrupted: the message after Ctrl-C.

    Returns:
        The exit status. It is 2 after what cule refuses, or if the machine lacks memory, threads or
        a working device, and 130 after Ctrl-C; a line on stderr then says why.

    Raises:
        Exception: any other error, with its traceback.
    """
    arguments = parser.parse_args(argv)
    try:
        return run(arguments) or 0
    except Exception as problem:
        # Threads and CUDA say by a RuntimeError what the machine lacks.
        said, status = sentence_of(problem, (*SHORTAGES, RuntimeError)), 2
        if said is None:
            raise
        line = said.partition("\n")[0]
    except KeyboardInterrupt:
        line, status = interrupted, 130
    print(f"{parser.program}: {line}", file=sys.stderr)
    return status


def listed(lines: Mapping[str, str]) -> list[str]:
    """A line for each name, with what it is; these begin in the same column."""
    width = max(map(len, lines)) + 2
    return [f"  {name:<{width}}{what}" for name, what in lines.items()]


def run_one_of(
    program: str, programs: Mapping[str, tuple[str, str]], overview: str, words: Sequence[str]
) -> int:
    """Runs the program that the command line names first, or prints what there is.

    Args:
        program: the name that begins a message, such as "cule".
        programs: by name, the module with its `main` and what it does.
        overview: is printed if no program is named, or --help.
        words: the command line.

    Returns:
        The exit status; 2 if there is no such program.
    """
    name, *arguments = words or ["--help"]
    if name in ("--help", "-h"):
        print(overview)
        return 0
    if name not in programs:
        close = difflib.get_close_matches(name, programs, n=1)
        hint = f"; the closest is {close[0]!r}" if close else ""
        print(
            f"{program}: expected one of {', '.join(programs)}, got {name!r}{hint}", file=sys.stderr
        )
        return 2
    return importlib.import_module(programs[name][0]).main(arguments)
