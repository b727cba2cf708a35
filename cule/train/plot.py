"""Draws scores against wall clock and against frames, from the logs of one or several runs.

python -m cule.train.plot runs/a2c_vtrace --out scores.png
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from cule.errors import InvalidValue
from cule.train.command import run_program
from cule.train.logs.pictures import SINGLE, plot


@dataclass
class Args:
    """Draws scores against wall clock and frames."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """run folders that training wrote"""
    out: Path = Path("scores.png")
    """the picture"""


def run(args: Args) -> None:
    """Draws the scores of runs into a file.

    Raises:
        ValueError: there are no runs, or there is nothing to draw.
    """
    points = plot(args.runs, args.out)
    if not points:
        raise InvalidValue("expected runs in which an episode has ended, got none")
    sys.stdout.write(f"The plot is in {args.out}{f', and {SINGLE}' if points == 1 else '.'}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Draws; returns the exit status."""
    return run_program("python -m cule.train.plot", Args, run, argv)


if __name__ == "__main__":
    sys.exit(main())
