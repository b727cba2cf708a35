"""Rows of trainings of Pong to 18 points, which several pages tell of."""

from __future__ import annotations

import statistics

from tests.figures.pages import Said, said
from tests.figures.results import Source, source

TO_18 = {"mode": "training", "game": "pong", "stop_at_score": 18}
SHORTEST = source(
    "Pong in three seconds", "2026-11-27-h200", "1f5449c", num_envs=2400, num_gpus=1, **TO_18
)
ON_FOUR = source(
    "the same on four GPUs", "2026-11-27-h200", "1f5449c", num_gpus=4, layout="together", **TO_18
)
APART = source(
    "two that act and two that learn", "2026-11-27-h200", "1f5449c", num_gpus=4,
    layout="decoupled:2+2", **TO_18,
)  # fmt: skip
SHORTER = source(
    "the same with half as many envs", "2026-11-26-h200", "6b8f61e", num_envs=1200, frames=3936000,
    **TO_18,
)  # fmt: skip
SEEDS = source("Pong in three seconds, other seeds", "2026-11-27-h200", "da17c94", **TO_18)
_NEWER = {"mode": "training", "game": "pong", "num_envs": 2400, "num_gpus": 1}
NEWEST = source(
    "Pong in three seconds, a later version", "2026-11-30-h200", "558f9f9", frames=5568000, **_NEWER
)
LONGER = source(
    "a third longer", "2026-11-30-h200", "6a4cd9c 558f9f9 941b99f", frames=7430400, **_NEWER
)  # fmt: skip
VTRACE = source("Pong, A2C+V-trace", "2026-11-25-h100", "b82d304", algorithm="A2C+V-trace", **TO_18)
PPO = source("Pong, PPO", "2026-11-25-h100", "b82d304", algorithm="PPO", **TO_18)
PQN = source("Pong, PQN", "2026-11-25-h100", "50f2056", algorithm="PQN", **TO_18)
DQN = source("Pong, double DQN", "2026-11-25-h100", "aa9a58d", algorithm="double DQN", **TO_18)


def of_other_seeds() -> Said:
    """The seeds that had no part in the choice of settings."""
    scores = SEEDS.values("score")
    assert sorted(SEEDS.values("seed")) == list(range(3, 3 + len(scores)))
    assert {row["frames"] for row in SEEDS.rows} == {SHORTEST.rows[0]["frames"]}
    return said(
        "{} other seeds scored 18 or more in {} cases, {:.1f} in the median and {:.1f} at worst",
        len(scores), sum(score >= TO_18["stop_at_score"] for score in scores),
        statistics.median(scores), min(scores),
    )  # fmt: skip


def of_longer() -> Said:
    """What a third more frames bring; seeds 0 to 2 had a GPU to themselves."""
    assert sorted(LONGER.values("seed")) == list(range(20))
    scores = LONGER.values("score")
    assert min(scores) >= TO_18["stop_at_score"]
    alone = statistics.median(row["seconds"] for row in LONGER.where(lambda row: row["seed"] < 3))
    return said(
        "{:.1f} million frames take {:.1f} seconds, and of {} seeds all scored 18 or more, {:.1f} "
        "at worst",
        LONGER.rows[0]["frames"] / 1e6, alone, len(scores), min(scores),
    )  # fmt: skip


def of_newest() -> Said:
    """Start and evaluation in a later version."""
    (row,) = NEWEST.rows
    return said(
        "in a later version {:.1f} and {:.1f}", row["startup_seconds"], row["evaluation_seconds"]
    )


def by_seed(rows: Source, key: str, form: str, per: float = 1) -> str:
    """What the seeds 0, 1 and 2 have, as "3.0, 3.0, 2.9"."""
    found = {row["seed"]: format(row[key] / per, form) for row in rows.rows}
    assert sorted(found) == [0, 1, 2]
    return ", ".join(found[seed] for seed in range(3))


def seconds_more(rows: Source) -> str:
    """What starts and evaluations took, from the shortest to the longest."""
    found = [row["startup_seconds"] + row["evaluation_seconds"] for row in rows.rows]
    return f"{min(found):.0f} to {max(found):.0f}"
