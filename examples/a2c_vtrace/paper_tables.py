"""Tables 3 and 4 of the paper as Markdown, from rows of results."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from examples.a2c_vtrace.paper_settings import GOALS, PLAIN, PROGRAMS, SETTINGS, VTRACE20

Row = dict[str, Any]


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table; all columns except the first hold numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def setting_of(row: Row) -> str:
    """The name in SETTINGS of a training's settings, or what they are if they have no name."""
    if "n_steps" in row:  # as rows before cule.train have it
        row = {**row, "num_steps": row["n_steps"]}
    names = (*VTRACE20, *PLAIN)
    asked = {name: row.get(name, PLAIN.get(name)) for name in names} | {"emulator": row["system"]}
    for name, options in SETTINGS.items():
        if asked == PLAIN | options:
            return name
    others = (f"{name} {value}" for name, value in asked.items() if value != PLAIN.get(name))
    return ", ".join(others).replace("_", " ")


def table_of(row: Row) -> int | None:
    """The table of a training: 3 if it had a score to reach, else 4 if that has its algorithm."""
    if row.get("stop_at_score") is not None:
        return 3
    return 4 if row["algorithm"] in PROGRAMS else None


def alone(row: Row) -> bool:
    """Whether a training had its GPU to itself."""
    return row.get("trainings_on_gpu", 1) == 1


def table3(rows: Sequence[Row]) -> str:
    """Seconds and million frames to each game's score, as means over seeds, and how many reached
    it.

    If a seed has several rows, the newest counts; rows that had the GPU to themselves come first.
    If a seed has none of these, the mean of the seconds is shown as an upper bound, as sharing a
    GPU makes a training slower.
    """
    cells: dict[str, dict[str, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in sorted(rows, key=lambda row: (alone(row), row["date"])):
        cells[setting_of(row)][row["game"]][row["seed"]] = row

    def cell(found: Sequence[Row]) -> str:
        good = [row for row in found if row["seconds_to_score"] is not None]
        if not good:
            return f"0 of {len(found)}" if found else ""
        seconds = statistics.mean(row["seconds_to_score"] for row in good)
        frames = statistics.mean(row["frames_to_score"] for row in good) / 1e6
        bound = "" if all(map(alone, good)) else "<"
        return f"{bound}{seconds:.1f} s, {frames:.1f} M ({len(good)} of {len(found)})"

    games = [game for game in GOALS if any(game in found for found in cells.values())]
    order = sorted(cells, key=lambda name: [*SETTINGS, name].index(name))
    lines = [[name, *(cell([*cells[name][game].values()]) for game in games)] for name in order]
    return markdown(["", *(f"{game} {GOALS[game]}" for game in games)], lines)


def table4(rows: Sequence[Row]) -> str:
    """FPS of each algorithm, number of envs and emulator (the fastest row), and nvidia-smi's
    figure."""
    found = {
        (row["algorithm"], row["num_envs"], row["system"]): row
        for row in sorted(rows, key=lambda row: row["fps"])
    }

    def cells(row: Row | None) -> list[str]:
        if row is None:
            return ["", ""]
        busy = row.get("gpu_utilization_mean")  # newer rows lack it: cule.scope says more
        return [f"{row['fps']:,.0f}", "" if busy is None else f"{busy:.0f}%"]

    pairs = sorted(
        {key[:2] for key in found}, key=lambda pair: (list(PROGRAMS).index(pair[0]), pair[1])
    )
    lines = [
        [algorithm, f"{num_envs:,}", *cells(found.get((algorithm, num_envs, "cule"))),
         *cells(found.get((algorithm, num_envs, "ale-py")))]
        for algorithm, num_envs in pairs
    ]  # fmt: skip
    return markdown(["", "envs", "cule FPS", "nvidia-smi", "ale-py FPS", "nvidia-smi"], lines)
