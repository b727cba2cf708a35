"""The figures of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator

from tests.figures.pages import Said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "docs" / "benchmarks.md"
PPO = source("PPO by eight systems", "2026-11-28", "9f0bb72", mode="figure9")
ON_GPU = source(
    "PPO on a GPU by four systems", "2026-11-28-h200", "abf5a5c 2ae0929", mode="figure9"
)
CASES = ((512, 125, 1), (512, 125, 8), (512, 250, 1), (256, 125, 1), (1024, 125, 1))
SOURCES = (PPO, ON_GPU)
NUMBERS = "1 9 10 16 32 64"
GIVEN: dict[str, str] = {}


def on_gpu() -> Iterator[Said]:
    for envs, steps, depth in CASES:
        rows = [
            row
            for name in ("cule.train", "rl_games", "TorchRL", "CleanRL")
            for row in ON_GPU.rows
            if (row["num_envs"], row["num_steps"], row["depth"]) == (envs, steps, depth)
            and row["system"] == name
        ]
        numbers = [n for row in rows for n in (row["seconds"], row["peak_bytes"] / 2**30)]
        cells = " | ".join(["{:.3f}, {:.1f}"] * len(rows))
        yield table_line(f"{{:,}}, {{}}, {{}} | {cells}", envs, steps, depth, *numbers)


def figures() -> Iterator[Said]:
    for row in PPO.rows:
        yield table_line(
            f"{row['system']} | {{:.2f}} | {{:,.0f}}", row["seconds"], row["peak_bytes"] / 2**20
        )
    yield from on_gpu()
