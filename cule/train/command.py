"""Shared by the programs: settings from and for the command line."""

from __future__ import annotations

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
    """Reads the command line and runs.

    Args:
        program: how the program is called, which help texts and errors show.
        settings: the dataclass of the settings.
        run: is called with them.
        words: the command line (None: that of the process).

    Returns:
        The exit status, as of `exit_status_of`.
    """
    name = program.split(" ")[-1].removesuffix(".py").rpartition(".")[2]
    return exit_status_of(name, lambda: run(tyro.cli(settings, prog=program, args=words)))
