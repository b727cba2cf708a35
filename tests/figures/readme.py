"""The figures of README.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np

from tests.figures import atari57, pong, ppo
from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, Row, Source, source

PAGE = ROOT / "README.md"
CPU = source("cule, ale-py and EnvPool, 2 threads", "2026-11-24", "947ed40", num_envs=32)
ONE_THREAD = source("104 games, one thread", "2026-12-01", "9959854", num_envs=16)
ON_INTEL = source("104 games, one thread, earlier", "2026-11-30", "bc777a7", num_envs=16)
GPU = source("million FPS, memory", "2026-11-24-h200", "6fcdc88", mode="end-to-end")
SOURCES = (
    CPU,
    ONE_THREAD,
    ON_INTEL,
    GPU,
    atari57.NOOPS,
    atari57.SEEDS,
    atari57.MACHADO,
    pong.SHORTEST,
    pong.SEEDS,
    pong.LONGER,
    pong.NEWEST,
    pong.SHORTER,
    ppo.UNTRAINED,
    ppo.ON_CPU,
)
NUMBERS = "0 1 2 4 16 +17 18 32 57 64 104 500 2019 2600 4,096 6507 65,536"
GIVEN = {
    "takes two to three minutes, one of them for compiling": "by hand: it depends on the network",
    "It downloads 0.3 GB, and `.venv` grows to 1.2 GB, or 3 GB after `make test`": "by hand",
    "`make test` takes twenty minutes": "by hand: 14 minutes and the set-up",
    "one to two minutes for each architecture": "by hand",
    "game was measured twice for 0.3": "no measurement",
    "| quarter | median": "no measurement",
    "three quarters | fastest": "no measurement",
    "With half as many": "no measurement",
    "200 million frames each": "a setting",
    "the 128 bytes of RAM": "a console's",
    "less than 90%": "a bound of ours",
}
GAMES = ("pong", "breakout", "ms_pacman", "riverraid", "up_n_down", "space_invaders", "freeway")


def runs(rows: Source) -> list[dict[tuple[str, str], float]]:
    """The FPS by game and system of each run of a benchmark."""
    found: list[dict[tuple[str, str], float]] = []
    for row in rows.rows:
        case = row["game"], row["system"]
        if not found or case in found[-1]:
            found.append({})
        found[-1][case] = row["fps"]
    return found


def ratios(run: dict[tuple[str, str], float], system: str = "ale-py") -> dict[str, float]:
    """How many times as fast as another system cule is, by game."""
    return {game: fps / run[game, system] for (game, own), fps in run.items() if own == "cule"}


def on_cpu() -> Iterator[Said]:
    before, again, last = runs(CPU)
    for game in GAMES:
        ale, envpool = (last[game, system] for system in ("ale-py", "EnvPool"))
        yield table_line(
            f"`{game}` | {{:,.0f}} | {{:,.0f}} | {{:.2f}} | {{:,.0f}} | {{:.2f}}",
            last[game, "cule"], ale, ratios(last)[game], envpool, ratios(last, "EnvPool")[game],
        )  # fmt: skip
    yield said(
        "The median ratio to ale-py is {:.2f}; in two runs before it {:.2f} and {:.2f}.",
        *(statistics.median(ratios(run).values()) for run in (last, before, again)),
    )
    (all_games,) = runs(ONE_THREAD)
    slowest, ratio = min(ratios(all_games).items(), key=lambda pair: pair[1])
    assert len(ratios(all_games)) == 104
    yield said(
        "with one thread and 16 envs, it is {:.2f}, and {:.2f} in the slowest ({})",
        statistics.median(ratios(all_games).values()), ratio, slowest.capitalize(),
    )  # fmt: skip
    (earlier,) = runs(ON_INTEL)
    yield said(
        "an earlier version had {:.2f} and {:.2f}",
        statistics.median(ratios(earlier).values()), min(ratios(earlier).values()),
    )  # fmt: skip


def option(row: Row, name: str) -> str:
    """What the command of a row says for an option."""
    words = row["command"].split()
    return words[words.index(name) + 1]


def alike(row: Row) -> bool:
    """Whether many envs of a measurement did the same as others."""
    return row["distinct_share"] < 0.9


def on_gpu() -> Iterator[Said]:
    few, many = GPU.where(num_envs=4096), GPU.where(num_envs=65536)
    millions = [[row["fps"] / 1e6 for row in rows] for rows in (few, many)]
    medians = [statistics.median(fps) for fps in millions]
    yield said(
        "runs at {:.1f} million frames a second with 4,096 envs and {:.1f} million with 65,536",
        *medians,
    )
    seconds = {option(row, "--seconds") for row in GPU.rows}
    rounds = {option(row, "--rounds") for row in GPU.rows}
    yield said("Each game was measured twice for {} s, after a warm-up", *seconds)
    yield said(
        "--num-envs 4096 --device cuda --seconds {} --rounds {} --warmup-steps {}`",
        *seconds, *rounds, *{option(row, "--warmup-steps") for row in few},
    )  # fmt: skip
    yield said(
        "of {} steps or more with 4,096 envs, and of {} or more with 65,536",
        *(min(row["warmup_steps"] for row in rows) for rows in (few, many)),
    )
    for envs, fps in zip((4096, 65536), millions, strict=True):
        yield table_line(
            f"{envs:,} envs ({{}} games) | {{:.2f}} | {{:.2f}} | {{:.2f}} | {{:.2f}} | {{:.2f}}",
            len(fps), *np.percentile(fps, (0, 25, 50, 75, 100)),
        )  # fmt: skip
    worst = [min(rows, key=lambda row: row["distinct_share"]) for rows in (few, many)]
    assert [row["game"] for row in worst] == ["freeway", "name_this_game"]
    yield said(
        "was different in {} games with 4,096 envs ({:.0%} in the worst, Freeway), and in {} with "
        "65,536 ({:.2%} in Name This Game)",
        sum(map(alike, few)), worst[0]["distinct_share"],
        sum(map(alike, many)), worst[1]["distinct_share"],
    )  # fmt: skip
    yield said(
        "Without those games the medians are {:.2f} and {:.2f} million FPS.",
        *(statistics.median(row["fps"] / 1e6 for row in rows if not alike(row))
          for rows in (few, many)),
    )  # fmt: skip
    sizes = {row["game"]: row["bytes_per_env"] / 1e3 for row in few}
    yield said(
        "An env of Pong takes {:.0f} KB of the GPU's memory, as in {} of the games, and one of the "
        "largest games {:.0f} KB.",
        min(sizes.values()), sum(size == sizes["pong"] for size in sizes.values()),
        max(sizes.values()),
    )  # fmt: skip
    assert sizes["pong"] == min(sizes.values())


def of_trainings() -> Iterator[Said]:
    yield said(
        "takes {:.2f} GPU-hours of training on H100s, {:.0f} minutes on four with evaluations and "
        "videos. The median of the human-normalised scores is {:.0%}, with one setting and one "
        "seed; {} more agents of ten of the games, with other seeds, make it {:.0%}. With sticky "
        "actions and all 18 actions it is {:.0%}",
        atari57.hours(atari57.NOOPS), atari57.minutes(atari57.NOOPS),
        atari57.aggregates(atari57.NOOPS)["median"], len(atari57.SEEDS.rows),
        atari57.median_of_means(), atari57.aggregates(atari57.MACHADO)["median"],
    )  # fmt: skip
    assert pong.SHORTEST.values("seed") == pong.SHORTER.values("seed") == [0, 1, 2]
    yield said(
        "scored {:.1f}, {:.1f} and {:.1f} on ale-py, seeds 0, 1 and 2, after {:.1f}, {:.1f} and "
        "{:.1f} seconds of training on one H200 and {:.1f} million frames. Starting took {:.0f} to "
        "{:.0f} seconds more, and evaluating the agent {:.0f} to {:.0f};",
        *pong.SHORTEST.values("score"), *pong.SHORTEST.values("seconds"),
        pong.SHORTEST.rows[0]["frames"] / 1e6,
        *(bound(pong.SHORTEST.values(key)) for key in ("startup_seconds", "evaluation_seconds")
          for bound in (min, max)),
    )  # fmt: skip
    yield pong.of_other_seeds()
    yield pong.of_longer()
    yield pong.of_newest()
    yield said("the three scored {:.1f}, {:.1f} and {:.1f}", *pong.SHORTER.values("score"))


def figures() -> Iterator[Said]:
    yield from on_cpu()
    yield from on_gpu()
    yield from of_trainings()
    yield from ppo.on_cpu()
