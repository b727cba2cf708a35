"""The figures of the README of self-play."""

from __future__ import annotations

from collections.abc import Iterator

from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "examples" / "self_play" / "README.md"
DAY = "2026-11-29"
TRAINED = source("trainings", DAY, "1104781", mode="training", algorithm="SelfPlay")
RATED = source("ratings", DAY, "c0ffee0", mode="evaluation", algorithm="SelfPlay")
SOURCES = (TRAINED, RATED)
NUMBERS = "0 1 2 100"
GIVEN: dict[str, str] = {}


def ratings(learners: str) -> Iterator[Said]:
    """The lines of a table: of each seed the ratings of its checkpoints."""
    for seed in (0, 1, 2):
        rows = sorted(RATED.where(learners=learners, seed=seed), key=lambda row: row["frames"])
        cells = [value for row in rows for value in (row["elo"], row["standard_error"])]
        assert len(rows) == 3 and {row["episodes"] for row in rows} == {16}
        yield table_line(f"{learners}, seed {seed}" + " | {:.0f} ± {:.0f}" * 3, *cells)


def figures() -> Iterator[Said]:
    for learners in ("one", "two"):
        frames = sorted({row["frames"] for row in RATED.where(learners=learners)})
        thousands = [number / 1e3 for number in frames]
        yield table_line(f"`--learners {learners}`, frames" + " | {:.0f} thousand" * 3, *thousands)
        yield from ratings(learners)
        seconds = TRAINED.values("cpu_seconds", learners=learners)
        assert TRAINED.values("seed", learners=learners) == [0, 1, 2]
        yield said(
            f"with {learners} {{:.0f}} to {{:.0f}} seconds of one core", min(seconds), max(seconds)
        )
