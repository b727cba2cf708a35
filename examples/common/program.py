"""What the programs' mains share: settings from the command line, and mistakes answered in a line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import tyro

Args = TypeVar("Args")


def run_program(module: str, settings: type[Args], run: Callable[[Args], Any]) -> int:
    """Reads the command line and runs.

    Args:
        module: the program, as `python -m` has it: help and messages about mistakes name it so.
        settings: the dataclass of them.
        run: is called with them.

    Returns:
        The exit status: what `run` returns, if that is an int, or 0; and 2 after a setting that
        does not fit, a file that cannot be read or written, or a package that is missing, which is
        said in a line on stderr.
    """
    try:
        result = run(tyro.cli(settings, prog=f"python -m {module}"))
    except (ImportError, OSError, ValueError) as problem:
        print(f"{module.rpartition('.')[2]}: {problem}", file=sys.stderr)
        return 2
    return result if isinstance(result, int) else 0
