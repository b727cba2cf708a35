"""The report of a suite: tables, learning curves and bars, from the rows of its agents.

    python -m examples.atari57.report runs/suite

The folder gets report.md and the pictures that it shows. The agents' rows are in its results.jsonl,
which the sweep writes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import cule
from cule.disk.files import replacing
from cule.errors import InvalidValue
from cule.programs.results import read_rows
from cule.train.command import run_program
from cule.train.sweep.sweep import RESULTS
from examples.atari57 import pictures
from examples.atari57.agent import VIDEO
from examples.atari57.aggregates import STATISTICS, interval
from examples.atari57.references import AGENTS, SOURCES, human_normalised, references
from examples.atari57.settings import PROTOCOLS

REPORT = "report.md"
Row = dict[str, Any]
# Of a training: on which device, from when and until when, in seconds since 1970.
Part = Sequence[Any]


@dataclass
class Args:
    """Writes the report of a suite again, from what is in its folder."""

    folder: tyro.conf.Positional[Path]
    """the suite's folder"""


class Suite:
    """What the agents of a suite have reached.

    Args:
        folder: the suite's; its rows are read.

    Attributes:
        rows: of the finished agents, by game and seed.
        failed: the names of those that failed.
        games: with a finished agent, in the order of Atari-57.
        seeds: that all games have.

    Raises:
        ValueError: no agent is finished.
    """

    def __init__(self, folder: Path):
        path, rows = folder / RESULTS, []
        if path.exists():
            rows = read_rows(path)
        self.folder = folder
        self.rows = {(row["game"], row["seed"]): row for row in rows if "error" not in row}
        self.failed = [row["job"] for row in rows if "error" in row]
        if not self.rows:
            raise InvalidValue(
                f"expected a suite's folder with finished agents, as examples.atari57.run writes "
                f"it, got {folder}"
            )
        there = {game for game, _ in self.rows}
        self.games = [game for game in cule.ATARI_57 if game in there]
        every = sorted({seed for _, seed in self.rows})
        self.seeds = [
            seed for seed in every if all((game, seed) in self.rows for game in self.games)
        ]

    @property
    def first(self) -> Row:
        """The row of one of the agents; in settings all are alike."""
        return next(iter(self.rows.values()))

    def of(self, game: str) -> list[Row]:
        """The rows of a game, by seed."""
        return [row for (one, _), row in sorted(self.rows.items()) if one == game]

    def mean(self, game: str, key: str = "score") -> float:
        """The mean over the seeds of a game."""
        return float(np.mean([row[key] for row in self.of(game)]))

    def normalised(self) -> np.ndarray:
        """Human-normalised scores, (seeds, games) float64, of the seeds that all games have."""
        return np.array(
            [[self.rows[game, seed]["score_normalised"] for game in self.games]
             for seed in self.seeds]
        )  # fmt: skip

    def reference(self, name: str) -> np.ndarray:
        """An agent of the literature in the suite's games, (1, games that it has) float64."""
        scores = references()[name]
        there = [game for game in self.games if game in scores]
        return np.array([[human_normalised(game, scores[game]) for game in there]])


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table as Markdown: text on the left, then numbers on the right."""
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def with_interval(scores: np.ndarray, name: str) -> str:
    """A statistic, and its interval if there is one."""
    value = f"{STATISTICS[name](scores):.2f}"
    between = interval(scores, STATISTICS[name])
    return value if between is None else f"{value} ({between[0]:.2f} to {between[1]:.2f})"


def table_of_aggregates(suite: Suite) -> str:
    """Median, mean and IQM of the suite and of the literature's agents."""
    head = ["human-normalised", "games", "seeds", *STATISTICS]
    lines = []
    if suite.seeds:
        own, title = suite.normalised(), suite.first["algorithm"]
        cells = [with_interval(own, name) for name in STATISTICS]
        lines.append([f"**{title}**, this suite", f"{own.shape[1]}", f"{own.shape[0]}", *cells])
    for agent in AGENTS:
        scores = suite.reference(agent)
        if scores.size:
            cells = [f"{statistic(scores):.2f}" for statistic in STATISTICS.values()]
            lines.append([SOURCES[agent].label, f"{scores.shape[1]}", ".", *cells])
    return table(head, lines)


def table_of_scores(suite: Suite) -> str:
    """Each game's score, beside those of humans and of the literature's agents."""
    names = ("random", "human", *AGENTS)
    head = ["game", "score", "deviation", "human-normalised", *(SOURCES[n].label for n in names)]
    lines = []
    for game in suite.games:
        own = [f"{suite.mean(game):,.1f}", f"{suite.mean(game, 'score_deviation'):,.1f}",
               f"{suite.mean(game, 'score_normalised'):.2f}"]  # fmt: skip
        others = [references()[name].get(game) for name in names]
        lines.append([game, *own, *("." if x is None else f"{x:,.1f}" for x in others)])
    return table(head, lines)


def gpu_seconds(rows: Sequence[Row]) -> list[float]:
    """Seconds of a GPU for each training: of k that train on it at the same time each has a kth.

    What a process trained that was killed counts in full, as it is not known when that was.
    """
    parts = [part for row in rows for part in row.get("trained", ())]
    found = []
    for row in rows:
        own = row.get("trained", ())
        known = sum(end - begin for _, begin, end in own)
        charged = sum(charged_to(part, parts) for part in own)
        found.append(charged + max(0.0, row["seconds"] - known))
    return found


def charged_to(part: Part, parts: Sequence[Part]) -> float:
    """Seconds of a GPU for a part of a training, which is one of all parts."""
    device, begin, end = part
    others = [(b, e) for on, b, e in parts if on == device]
    times = sorted({when for one in others for when in one if begin <= when <= end})
    return sum(
        (after - before) / sum(b <= before and after <= e for b, e in others)
        for before, after in pairwise(times)
    )


def wall_clock(suite: Suite) -> str:
    """How long it took."""
    rows = list(suite.rows.values())
    hours = {key: sum(row[key] for row in rows) / 3600
             for key in ("startup_seconds", "evaluation_seconds")}  # fmt: skip
    devices = ", ".join(sorted({row["device_name"] for row in rows}))
    return (
        f"On {devices}: {sum(gpu_seconds(rows)) / 3600:.2f} GPU-hours of training. Over all "
        f"agents, {hours['startup_seconds']:.2f} hours of preparing it, and "
        f"{hours['evaluation_seconds']:.2f} hours of evaluation. The median training had "
        f"{np.median([row['fps'] for row in rows]):,.0f} frames per second. Commit "
        f"{', '.join(sorted({row['commit'] for row in rows}))}."
    )


def table_of_times(suite: Suite) -> str:
    """How long each game took, over all seeds."""
    rows = list(suite.rows.values())
    charged = dict(zip(suite.rows, gpu_seconds(rows), strict=True))
    head = ["game", "minutes of training", "GPU-hours", "frames per second",
            "minutes of evaluation"]  # fmt: skip
    lines = []
    for game in suite.games:
        own = suite.of(game)
        minutes = {key: sum(row[key] for row in own) / 60
                   for key in ("seconds", "evaluation_seconds")}  # fmt: skip
        shared = sum(seconds for (one, _), seconds in charged.items() if one == game)
        lines.append([
            game, f"{minutes['seconds']:.1f}", f"{shared / 3600:.3f}",
            f"{suite.mean(game, 'fps'):,.0f}", f"{minutes['evaluation_seconds']:.1f}",
        ])  # fmt: skip
    return table(head, lines)


def videos(suite: Suite) -> str:
    """Links to the agents' videos."""
    there = [row["job"] for row in suite.rows.values()
             if (suite.folder / row["job"] / VIDEO).exists()]  # fmt: skip
    return "\n".join(f"- [{name}]({name}/{VIDEO})" for name in sorted(there)) or "There are none."


def in_games(suite: Suite) -> str:
    """How many games there are, in words."""
    return f"in {len(suite.games)} games" if len(suite.games) > 1 else f"in {suite.games[0]}"


def how(suite: Suite) -> str:
    """What was trained and how it was evaluated."""
    row = suite.first
    seeds = ", ".join(str(seed) for seed in sorted({seed for _, seed in suite.rows}))
    lacking = f" These agents failed: {', '.join(suite.failed)}." if suite.failed else ""
    intervals = "Intervals are 95%, by stratified bootstrap."
    if len(suite.seeds) < 2:
        intervals = (
            "There are no confidence intervals: they need two seeds or more in every game, not "
            "more episodes."
        )
    most = ", by its most probable actions" if row.get("greedy") else ""
    length = f"{row['frames']:,} frames of each training"
    if row.get("schedule_by") == "seconds":
        rows = list(suite.rows.values())
        millions = [one["frames"] / 1e6 for one in rows]
        length = (
            f"{np.median([one['seconds'] for one in rows]):,.0f} seconds of each training, "
            f"{min(millions):,.0f} to {max(millions):,.0f} million frames"
        )
    return (
        f"{row['algorithm']}, {length}, {in_games(suite)}, seeds: "
        f"{seeds}. Protocol: {PROTOCOLS[row['protocol']].title}. The final agent plays "
        f"{row['episodes']} episodes of at most {row['max_frames']:,} frames on ale-py{most}; "
        "`score` is "
        "their mean and `deviation` their standard deviation, both averaged over seeds."
        f"{lacking} {intervals}"
    )


def sources() -> str:
    """Where the scores of others are from."""
    return "\n".join(
        f"- {source.label}: {source.table}; {source.protocol}." for source in SOURCES.values()
    )


def write_report(folder: Path) -> None:
    """Writes the report of a suite.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: it cannot be written.
        ValueError: no agent is finished.
    """
    suite = Suite(folder)
    drawn = pictures.draw(suite)
    shown = [f"![{what}]({name})" for name, what in drawn.items()]
    parts = [
        f"# Atari: {suite.first['algorithm']} {in_games(suite)}",
        how(suite),
        "## All games", table_of_aggregates(suite),
        "## Each game", table_of_scores(suite),
        "## Pictures", *shown,
        "## Wall clock", wall_clock(suite), table_of_times(suite),
        "## Videos", videos(suite),
        "## Scores of others", sources(),
    ]  # fmt: skip
    with replacing(folder / REPORT) as file:
        file.write(("\n\n".join(parts) + "\n").encode())


def run(args: Args) -> None:
    """Does what the command line asks for.

    Raises:
        ValueError: no agent is finished.
    """
    write_report(args.folder)
    sys.stdout.write(f"The report is {args.folder / REPORT}.\n")


def main() -> int:
    """Writes the report; returns the exit status."""
    return run_program("python -m examples.atari57.report", Args, run)


if __name__ == "__main__":
    sys.exit(main())
