"""Draws scores against wall clock and against frames, from the logs of one or several runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from examples.a2c_vtrace.log import LOG, read_log
from examples.common.program import run_program


def plot(runs: Sequence[Path], out: Path) -> None:
    """Writes a picture of the runs' scores: training episodes as lines, evaluations on ale-py as points with deviation.

    Raises:
        OSError: the picture cannot be written.
        ValueError: there are no runs, or a folder has no log.
    """
    if not runs:
        raise ValueError("expected run folders, as train.py writes them, got none")
    # Takes a second to import.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for number, run in enumerate(runs):
        if not (run / LOG).exists():
            raise ValueError(f"expected run folders with a {LOG}, as train.py writes it, got {run}")
        lines = read_log(run / LOG)
        training = [line for line in lines if line["kind"] == "training" and line["score"] is not None]
        tests = [line for line in lines if line["kind"] == "evaluation"]
        for axis, key, unit in ((axes[0], "seconds", 60), (axes[1], "frames", 1e6)):
            color = f"C{number}"
            axis.plot([line[key] / unit for line in training], [line["score"] for line in training],
                      color=color, alpha=0.4, label=f"{run.name}, training")  # fmt: skip
            axis.errorbar([line[key] / unit for line in tests], [line["test_score"] for line in tests],
                          [line["test_deviation"] for line in tests], color=color, marker="o", capsize=3,
                          label=f"{run.name}, on ale-py")  # fmt: skip
    axes[0].set(xlabel="training wall clock, minutes", ylabel="score")
    axes[1].set(xlabel="emulated frames, millions")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(out, dpi=120)


@dataclass
class Args:
    """Draws scores against wall clock and frames."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """run folders that train.py wrote"""
    out: Path = Path("scores.png")
    """the picture"""


def main() -> int:
    """Draws; returns the exit status."""
    return run_program("examples.a2c_vtrace.plot", Args, lambda args: plot(args.runs, args.out))


if __name__ == "__main__":
    sys.exit(main())
