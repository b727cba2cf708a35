"""The figures of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator

from tests.figures.pages import Said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "docs" / "benchmarks.md"
PPO = source("PPO by eight systems", "2026-11-28", "9f0bb72", mode="figure9")
SOURCES = (PPO,)
NUMBERS = "1 9 10 16 32 64"
GIVEN: dict[str, str] = {}


def figures() -> Iterator[Said]:
    for row in PPO.rows:
        yield table_line(
            f"{row['system']} | {{:.2f}} | {{:,.0f}}", row["seconds"], row["peak_bytes"] / 2**20
        )
