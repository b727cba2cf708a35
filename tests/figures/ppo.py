"""The figures of the README of PPO."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from examples.ppo.ppo import Args
from tests.figures import pong
from tests.figures.examples import of_presets, thousands
from tests.figures.pages import Said, said
from tests.figures.results import ROOT, source

PAGE = ROOT / "examples" / "ppo" / "README.md"
SPEED = source("frames a second, PPO", "2026-11-24-h100", "72a7e5b", algorithm="PPO")
UNTRAINED = source("Kaboom!, untrained", "2026-11-27", "a78cb6d", game="kaboom")
ON_CPU = source("Kaboom! on a CPU", "2026-11-27", "0534e5d", game="kaboom")
SOURCES = (pong.PPO, SPEED, UNTRAINED, ON_CPU)
NUMBERS = "0 1 2 32 100 1,024 2017 4,096"
GIVEN: dict[str, str] = {}


def on_cpu() -> Iterator[Said]:
    """What `make train` comes to, with three seeds that chose nothing."""
    assert UNTRAINED.values("seed") == ON_CPU.values("seed") == [0, 1, 2]
    (untrained,), (frames,) = set(UNTRAINED.values("score")), set(ON_CPU.values("frames"))
    yield said(
        "An untrained agent scores {:.1f} points on ale-py. After {:.0f} thousand frames it scores "
        "{:.1f}, {:.1f} and {:.1f} (seeds 0, 1 and 2).",
        untrained, frames / 1e3, *ON_CPU.values("score"),
    )  # fmt: skip
    seconds = ON_CPU.values("cpu_seconds")
    yield said("That took {:.0f} to {:.0f} seconds of one core", min(seconds), max(seconds))


def figures() -> Iterator[Said]:
    yield from of_presets(Args())
    assert {round(frames / 1e6) for frames in pong.PPO.values("frames_to_score")} == {6}
    yield said("Pong reaches {} points", pong.TO_18["stop_at_score"])
    yield said("after {:.0f} million frames. With", pong.PPO.rows[0]["frames_to_score"] / 1e6)
    seconds = pong.PPO.values("seconds_to_score")
    yield said("takes {:.1f} to {:.1f} seconds on one H100", min(seconds), max(seconds))
    fps = statistics.mean(pong.PPO.values("fps"))
    assert 40e6 / fps < 120
    yield said(
        "In all, {:.0f} million frames take some {}: {:.0f} thousand frames a second.",
        40, "two minutes", fps / 1e3,
    )  # fmt: skip
    yield said(
        "that made {:.0f} thousand frames a second in place of {:.0f}",
        thousands(SPEED, lag=1), thousands(SPEED, lag=0),
    )  # fmt: skip
    yield from on_cpu()
