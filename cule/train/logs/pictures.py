"""Pictures of scores against wall clock and against frames, from the logs of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cule.disk.files import content_of, replacing
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.train.logs.log import LOG, RESULT, read_log

# The sentence about a plot of a single score, which has no line.
SINGLE = (
    "has a single point: scores are logged once episodes have ended, after every --log-every "
    "updates, and by evaluations (--eval-every)."
)


def title_of(run: Path) -> str:
    """A run's game, algorithm and commit, from its newest result; its name if it has none."""
    with suppress(OSError, *DAMAGE):
        row = json.loads(content_of(run / RESULT).splitlines()[-1])
        commit = f", commit {row['commit']}" if row["commit"] else ""  # outside a checkout
        return f"{row['game']}, {row['algorithm']}{commit}"
    return run.name


def scores_of(run: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of a run's log with a score: those of training, and those of evaluations.

    Raises:
        ValueError: the folder has no log.
    """
    if not (run / LOG).exists():
        raise InvalidValue(f"expected run folders with a {LOG}, as training writes it, got {run}")
    lines = read_log(run / LOG)
    training = [line for line in lines if line["kind"] == "training" and line["score"] is not None]
    return training, [line for line in lines if line["kind"] == "evaluation"]


def plot(runs: Sequence[Path], out: Path) -> int:
    """Draws the runs' scores: those of training as lines, those of evaluations with error bars.

    Returns:
        How many scores there are: without a finished episode there is none, and no picture.

    Raises:
        ValueError: there are no runs, a folder has no log, or the picture cannot be written.
    """
    if not runs:
        raise InvalidValue("expected run folders, as training writes them, got none")
    scores = [scores_of(run) for run in runs]
    points = sum(len(training) + len(tests) for training, tests in scores)
    if not points:
        return 0
    # The import takes a second.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    figure.suptitle("\n".join(dict.fromkeys(title_of(run) for run in runs)), fontsize="medium")
    axes = figure.subplots(1, 2, sharey=True)
    for number, (run, (training, tests)) in enumerate(zip(runs, scores, strict=True)):
        for axis, key, unit in ((axes[0], "seconds", 60), (axes[1], "frames", 1e6)):
            if training:
                axis.plot(
                    [line[key] / unit for line in training], [line["score"] for line in training],
                    color=f"C{number}", alpha=0.4, marker=".", label=f"{run.name}, training",
                )  # fmt: skip
            if tests:
                axis.errorbar(
                    [line[key] / unit for line in tests], [line["test_score"] for line in tests],
                    [line["test_deviation"] for line in tests],
                    color=f"C{number}", marker="o", capsize=3, label=f"{run.name}, on ale-py",
                )  # fmt: skip
    axes[0].set(xlabel="training wall clock, minutes", ylabel="score")
    axes[1].set(xlabel="emulated frames, millions")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[0].legend()
    try:
        with replacing(out) as file:
            figure.savefig(file, format=out.suffix[1:] or "png", dpi=120)
    except OSError as problem:
        raise InvalidValue(
            f"expected a picture that can be written, got {out}: {problem.strerror}"
        ) from problem
    return points
