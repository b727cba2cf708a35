"""The figures of docs/benchmarks.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "docs" / "benchmarks.md"
PPO = source("PPO by eight systems", "2026-11-28", "9f0bb72", mode="figure9")
ON_GPU = source(
    "PPO on a GPU by four systems", "2026-11-28-h200", "abf5a5c 2ae0929 27dc557", mode="figure9"
)
ON_CPU = source("PPO along four axes by six systems", "2026-11-29", "8baf450", mode="figure9")
LARGE = source(
    "large pictures", "2026-11-28-h200", "2ae0929 27dc557 38bde9d",
    lambda row: row["commit"][:7] != "2ae0929" or row["system"] != "cule.train", mode="figure10",
)  # fmt: skip
CASES = (
    (512, 125, 1, 1), (512, 125, 8, 1), (512, 250, 1, 1), (256, 125, 1, 1), (1024, 125, 1, 1),
    (512, 125, 1, 4),
)  # fmt: skip
# Envs, steps, depth and width.
ON_CPU_CASES = (
    (16, 32, 1, 1), (16, 16, 1, 1), (16, 64, 1, 1), (16, 128, 1, 1), (32, 32, 1, 1),
    (64, 32, 1, 1), (16, 32, 2, 1), (16, 32, 4, 1), (16, 32, 8, 1), (16, 32, 1, 0.5),
    (16, 32, 1, 2),
)  # fmt: skip
OPTIONS = source(
    "what options cost", "2026-11-30-h200", "5d815fe 558f9f9",
    lambda row: row["option"] in {"5d815fe": ("two players",), "558f9f9": ("sound", "RAM")}.get(
        row["commit"][:7], ()), mode="options",
)  # fmt: skip
OF_OPTIONS = {
    "sound": "sound_obs=True", "RAM": 'obs_type="ram"', "objects": 'obs_type="objects"',
    "two players": "num_players=2",
}  # fmt: skip
OBJECTS = source(
    "what objects cost", "2026-12-01-h200", "9c7b173", mode="options", option="objects"
)
# Games with many objects, which were measured twice, and those where objects cost the most.
MANY = {"space_invaders": "Space Invaders", "qbert": "Q*bert", "ms_pacman": "Ms. Pac-Man"}
MOST = {"battle_zone": "Battle Zone", "krull": "Krull", "fishing_derby": "Fishing Derby"}
IMPALA = source(
    "the IMPALA ResNet's layers", "2026-11-30-h200", "6038bc2",
    lambda row: row["group"] == "all", mode="impala_blocks",
)  # fmt: skip
SIX = ("cule.train", "CleanRL", "stable-baselines3", "RLlib", "TorchRL", "rl_games")
SOURCES = (PPO, ON_CPU, ON_GPU, LARGE, OPTIONS, OBJECTS, IMPALA)
NUMBERS = "1 9 10 16 32 64"
GIVEN: dict[str, str] = {}


def on_gpu() -> Iterator[Said]:
    for case in CASES:
        rows = {
            row["system"]: row
            for row in ON_GPU.rows
            if (row["num_envs"], row["num_steps"], row["depth"], row["width"]) == case
        }
        line, numbers = "| {:,}, {}, {}, {} |", list(case)
        for name in ("cule.train", "rl_games", "TorchRL", "CleanRL"):
            line += " {:.3f}, {:.1f} |" if name in rows else " |"
            if name in rows:
                numbers += [rows[name]["seconds"], rows[name]["peak_bytes"] / 2**30]
        yield said(line, *numbers)


def on_cpu() -> Iterator[Said]:
    """Medians of all iterations, also where a case was measured twice."""
    for case in ON_CPU_CASES:
        seconds: dict[str, list[float]] = {name: [] for name in SIX}
        for row in ON_CPU.rows:
            if (row["num_envs"], row["num_steps"], row["depth"], row["width"]) == case:
                seconds[row["system"]] += row["all_seconds"]
        yield said(
            "| {}, {}, {}, {:g} |" + " {:.2f} |" * len(SIX),
            *case, *map(statistics.median, seconds.values()),
        )  # fmt: skip


def large() -> Iterator[Said]:
    small, large = (row for row in LARGE.rows if "seconds" in row)
    yield said(
        "with RGB pictures of {}x{} an iteration of cule.train takes {:.3f} s in {:.1f} GiB, and "
        "with {}x{} {:.3f} s in {:.1f} GiB",
        *(value for row in (small, large)
          for value in (*row["size"], row["seconds"], row["peak_bytes"] / 2**30)),
    )  # fmt: skip
    others = [row for row in LARGE.rows if row["system"] != "cule.train"]
    assert all("OutOfMemoryError" in row["problem"] for row in others)
    assert {row["system"] for row in others} == {"rl_games", "TorchRL", "CleanRL"}
    yield said(
        "with {} envs, {} steps and {:.0f} GiB", *(small[key] for key in ("num_envs", "num_steps")),
        small["memory"],
    )  # fmt: skip


def options() -> Iterator[Said]:
    measured = [*OPTIONS.rows, *OBJECTS.rows]
    for name, words in OF_OPTIONS.items():
        line, numbers = f"`{words}`", []
        for game in ("pong", "breakout"):
            rows = [row for row in measured if (row["option"], row["game"]) == (name, game)]
            line += " | {:.2f}, {:.0%}" if rows else " |"
            if rows:
                numbers += [statistics.mean(row["fps"] for row in rows) / 1e6, part_of(rows)]
        yield table_line(line, *numbers)
    yield said("with {:,} envs, and", OPTIONS.rows[0]["num_envs"])
    games: dict[str, list[Any]] = {}
    for row in OBJECTS.rows:
        games.setdefault(row["game"], []).append(row)
    for game, name in MANY.items():
        yield said(f"{name} {{:.0%}}", part_of(games[game]))
    once = {game: part_of(rows) for game, rows in games.items() if len(rows) == 1}
    yield said("In {} other games", len(once))
    yield said("the median is {:.0%}", statistics.median(once.values()))
    assert sorted(once, key=once.__getitem__)[: len(MOST)] == list(MOST)
    for game, name in MOST.items():
        yield said(f"{name} has {{:.0%}}", once[game])


def part_of(rows: Sequence[Any]) -> float:
    """The part of the speed of images that objects alone have, on average."""
    return statistics.mean(row["part_of_images"] for row in rows)


def impala() -> Iterator[Said]:
    for row in IMPALA.rows:
        layers = {"torch": "libraries", "fused": "kernels"}[row["way"]]
        yield table_line(
            f"{{:,}} | {layers} | {{:.2f}}, {{:.0f}} | {{:.2f}}, {{:.0f}}",
            row["batch"],
            *(row[f"{part}_{unit}"] for part in ("forward", "both") for unit in ("ms", "tflops")),
        )


def figures() -> Iterator[Said]:
    for row in PPO.rows:
        yield table_line(
            f"{row['system']} | {{:.2f}} | {{:,.0f}}", row["seconds"], row["peak_bytes"] / 2**20
        )
    yield from on_cpu()
    yield from on_gpu()
    yield from large()
    yield from options()
    yield from impala()
