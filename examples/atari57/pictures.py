"""The pictures of a suite's report: learning curves by frames and by wall clock, and bars.

Learning curves are of the scores in training, which have the training's protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cule.disk.files import replacing
from cule.train.logs.pictures import scores_of
from examples.atari57.agent import TRAINING
from examples.atari57.aggregates import STATISTICS
from examples.atari57.references import AGENTS, SOURCES, human_normalised, references

if TYPE_CHECKING:
    from examples.atari57.report import Suite

# What a curve is drawn against: a key of the log, its unit, and what the axis says.
AXES = {
    "frames": (1e6, "emulated frames, millions"),
    "seconds": (60.0, "wall clock of training, minutes"),
}
POINTS, COLUMNS = 200, 8


def curve_of(run: Path, key: str) -> tuple[np.ndarray, np.ndarray]:
    """A training's scores.

    Returns:
        Where they were reached, in the key's unit, and the scores, (lines of the log,) float64.
    """
    lines, _ = scores_of(run)
    unit = AXES[key][0]
    return (
        np.array([line[key] / unit for line in lines]),
        np.array([line["score"] for line in lines], dtype=float),
    )


def curves_of_all(suite: Suite, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Human-normalised scores in training, of the seeds that all games have.

    Between the lines of a log they are interpolated. Before the first one play is taken to be
    random, and after the last one the score stays.

    Returns:
        Places on the axis, (POINTS,) float64, and scores, (POINTS, seeds, games) float64.
    """
    found = {
        (seed, game): curve_of(suite.folder / suite.rows[game, seed]["job"] / TRAINING, key)
        for seed in suite.seeds
        for game in suite.games
    }
    ends = [places[-1] for places, _ in found.values() if len(places)]
    axis = np.linspace(0, max(ends, default=0.0), POINTS)
    scores = np.zeros((POINTS, len(suite.seeds), len(suite.games)))
    for row, seed in enumerate(suite.seeds):
        for column, game in enumerate(suite.games):
            places, values = found[seed, game]
            if len(places):
                normalised = [human_normalised(game, value) for value in values]
                scores[:, row, column] = np.interp(axis, [0.0, *places], [0.0, *normalised])
    return axis, scores


def draw_aggregates(figure: Any, suite: Suite) -> None:
    """Median and IQM over the games, by frames and by wall clock."""
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (key, (_, label)) in zip(axes, AXES.items(), strict=True):
        places, scores = curves_of_all(suite, key)
        for name in ("median", "IQM"):
            axis.plot(places, STATISTICS[name](scores), label=name)
        axis.axhline(1, color="0.5", linestyle=":", label="human")
        axis.set(xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set(ylabel="human-normalised score in training")
    axes[0].legend()


def draw_games(figure: Any, suite: Suite, key: str) -> None:
    """Each game's scores in training. Axes are placed by hand: matplotlib takes seconds for it."""
    wide, high = figure.get_size_inches()
    figure.subplots_adjust(
        left=0.9 / wide, right=1 - 0.1 / wide, bottom=0.6 / high, top=1 - 0.3 / high, wspace=0.4,
        hspace=0.5,
    )  # fmt: skip
    rows = -(-len(suite.games) // COLUMNS)
    axes = figure.subplots(rows, min(COLUMNS, len(suite.games)), squeeze=False).flat
    for axis in axes[len(suite.games) :]:
        axis.set_visible(False)
    for axis, game in zip(axes, suite.games, strict=False):
        for row in suite.of(game):
            places, scores = curve_of(suite.folder / row["job"] / TRAINING, key)
            axis.plot(places, scores, marker="." if len(places) == 1 else None, linewidth=1)
        axis.axhline(references()["human"][game], color="0.5", linestyle=":", linewidth=1)
        axis.set_title(game, fontsize="small")
        axis.tick_params(labelsize="x-small")
    figure.supxlabel(AXES[key][1], fontsize="medium")
    label = "score in training; dotted: human"
    figure.supylabel(label, fontsize="medium", x=0.1 / wide, ha="left")


def draw_bars(figure: Any, suite: Suite) -> None:
    """The human-normalised score of each game, with marks for the literature's agents."""
    axis = figure.subplots()
    own = {game: suite.mean(game, "score_normalised") for game in suite.games}
    games = sorted(own, key=lambda game: own[game])
    axis.barh(games, [own[game] for game in games], color="C0", alpha=0.6, label="this suite")
    for mark, agent in zip("o^sD", AGENTS, strict=True):
        scores = references()[agent]
        there = [game for game in games if game in scores]
        axis.plot(
            [human_normalised(game, scores[game]) for game in there], there, mark,
            color="black", markersize=3, fillstyle="none", label=SOURCES[agent].label,
        )  # fmt: skip
    axis.axvline(1, color="0.5", linestyle=":", label="human")
    axis.set_xscale("symlog", linthresh=1)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set(xlabel="human-normalised score; logarithmic from 1 on", ylim=(-1, len(games)))
    axis.tick_params(axis="y", labelsize="x-small")
    axis.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside upper center", ncols=6, fontsize="small")


def draw(suite: Suite) -> dict[str, str]:
    """Draws all pictures into the suite's folder.

    Returns:
        The names of the files, with what they show.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: a picture cannot be written.
    """
    # The import takes a second.
    from matplotlib.figure import Figure

    rows, drawn = -(-len(suite.games) // COLUMNS), {}

    def save(name: str, what: str, size: tuple[float, float], draw_into: Any, *more: Any) -> None:
        figure = Figure(figsize=size, layout="none" if draw_into is draw_games else "constrained")
        draw_into(figure, suite, *more)
        with replacing(suite.folder / name) as file:
            figure.savefig(file, format="png", dpi=110)
        drawn[name] = what

    save("bars.png", "Score of each game", (9, 1.5 + 0.2 * len(suite.games)), draw_bars)
    if suite.seeds:
        save("curves.png", "Learning curves over all games", (11, 4.5), draw_aggregates)
    for key in AXES:
        grid = (2 * COLUMNS, 1 + 1.6 * rows)
        save(f"games_{key}.png", f"Learning curves by {key}", grid, draw_games, key)
    return drawn
