"""Shared by the programs: settings from and for the command line, and errors as one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tyro

from cule.errors import sentence_of

Args = TypeVar("Args")


def options_of(settings: Mapping[str, Any]) -> list[str]:
    """Settings as words of a command line, such as `--num-envs 8 --no-plot`."""
    words = []
    for name, value in settings.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{option}")
        else:
            words += [f"--{option}", *map(str, value if isinstance(value, tuple) else [value])]
    return words


def run_program(
    program: str,
    settings: type[Args],
    run: Callable[[Args], Any],
    words: Sequence[str] | None = None,
) -> int:
    """Reads the command line and runs.

    Args:
        program: how the program is called, which help texts and errors show.
        settings: the dataclass of the settings.
        run: is called with them.
        words: the command line (None: that of the process).

    Returns:
        The exit status, as of `told`.
    """
    name = program.split(" ")[-1].removesuffix(".py").rpartition(".")[2]
    return told(name, lambda: run(tyro.cli(settings, prog=program, args=words)))


def told(name: str, run: Callable[[], Any]) -> int:
    """Runs, and tells what cule refuses as a line on stderr.

    Args:
        name: the program's, with which the line begins.
        run: is called.

    Returns:
        The exit status: what `run` returns if that is an int, else 0. It is 2 after a wrong
        setting, a file that cannot be read or written, or a missing package.

    Raises:
        Exception: any other error, such as one of the algorithm's own, with its traceback.
    """
    try:
        result = run()
    except Exception as problem:
        line = sentence_of(problem)
        if line is None:
            raise
        sys.stderr.write(f"{name}: {line}\n")
        return 2
    return result if isinstance(result, int) else 0
