"""Shared by the programs: settings from the command line, and errors as one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import tyro

Args = TypeVar("Args")


def run_program(program: str, settings: type[Args], run: Callable[[Args], Any]) -> int:
    """Reads the command line and runs.

    Args:
        program: how the program is called, which help texts and errors show.
        settings: the dataclass of the settings.
        run: is called with them.

    Returns:
        The exit status: what `run` returns if that is an int, else 0. It is 2 after a wrong
        setting, a file that cannot be read or written, or a missing package; a line on stderr then
        says why.
    """
    try:
        result = run(tyro.cli(settings, prog=program))
    except (ImportError, OSError, ValueError) as problem:
        name = program.split(" ")[-1].removesuffix(".py").rpartition(".")[2]
        sys.stderr.write(f"{name}: {problem}\n")
        return 2
    return result if isinstance(result, int) else 0
