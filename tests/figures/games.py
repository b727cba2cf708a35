"""The figures of docs/games.md: which share of OCAtari's objects is found."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "docs" / "games.md"
FOUND = source("objects that OCAtari has, too", "2026-11-30", "9b538b6", mode="objects")
SOURCES = (FOUND,)
NUMBERS = "-1 300"
GIVEN = {"of at least 0.5": "what counts as found", "at least 90%": "what is asked for"}


def figures() -> Iterator[Said]:
    rows = FOUND.where(lambda row: row.get("boxes"))
    assert {(row["steps"], row["ocatari"]) for row in rows} == {(300, "2.2.1")}
    shares = {row["game"]: row["found"] / row["boxes"] for row in rows}
    enough = sum(share >= 0.9 for share in shares.values())
    yield said(
        "Of the {} games the median is {:.0%}; in {} it is",
        len(shares), statistics.median(shares.values()), enough,
    )  # fmt: skip
    for row in rows:
        yield table_line(
            "`{}` | {:.1%} | {:.1%}", row["game"], shares[row["game"]], row["named"] / row["boxes"]
        )
