"""Settings from and for the command lines of cule.train's programs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tyro

from cule.programs.command_line import exit_status_of

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
    """Reads settings from the command line, and runs a function with them.

    Args:
        program: the command that runs the program, for help texts and errors.
        settings: the dataclass of the settings.
        run: the function that gets them.
        words: the command line (None: that of the process).

    Returns:
        The exit status, as of `exit_status_of`.
    """
    if words is None:  # the process is for this program alone
        # What was imported stays to the end. Python's collections of garbage would go through all
        # of it each time, and twice at the end.
        gc.freeze()
    name = program.split(" ")[-1].removesuffix(".py").rpartition(".")[2]
    return exit_status_of(name, lambda: run(tyro.cli(settings, prog=program, args=words)))
