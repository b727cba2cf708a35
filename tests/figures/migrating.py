"""The figures of docs/migrating.md."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import libraries
from tests.figures.pages import Said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "docs" / "migrating.md"
FOUR = source("four systems on a CPU", "2026-11-22-four", "ceb3a00")
SYSTEMS = ("cule", "ale-py", "EnvPool", "CuLE 0.1")
OTHERS = source("other libraries", "2026-11-30", "6311605", mode="conformance")
SOURCES = (FOUR, OTHERS)


def of_libraries() -> str:
    """The table of libraries."""
    assert {(row["num_envs"], row["steps"], row["game"]) for row in OTHERS.rows} == {
        (8, 128, "pong")
    }
    return libraries.table(
        {row["system"]: (row["version"], f"{row['fps']:,.0f}") for row in OTHERS.rows}
    )


WRITTEN = {"libraries": of_libraries}
NUMBERS = "0 1 2 3 4 5 8 12 30 32 60 84 104 128 160 210 320 4096 108,000"
COUNTED = "counted by python -m tests.peers"
GIVEN = {
    "is several times faster; `reset_pool_size=0`": "no measurement",
    "are twice as wide": "no measurement",
    "`repeat_prob`, by default 0.25": "a default of CuLE",
    "| its vector env | 83 | 61 |": COUNTED,
    "| the same, without cule's own entries of `info` | 83 | 82 |": COUNTED,
    "| the vector env's `xla()` | 25 | 25 |": COUNTED,
    "| its single env | 740 | 738 |": COUNTED,
    "| its `ALEInterface` | 37 | 33 |": COUNTED,
    "| its vector wrappers | 73 | 72 |": COUNTED,
    "| `gymnasium.make_vec` | 35 | 35 |": COUNTED,
    "| `AtariPreprocessing` | 9 | 9 |": COUNTED,
    "| its VecEnvs | 10 | 7 |": COUNTED,
    "| its env of many envs | 13 | 8 |": COUNTED,
    "| its Atari envs | 25 | 13 |": COUNTED,
}


def figures() -> Iterator[Said]:
    for game in dict.fromkeys(FOUR.values("game")):
        fps = [FOUR.one(game=game, system=system)["fps"] for system in SYSTEMS]
        yield table_line(f"`{game}` | {{:,.0f}} | {{:,.0f}} | {{:,.0f}} | {{:,.0f}}", *fps)
