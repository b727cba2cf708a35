"""What the command lines share: numbers that are checked, and mistakes that are answered with a sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong."""

    def error(self, message: str) -> Any:
        """Exits with status 2."""
        self.exit(2, f"{self.prog.removeprefix('python -m ')}: {message}\n")


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


def run_main(parser: Parser, run: Callable[[argparse.Namespace], None], argv: Sequence[str] | None) -> int:
    """Parses the command line and does what it asks for; a user's mistake becomes a line on stderr and status 2."""
    arguments = parser.parse_args(argv)
    try:
        run(arguments)
    except (ValueError, TypeError, ImportError, OSError, torch.OutOfMemoryError) as problem:
        print(f"{parser.prog.removeprefix('python -m ')}: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0
