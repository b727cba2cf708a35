"""The paper's tables and figures, each declared: its cases, how it is told, how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cule
from examples.a2c_vtrace.paper import choices, plots, tables
from examples.a2c_vtrace.paper.cases import GOALS, Case
from examples.a2c_vtrace.paper.choices import Choice
from examples.a2c_vtrace.paper.rows import Found


@dataclass(frozen=True)
class Report:
    """A table or a figure.

    Attributes:
        title: what it shows.
        games, num_envs: those of the paper, which a Choice may replace.
        seconds: how long each case is measured if nothing else is asked for.
        cases: what is measured.
        text: what rows say, as Markdown.
        draw: the same as a figure, if it is one.
    """

    title: str
    games: Sequence[str]
    num_envs: Sequence[int]
    seconds: float
    cases: Callable[[Choice], list[Case]]
    text: Callable[[Choice, Found], str]
    draw: Callable[[Choice, Found, Any], None] | None = None


FOUR = tuple(GOALS)
REPORTS = {
    "table1": Report(
        "FPS, and what they need, of emulation, inference and training", cule.ATARI_57, (4096,),
        1.0, choices.table1_cases, tables.table1,
    ),
    "table3": Report(
        "Training with different batches: FPS, updates, time and frames to a test score", FOUR, (),
        900.0, choices.table3_cases, tables.table3,
    ),
    "table4": Report(
        "FPS of three algorithms with three engines", ("pong",), (256, 1024), 8.0,
        choices.table4_cases, tables.table4,
    ),
    "figure2": Report(
        "FPS, and FPS of an env, in all games: minimum, quartiles, maximum", cule.ATARI_57,
        (32, 128, 512, 4096), 1.0, choices.figure2_cases, tables.figure2, plots.figure2,
    ),
    "figure3": Report(
        "FPS step by step after all envs began alike, and how many reset", FOUR, (512,), 0.0,
        choices.figure3_cases, tables.figure3, plots.figure3,
    ),
    "figure4": Report(
        "FPS of emulation, inference and training with three engines", ("assault",),
        (128, 512, 1024, 4096), 4.0, choices.figure4_cases, tables.figure4, plots.figure4,
    ),
    "figure5": Report(
        "Test score over time, of table 3's trainings", FOUR, (), 900.0, choices.table3_cases,
        tables.figure5, plots.figure5,
    ),
}  # fmt: skip
