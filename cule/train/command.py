"""Shared by the programs: settings from the command line, and errors as one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import tyro

Args = TypeVar("Args")


def run_program(module: str, settings: type[Args], run: Callable[[Args], Any]) -> int:
    """Reads the command line and runs.

    Args:
        module: the program's name for `python -m`, which help texts and errors show.
        settings: the dataclass of the settings.
        run: is called with them.

    Returns:
        The exit status: what `run` returns if that is an int, else 0. It is 2 after a wrong
        setting, a file that cannot be read or written, or a missing package; a line on stderr then
        says why.
    """
    try:
        result = run(tyro.cli(settings, prog=f"python -m {module}"))
    except (ImportError, OSError, ValueError) as problem:
        print(f"{module.rpartition('.')[2]}: {problem}", file=sys.stderr)
        return 2
    return result if isinstance(result, int) else 0
