"""The figures of docs/atari57.md: scores, aggregates, seeds, times."""

from __future__ import annotations

import datetime
import statistics

import numpy as np

from examples.atari57.aggregates import STATISTICS
from tests.figures.results import ROOT, Source, source

PAGE = ROOT / "docs" / "atari57.md"
NOOPS = source("Atari-57, `noops`", "2026-11-26-h100", "37fe219", protocol="noops")
SEEDS = source(
    "Atari-57, more seeds", ("2026-11-26-h100", "2026-11-26-h200", "2026-11-27-h200"),
    "4f269c1 6b8f61e 6229a59", protocol="noops",
)  # fmt: skip
MACHADO = source("Atari-57, `machado`", "2026-11-27-h200", "6229a59", protocol="machado")


def normalised(rows: Source) -> dict[str, float]:
    """Human-normalised scores by game."""
    return {row["game"]: row["score_normalised"] for row in rows.rows}


def aggregates(rows: Source) -> dict[str, float]:
    """Median, mean and IQM over the 57 games."""
    scores = np.array(list(normalised(rows).values()))[None]
    assert scores.shape == (1, 57)
    return {name: float(statistic(scores)) for name, statistic in STATISTICS.items()}


def of_seeds() -> dict[str, list[float]]:
    """Human-normalised scores of the games that have three seeds, by seed."""
    found: dict[str, dict[int, float]] = {}
    for row in (*NOOPS.rows, *SEEDS.rows):
        assert found.setdefault(row["game"], {}).setdefault(row["seed"], row) is row
    return {
        game: [seeds[seed]["score_normalised"] for seed in range(3)]
        for game, seeds in sorted(found.items()) if len(seeds) > 1
    }  # fmt: skip


def median_of_means() -> float:
    """The median over all games with the means of those that have three seeds."""
    means = {game: statistics.mean(scores) for game, scores in of_seeds().items()}
    return statistics.median((normalised(NOOPS) | means).values())


def hours(rows: Source) -> float:
    """The hours of all trainings."""
    return sum(row["seconds"] for row in rows.rows) / 3600


def minutes(rows: Source) -> float:
    """The minutes from the first agent's start to the last one's row."""
    begin = min(row["trained_from"] - row["startup_seconds"] for row in rows.rows)
    end = max(datetime.datetime.fromisoformat(row["date"]).timestamp() for row in rows.rows)
    return (end - begin) / 60
