"""The figures of the README of DQN."""

from __future__ import annotations

from collections.abc import Iterator

from examples.dqn.dqn import Args
from tests.figures import pong
from tests.figures.examples import of_presets, thousands
from tests.figures.pages import Said, said
from tests.figures.results import ROOT, source

PAGE = ROOT / "examples" / "dqn" / "README.md"
SPEED = source("frames a second, DQN", "2026-11-24-h100", "72a7e5b", algorithm="DQN")
SOURCES = (pong.DQN, SPEED)
NUMBERS = "256 512 2015 2016"
GIVEN = {
    "`--double` [double DQN](https://arxiv.org/abs/1509.06461) (van": "no measurement",
}


def figures() -> Iterator[Said]:
    yield from of_presets(Args())
    memory = 84 * 84 * 1_000_000 / 1e9
    yield said("a million transitions take {:.0f} GB", memory)
    yield said("the replay memory, {:.0f} GB", memory)
    frames = [row["frames_to_score"] / 1e6 for row in pong.DQN.rows]
    yield said(
        "Pong reached {} points after {:.0f}, {:.0f} and {:.0f} million frames",
        pong.TO_18["stop_at_score"], *sorted(frames),
    )  # fmt: skip
    seconds = sorted(pong.DQN.values("seconds_to_score"))
    yield said("took {:.0f}, {:.0f} and {:.0f} seconds", *seconds)
    yield said(
        "made {:.0f} thousand frames a second, and {:.0f} with `--lag 1`",
        thousands(SPEED, lag=0), thousands(SPEED, lag=1),
    )  # fmt: skip
    yield said("ended after {:.0f} million frames", SPEED.rows[0]["frames"] / 1e6)
