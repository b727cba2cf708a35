"""The figures of the README of Rainbow and BTR: settings, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from examples.rainbow import btr, rainbow
from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT

PAGE = ROOT / "examples" / "rainbow" / "README.md"
SOURCES = ()
NUMBERS = "0 1 6 16 32 64 1988 2016 2017 2018 2020 2024"
GIVEN = {
    "[double Q-learning](https://arxiv.org/abs/1509.06461) (van": "no measurement",
    "after half of the training": "a setting",
}
NAMES = (
    "num_envs", "updates_at_once", "minibatch_size", "memory", "first_update", "target_every",
    "learning_rate", "adam_epsilon", "gamma", "alpha", "acting_taus", "epsilon_frames",
    "noise_alone_from", "sticky", "total_frames",
)  # fmt: skip


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.12f}".rstrip("0") if value else "0.0"


def figures() -> Iterator[Said]:
    both = [program.Args().on(torch.device("cuda")) for program in (rainbow, btr)]
    for name in NAMES:
        cells = [_number(getattr(args, name)) for args in both]
        yield table_line(f"`--{name.replace('_', '-')}` | {{}} | {{}}", *cells)
    args = both[0]
    yield said("an update of {} transitions after each fourth step", args.minibatch_size)
    assert args.updates_at_once * 4 == args.num_envs
    # Frames of the paper: four in a step, and four steps for an update.
    yield said(
        "the paper's {:,} and {:,} frames are {:,} transitions before the first update, and {:,} "
        "updates between two copies",
        args.first_update * 4, args.target_every * 16, args.first_update, args.target_every,
    )  # fmt: skip
    assert both[1].noise_alone_from * 2 == both[1].total_frames
    assert both[1].epsilon_frames < both[1].noise_alone_from
