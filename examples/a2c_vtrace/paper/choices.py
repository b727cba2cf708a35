"""What of the paper is measured or shown, and the cases of each table and figure of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from examples.a2c_vtrace.paper.cases import (
    COLUMNS,
    ENGINES,
    GOALS,
    LOADS,
    PROGRAMS,
    Case,
    Column,
    bench_cases,
    column_cases,
    speed_cases,
    step_cases,
)


@dataclass(frozen=True)
class Choice:
    """What of a report is measured or shown.

    Attributes:
        engines: some of cases.ENGINES.
        games: ROM ids.
        num_envs: numbers of envs.
        loads: some of cases.LOADS.
        columns: of table 3 and figure 5.
        seeds: of their trainings.
        gpus: numbers of GPUs of a column for several.
    """

    engines: Sequence[str] = ENGINES
    games: Sequence[str] = ()
    num_envs: Sequence[int] = ()
    loads: Sequence[str] = LOADS
    columns: Sequence[Column] = COLUMNS
    seeds: Sequence[int] = (0, 1, 2)
    gpus: Sequence[int] = (2, 4, 8)


def table1_cases(choice: Choice) -> list[Case]:
    """Emulation and inference only in all games, A2C in one batch and V-trace in four."""
    emulated = figure2_cases(choice)
    trained = [game for game in GOALS if game in choice.games]
    columns = [column for column in choice.columns if column.name in ("vtrace20", "gpus")]
    some = column_cases(columns, trained, choice.seeds, choice.gpus)
    return emulated + (some if "training" in choice.loads else [])


def figure2_cases(choice: Choice) -> list[Case]:
    """Emulation and inference only, for each number of envs."""
    return [
        case
        for load in ("end-to-end", "with-policy")
        if load in choice.loads
        for case in bench_cases(choice.engines, load, choice.games, choice.num_envs)
    ]


def figure4_cases(choice: Choice) -> list[Case]:
    """The three loads, for each number of envs; A2C trains."""
    cases = figure2_cases(choice)
    if "training" in choice.loads:
        for game in choice.games:
            cases += speed_cases(choice.engines, ("A2C",), game, choice.num_envs)
    return cases


def table3_cases(choice: Choice) -> list[Case]:
    """A training for each game, column and seed."""
    return column_cases(choice.columns, choice.games, choice.seeds, choice.gpus)


def table4_cases(choice: Choice) -> list[Case]:
    """A training for each algorithm, engine and number of envs."""
    return [
        case
        for game in choice.games
        for case in speed_cases(choice.engines, tuple(PROGRAMS), game, choice.num_envs)
    ]


def figure3_cases(choice: Choice) -> list[Case]:
    """FPS step by step."""
    return [
        case
        for num_envs in choice.num_envs
        for case in step_cases(choice.engines, choice.games, num_envs)
    ]
