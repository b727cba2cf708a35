"""What a score costs: scores on Atari-57 against hours of a GPU, of suites and of the literature.

    python -m examples.atari57.costs runs/atari57/results.jsonl --output costs.png

Prints a table and draws a picture. Hours are those of the trainings, one after the other on one
GPU, of all games with one seed, without starts and evaluations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import cule
from cule.disk.files import replacing
from cule.errors import InvalidValue
from cule.programs.results import read_rows
from cule.scope.table import columns
from cule.train.command import run_program
from examples.atari57.aggregates import STATISTICS


@dataclass(frozen=True)
class Cost:
    """An agent's scores, and what they took.

    Attributes:
        label: what tables and pictures call it.
        games: how many games there are.
        frames: emulated frames of a training, in millions.
        hours: of a GPU, for all games.
        hardware: which GPU, as the source says it.
        sticky: whether actions are sticky; None: the source does not say.
        median: of human-normalised scores, if the source has it.
        iqm: their interquartile mean, if the source has it.
        source: where it is from.
    """

    label: str
    games: int
    frames: float
    hours: float
    hardware: str
    sticky: bool | None
    median: float | None
    iqm: float | None
    source: str


# Of each what its own page or abstract states, as read on 2026-11-30: hours of a game times games.
# A source that has no time, as most do not, is not here.
PUBLISHED = (
    Cost(
        "Rainbow of Schmidt and Schmied", 57, 10, 57 * 7.5, "RTX 3090", None, 2.057, None,
        "github.com/schmidtdominik/Rainbow, of arXiv:2111.10247 (2021): 7.5 hours, a median of "
        "205.7",
    ),
    Cost(
        "BTR", 60, 200, 60 * 12, "a high-end desktop PC", True, None, 7.4,
        "Clark et al. (2024), arXiv:2411.03820, abstract: within 12 hours, an IQM of 7.4 on "
        "Atari-60",
    ),
    Cost(
        "PQN", 57, 400, 57 * 4, "A40", False, 2.31, None,
        "github.com/mttga/purejaxql, of arXiv:2407.04811 (2024): approximately 4 hours, a median "
        "similar to Rainbow's, which is 2.31 by the first line's source",
    ),
)  # fmt: skip


def costs_of(rows: Iterable[Mapping[str, Any]]) -> list[Cost]:
    """What complete suites cost.

    Args:
        rows: of evaluations, as a suite's results.jsonl has them; others are left out, and so are
            those of a suite that lacks games.

    Raises:
        ValueError: there is no complete suite.
    """
    suites: dict[tuple[Any, ...], dict[int, dict[str, Mapping[str, Any]]]] = {}
    for row in rows:
        if row.get("mode") == "evaluation" and row.get("score_normalised") is not None:
            of_suite = tuple(
                row.get(name) for name in ("commit", "algorithm", "protocol", "candidate", "greedy")
            )
            seeds = suites.setdefault(of_suite, {})
            seeds.setdefault(row["seed"], {})[row["game"]] = row
    games = set(cule.ATARI_57)
    found = []
    for seeds in suites.values():
        whole = [agents for agents in seeds.values() if games <= agents.keys()]
        if not whole:
            continue
        agents = [[one[game] for game in cule.ATARI_57] for one in whole]
        scores = np.array([[row["score_normalised"] for row in one] for one in agents])
        seconds = [
            row["seconds"] / (row.get("trainings_on_gpu") or 1) for one in agents for row in one
        ]
        first = agents[0][0]
        found.append(Cost(
            f"{first['algorithm']}, this suite, {first['protocol']}", len(games),
            float(np.median([row["frames"] for one in agents for row in one])) / 1e6,
            sum(seconds) / 3600 / len(whole), str(first.get("device_name")), first["sticky"] > 0,
            float(STATISTICS["median"](scores)), float(STATISTICS["IQM"](scores)),
            f"{len(whole)} seeds, commit {first.get('commit')}",
        ))  # fmt: skip
    if not found:
        raise InvalidValue("expected a suite of all 57 games among the rows, got none")
    return found


def table_of(costs: Sequence[Cost]) -> str:
    """The costs as text, the cheapest first."""

    def share(value: float | None) -> str:
        return "." if value is None else f"{value:.2f}"

    head = ("", "games", "M frames", "GPU-hours", "median", "IQM", "sticky", "hardware")
    return columns(head, [
        (
            one.label, str(one.games), f"{one.frames:,.0f}", f"{one.hours:,.2f}",
            share(one.median), share(one.iqm),
            "." if one.sticky is None else "yes" if one.sticky else "no", one.hardware,
        )
        for one in sorted(costs, key=lambda one: one.hours)
    ])  # fmt: skip


def frontier(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of points (hours, score) those that no cheaper one reaches, the cheapest first."""
    best: list[tuple[float, float]] = []
    for hours, score in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or score > best[-1][1]:
            best.append((hours, score))
    return best


def draw(costs: Sequence[Cost], path: Path) -> None:
    """Draws medians and interquartile means against hours, with the line that none is above.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the picture cannot be written.
    """
    from matplotlib.figure import Figure  # the import takes a second

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    marks = {True: ("o", "yes"), False: ("s", "no"), None: ("D", "not said")}
    for axis, name in zip(figure.subplots(1, 2), ("median", "iqm"), strict=True):
        shown = [(one, getattr(one, name)) for one in costs if getattr(one, name) is not None]
        for sticky, (mark, label) in marks.items():
            those = [(one, score) for one, score in shown if one.sticky is sticky]
            axis.plot(
                [one.hours for one, _ in those], [score for _, score in those], mark, label=label
            )
        line = frontier((one.hours, score) for one, score in shown)
        axis.step(*zip(*line, strict=True), where="post", color="0.6", linewidth=1, zorder=0)
        for one, score in shown:
            axis.annotate(
                one.label, (one.hours, score), textcoords="offset points", xytext=(4, 5),
                fontsize="x-small", ha="left" if one.hours < 30 else "right",
            )  # fmt: skip
        axis.set(
            xscale="log", yscale="log", xlabel="GPU-hours of all games",
            ylabel=f"{name if name == 'median' else 'interquartile mean'}, human-normalised",
        )  # fmt: skip
        axis.margins(0.08, 0.12)
        axis.grid(alpha=0.3, which="both")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
    figure.axes[0].legend(title="sticky actions", fontsize="small", loc="lower right")
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=110)


@dataclass
class Args:
    """Compares what suites have scored in how many GPU-hours, beside the literature."""

    rows: tyro.conf.Positional[tuple[Path, ...]]
    """files of rows, such as a suite's results.jsonl"""
    output: Path | None = None
    """where the picture goes; by default none is drawn"""


def run(args: Args) -> None:
    """Does what the command line asks for.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: a file cannot be read, or there is no complete suite.
    """
    rows: list[dict[str, Any]] = []
    for path in args.rows:
        try:
            rows += read_rows(path)
        except OSError as problem:
            raise InvalidValue(
                f"expected a file of rows, got {path}: {problem.strerror}"
            ) from problem
    costs = [*costs_of(rows), *PUBLISHED]
    sys.stdout.write(table_of(costs) + "\n")
    if args.output is not None:
        draw(costs, args.output)


def main() -> int:
    """Runs the program; returns the exit status."""
    return run_program("python -m examples.atari57.costs", Args, run)


if __name__ == "__main__":
    sys.exit(main())
