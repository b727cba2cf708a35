"""The figures of docs/scaling.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, Row, source

PAGE = ROOT / "docs" / "scaling.md"
DAY = "2026-11-30-h200"
# The trainings of the tables of layouts, and not those of more seeds beside each other.
ALONE = {"mode": "training", "algorithm": "A2C+V-trace", "num_envs": 2400}
LAYOUTS = source(
    "layouts", DAY, "6a4cd9c 558f9f9", lambda row: "ttop" in row and "mps" in row["command"],
    **ALONE,
)  # fmt: skip
REDUCTIONS = source("ways to average gradients", DAY, "558f9f9", mode="instances")
CHANNELS = source("channels", DAY, "6a4cd9c", mode="channels")
SOURCES = (LAYOUTS, REDUCTIONS, CHANNELS)
NUMBERS = "0 1 2 3 4 7 8 12 20 32 64 120 600 1,024 2,400 2400 4800 6379 8192 29500"
GIVEN = {"fewer than 250 steps a second": "frames of the table by those of an iteration, 9,600"}
# GPUs, layout, and the greatest staleness.
CASES = (
    (1, "together", None), (2, "together", None), (2, "decoupled:1+1", None),
    (2, "2act@0+learn@1", None), (2, "act@0+act@1+learn@1", None), (2, "2act@0+learn@1", 12),
)  # fmt: skip
WAYS = ("multi-process", "hierarchical", "multi-ring")


def is_stale(row: Row) -> bool:
    """Whether its actors played on without the newest weights."""
    return "--max-staleness" in row["command"]


def layouts() -> Iterator[Said]:
    waited: dict[bool, list[float]] = {True: [], False: []}
    for gpus, layout, most in CASES:
        rows = LAYOUTS.where(
            lambda row, most=most: is_stale(row) == bool(most), num_gpus=gpus, layout=layout
        )
        rows = sorted(rows, key=lambda row: row["seed"])
        assert [row["seed"] for row in rows] == [0, 1, 2]
        assert min(row["score"] for row in rows) >= 18

        def middle(key: str, rows: list[Row] = rows) -> float:
            return statistics.median(row[key] for row in rows) / 1e3

        words = f"`{layout}`" if most is None else f"`{layout} --max-staleness {most}`"
        numbers: list[Any] = [row[key] for key in ("seconds", "score") for row in rows]
        numbers += [middle("fps"), middle("pps"), middle("ttop")]
        yield table_line(
            f"{{}} | {words} | {{:.1f}}, {{:.1f}}, {{:.1f}} | {{:.1f}}, {{:.1f}}, {{:.1f}}"
            " | {:,.0f} | {:,.0f} | {:,.0f}", gpus, *numbers,
        )  # fmt: skip
        if layout == "2act@0+learn@1":
            waited[bool(most)] += [row["actors_waited"] for row in rows]
    (frames,) = {row["frames"] for row in LAYOUTS.rows}
    assert max(row["fps"] for row in LAYOUTS.rows) / (4 * 2400) < 250
    yield said("for {:.1f} million frames, on H200s, seeds 0, 1 and 2", frames / 1e6)
    yield said(
        "was {:.0f} to {:.0%} of their time without `--max-staleness` and\n{:.0f} to {:.0%} with",
        100 * min(waited[False]), max(waited[False]), 100 * min(waited[True]), max(waited[True]),
    )  # fmt: skip


def reductions() -> Iterator[Said]:
    for each in (2, 3):
        for what, name in (("a2c", "A2C with V-trace"), ("ppo", "PPO")):
            fps = [REDUCTIONS.one(each=each, what=what, reduction=way).get("fps") for way in WAYS]
            cells = " | ".join("refused" if one is None else "{:,.0f}" for one in fps)
            yield table_line(f"{{}} | {name} | {cells}", each, *(one / 1e3 for one in fps if one))
    yield said("training with {:,}\nenvs of Pong", REDUCTIONS.rows[0]["num_envs"])


def channels() -> Iterator[Said]:
    for gpus, way, name in ((2, "nccl", "two GPUs, NCCL"), (1, "memory", "one GPU, its memory")):
        for envs in (600, 2400):
            rates = [
                CHANNELS.one(num_gpus=gpus, way=way, num_envs=envs, packing=packing)[
                    "steps_per_second"
                ]
                / 1e3
                for packing in ("tensors", "steps", "kinds")
            ]
            yield table_line(f"{name} | {{:,}} | {{:.1f}} | {{:.1f}} | {{:.1f}}", envs, *rates)


def figures() -> Iterator[Said]:
    yield from layouts()
    yield from reductions()
    yield from channels()
