"""The figures of the README of Go-Explore."""

from __future__ import annotations

from collections.abc import Iterator

from tests.figures.pages import Said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "examples" / "go_explore" / "README.md"
EXPLORED = source("explored", "2026-11-30", "e2a0801", mode="exploration")
SOURCES = (EXPLORED,)
NUMBERS = "0.25 8 11 30 2018 2021"
GIVEN = {"a tenth of": "the choice of the games", "for 30 seconds each": "a setting"}
FULL = 4096  # cells of an archive on a CPU


def figures() -> Iterator[Said]:
    assert all("--seconds 30 --num-threads 2" in row["command"] for row in EXPLORED.rows)
    scored = [row for row in EXPLORED.rows if row["demonstration_steps"]]
    for row in scored:
        yield table_line(
            f"`{row['game']}` | {{:,}} | {{:,.0f}} | {{:.0%}} | {{:,}}", row["cells"], row["score"],
            row["score_normalised"], row["demonstration_steps"],
        )  # fmt: skip
    without = {row["game"] for row in EXPLORED.rows} - {row["game"] for row in scored}
    assert without == {"montezuma_revenge", "pitfall", "skiing", "solaris"}
    full = {row["game"] for row in EXPLORED.rows if row["cells"] == FULL}
    assert full == {"asteroids", "skiing", "solaris"}
