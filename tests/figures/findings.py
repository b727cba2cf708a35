"""The figures of docs/findings.md."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator

from benchmarks.studies import frameworks, tables
from tests.figures.pages import Said, said
from tests.figures.results import ROOT, Source, source

PAGE = ROOT / "docs" / "findings.md"
DAY = "2026-11-29"
FRAMEWORKS = source(
    "PPO by several libraries", DAY, "4f556a3 2bd8d9b",
    lambda row: row["commit"].startswith("4f556a3") or row["case"] == "RLlib, compiled",
    mode="study-frameworks",
)  # fmt: skip
ALGORITHMS = source("algorithms", DAY, "2bd8d9b", mode="study-algorithms")
SIMULATORS = source("simulators", DAY, "4f556a3", mode="study-simulators")
SCALE_UP = source("self-play in many processes", DAY, "3497748", mode="study-scale-up")
SOURCES = (FRAMEWORKS, ALGORITHMS, SIMULATORS, SCALE_UP)


def shown(study: str, rows: Source) -> str:
    """The tables of a study; its libraries in their order."""
    order = list(frameworks.CASES)
    found = sorted(rows.rows, key=lambda row: order.index(row["case"]) if rows is FRAMEWORKS else 0)
    return f"\n{tables.tables(study, found)}\n"


WRITTEN = {
    rows.title: functools.partial(shown, study, rows)
    for study, rows in (
        ("frameworks", FRAMEWORKS), ("algorithms", ALGORITHMS), ("simulators", SIMULATORS),
        ("scale-up", SCALE_UP),
    )
}  # fmt: skip
PYTHON, BACKEND = "python", "backend"
# The paper's task has a simulation of its own.
PAPERS_TASK = "Walker2d-v5"
NUMBERS = "2021"
GIVEN: dict[str, str] = {}


def by_case(rows: Source) -> dict[str, tables.Row]:
    """The middle try of each case."""
    return {row["case"]: row for row in tables.middle_tries(rows.rows)}


def of_libraries() -> Iterator[Said]:
    rows = by_case(FRAMEWORKS)
    eager, compiled = rows["rl_games, eager"], rows["rl_games, compiled"]
    faster = [
        tables.unrecorded(rows[f"{name}, eager"]) / tables.unrecorded(rows[f"{name}, compiled"])
        for name in ("cule.train", "rl_games")
    ]
    yield said(
        "compiling makes an iteration of cule.train {:.2f} times as fast, of rl_games {:.2f} times",
        *faster,
    )
    calls = [tables.transitions(row, PYTHON, BACKEND, "inference") for row in (compiled, eager)]
    yield said(
        "rl_games goes from Python to the backend {:.0f} times in inference instead of {:.0f}, and "
        "Python's share falls from {:.1%} to {:.1%}",
        *calls, *(tables.share(row, level=PYTHON) for row in (eager, compiled)),
    )  # fmt: skip
    assert calls[0] < calls[1]
    all_calls = {
        name: tables.transitions(row, PYTHON, BACKEND)
        for name, row in rows.items() if row["way"] == "eager"
    }  # fmt: skip
    assert max(all_calls, key=all_calls.__getitem__) == "cule.train, eager"
    yield said(
        "up to {:.1f} times as many transitions for the same iteration. cule.train has most, "
        "{:,.0f} of them in inference",
        max(all_calls.values()) / min(all_calls.values()),
        tables.transitions(rows["cule.train, eager"], PYTHON, BACKEND, "inference"),
    )
    yield said(
        "RLlib goes from Python to the backend {:,.0f} times in it, rl_games {:,.0f} times",
        *(tables.transitions(rows[f"{name}, eager"], PYTHON, BACKEND, "backpropagation")
          for name in ("RLlib", "rl_games")),
    )  # fmt: skip
    same = [rows[f"RLlib, {way}"]["transitions"] for way in ("eager", "compiled")]
    assert same[0] == same[1], "the options for torch.compile changed something"


def of_algorithms() -> Iterator[Said]:
    rows = [row for row in by_case(ALGORITHMS).values() if row["task"] == PAPERS_TASK]
    simulation = {row["algorithm"]: tables.share(row, "simulation") for row in rows}
    assert list(simulation) == ["A2C", "PPO", "SAC", "TD3", "DDPG"]
    on, off = [simulation["A2C"], simulation["PPO"]], max(list(simulation.values())[2:])
    yield said(
        "Python alone is {:.0%} of A2C on Walker2d", tables.share(rows[0], level=PYTHON)
    )  # fmt: skip
    yield said(
        "A2C and PPO {:.1%} and {:.1%}, SAC, TD3 and DDPG at most {:.1%}, which is {:.0f} times "
        "less",
        *on, off, min(on) / off,
    )  # fmt: skip


def of_simulators() -> Iterator[Said]:
    rows = by_case(SIMULATORS)
    yield said(
        "it is {:.1%} with cule, {:.1%} with ale-py, and {:.1%} with MuJoCo",
        *(tables.share(rows[name], "simulation") for name in ("cule", "ale-py", "MuJoCo")),
    )  # fmt: skip


def figures() -> Iterator[Said]:
    yield from of_libraries()
    yield from of_algorithms()
    yield from of_simulators()
    row = by_case(SCALE_UP)["4 workers"]
    waits = [
        one["waiting"] / one["seconds"] for one in row["processes"] if "worker" in one["process"]
    ]
    assert len(waits) == 4
    yield said("of four workers each waits about {:.0%} of the time", statistics.median(waits))
