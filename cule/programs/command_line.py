"""Shared by the command lines: checks of numbers and outputs, and errors as one sentence."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from cule.errors import SHORTAGES, Failed, InvalidValue, sentence_of


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


def check_output(option: str, path: Path, *, makes_folder: bool = False) -> None:
    """Checks, before any work is done, that a file can be written. The file is not changed.

    Args:
        option: which the user has given.
        path: the file.
        makes_folder: make its folder if that is missing.

    Raises:
        ValueError: it cannot, or it is a FIFO of some name, which keeps nothing and which a program
            waits for until somebody reads it.
    """
    if path.resolve().is_fifo():
        raise InvalidValue(f"expected {option} to name a file, got {path}, which is a FIFO")
    try:
        if makes_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        was_there = path.exists()
        path.open("ab").close()
        if not was_there:
            path.unlink()
    except OSError as problem:
        raise InvalidValue(
            f"expected {option} to name a file that can be written, got {path}: {problem.strerror}"
        ) from problem


class _Output:
    """stdout, which keeps the error that comes when nobody reads it or the disk is full."""

    def __init__(self, file: Any):
        self.file = file
        self.problem: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self.problem = problem
            raise

    def write(self, text: str) -> int:
        """Writes a text."""
        with self._noticing():
            return int(self.file.write(text))

    def flush(self) -> None:
        """Writes what is buffered."""
        with self._noticing():
            self.file.flush()

    def end(self) -> None:
        """Writes what is buffered; after an error, Python does not try it again at its end."""
        with suppress(OSError):
            self.flush()
        if self.problem is not None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


@contextmanager
def _streams() -> Iterator[None]:
    """Lets a program write to stdout and stderr, even if they are closed.

    Raises:
        RuntimeError: nobody reads stdout any more, or its disk is full.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # who started the program has closed it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it stays)
    output = _Output(sys.stdout)
    try:
        try:
            with redirect_stdout(output):
                yield
        finally:
            output.end()
    except (OSError, SystemExit):  # other errors say more
        if output.problem is None:
            raise
    if output.problem is not None:
        raise Failed(
            f"expected an output that takes what is written, got: {output.problem.strerror}"
        ) from output.problem


def exit_status_of(
    name: str,
    run: Callable[[], Any],
    shortages: tuple[type[Exception], ...] = SHORTAGES,
    interrupted: str = "interrupted",
) -> int:
    """Runs a program; an error that cule raises on purpose becomes a line on stderr.

    Args:
        name: the name of the program, with which the line begins.
        run: the program.
        shortages: the errors that mean that the machine lacks something.
        interrupted: the line after Ctrl-C.

    Returns:
        The exit status: what `run` returns if that is an int, else 0. It is 2 after a wrong
        setting, a file that cannot be read or written, or if the machine lacks a package or
        memory, and 130 after Ctrl-C.

    Raises:
        Exception: any other error, such as one of the algorithm's own, with its traceback.
    """
    try:
        with _streams():
            result = run()
    except Exception as problem:
        line, status = sentence_of(problem, shortages), 2
        if line is None:
            raise
    except KeyboardInterrupt:
        line, status = interrupted, 130
    else:
        return result if isinstance(result, int) else 0
    sys.stderr.write(f"{name}: {line}\n")
    return status


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
        The exit status, as of `exit_status_of`.

    Raises:
        Exception: any other error, with its traceback.
    """
    # Threads and CUDA say by a RuntimeError what the machine lacks.
    lacking = (*SHORTAGES, RuntimeError)
    return exit_status_of(
        parser.program, lambda: run(parser.parse_args(argv)), lacking, interrupted
    )


def listed(lines: Mapping[str, str]) -> list[str]:
    """A line for each name, with what it is; these begin in the same column."""
    width = max(map(len, lines)) + 2
    return [f"  {name:<{width}}{what}" for name, what in lines.items()]


def run_one_of(
    program: str,
    programs: Mapping[str, tuple[str, str]],
    overview: Callable[[], str],
    words: Sequence[str],
) -> int:
    """Runs the program that the command line names first, or prints what there is.

    Args:
        program: the name that begins a message, such as "cule".
        programs: by name, the module with its `main` and what it does.
        overview: what is printed if no program is named, or --help.
        words: the command line.

    Returns:
        The exit status; 2 if there is no such program.
    """
    name, *arguments = words or ["--help"]
    if name in programs:
        return int(importlib.import_module(programs[name][0]).main(arguments))

    def run_overview() -> None:
        if name not in ("--help", "-h"):
            close = difflib.get_close_matches(name, programs, n=1)
            hint = f"; the closest is {close[0]!r}" if close else ""
            raise InvalidValue(f"expected one of {', '.join(programs)}, got {name!r}{hint}")
        print(overview())

    return exit_status_of(program, run_overview)
