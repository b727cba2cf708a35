"""The figures of the README of self-play."""

from __future__ import annotations

from collections.abc import Iterator

from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "examples" / "self_play" / "README.md"
DAYS, COMMITS = ("2026-11-29", "2026-11-30"), "1104781 c7abb45"
TRAINED = source("trainings", DAYS, COMMITS, mode="training", algorithm="SelfPlay")
RATED = source("ratings", DAYS, "c7abb45", mode="evaluation", algorithm="SelfPlay")
ON_GPU = {"algorithm": "SelfPlay", "learners": "two"}
TRAINED_ON_GPU = source(
    "trainings on a GPU", "2026-11-30-h200", "941b99f", mode="training", **ON_GPU
)
RATED_ON_GPU = source("ratings on a GPU", "2026-11-30-h200", "941b99f", mode="evaluation", **ON_GPU)
SOURCES = (TRAINED, RATED, TRAINED_ON_GPU, RATED_ON_GPU)
NUMBERS = "0 1 16 100 6,000"
GIVEN: dict[str, str] = {}
GROUPS = (("pong", "one", "Pong, one network"), ("pong", "two", "Pong, two learners"),
          ("boxing", "two", "Boxing, two learners"))  # fmt: skip
SEEDS = [0, 1]


def figures() -> Iterator[Said]:
    for game, learners, name in GROUPS:
        frames = sorted({row["frames"] for row in RATED.where(game=game, learners=learners)})
        cells = [number / 1e3 for number in frames]
        yield table_line(f"{name}, after" + " | {:.0f} thousand frames" * 3, *cells)
        for seed in SEEDS:
            rows = RATED.where(game=game, learners=learners, seed=seed)
            assert [row["frames"] for row in rows] == frames
            assert {(row["episodes"], row["max_frames"]) for row in rows} == {(16, 6000)}
            found = [value for row in rows for value in (row["elo"], row["standard_error"])]
            yield table_line(f"seed {seed}" + " | {:.0f} ± {:.0f}" * 3, *found)
        assert TRAINED.values("seed", game=game, learners=learners) == SEEDS
    best = RATED.where(game="pong", learners="one", seed=0)[-1]
    assert (best["draws"], best["losses"]) == (0, 0)  # "won all of its games"
    seconds = TRAINED.values("cpu_seconds")
    yield said("took {:.0f} to {:.0f} seconds of one core", min(seconds), max(seconds))
    for game, name in (("pong", "Pong"), ("boxing", "Boxing")):
        frames = sorted({row["frames"] for row in RATED_ON_GPU.where(game=game)})
        cells = " | {:.1f} million" * len(frames)
        yield table_line(f"{name}, after{cells}", *(number / 1e6 for number in frames))
        for seed in SEEDS:
            rows = RATED_ON_GPU.where(game=game, seed=seed)
            assert [row["frames"] for row in rows] == frames
            found = [value for row in rows for value in (row["elo"], row["standard_error"])]
            yield table_line(f"seed {seed}" + " | {:.0f} ± {:.0f}" * len(frames), *found)
        assert TRAINED_ON_GPU.values("seed", game=game) == SEEDS
    seconds = TRAINED_ON_GPU.values("seconds")
    yield said("{:.0f} to {:.0f} seconds, four of them", min(seconds), max(seconds))
