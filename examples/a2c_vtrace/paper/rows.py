"""Rows of results: which case a row is of, and where it is from."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cule.disk.json_lines import read_lines
from cule.errors import InvalidValue
from examples.a2c_vtrace.paper.cases import PLAIN, Case, Values


@dataclass(frozen=True)
class Row:
    """A row and the file it is in.

    Attributes:
        values: the row.
        file: the file's name.
        facts: what it is known by (`facts`).
    """

    values: Values
    file: str
    facts: Values

    def number(self, name: str) -> float | None:
        """A number of the row; None if it has none of this name."""
        value = self.values.get(name)
        return value if isinstance(value, (int, float)) else None

    @property
    def source(self) -> str:
        """Where it is from, and of what."""
        device = self.values.get("device_name")
        return f"{self.file}, {str(self.values.get('commit'))[:7]}, {device}"


def engine_of(row: Values) -> str:
    """One of cases.ENGINES, or another system."""
    if row.get("system") != "cule":
        return str(row.get("system"))
    on_cpu = row.get("cuda") is None or row.get("env_device") == "cpu"
    groups = row.get("mode") != "training" and row.get("env_groups")
    return "cule-cpu" if on_cpu or groups else "cule"


def facts(row: Values) -> dict[str, Any]:
    """What a row's case is known by. Rows of old programs lack settings, which were PLAIN then.

    `overlap` was a lag of 1, whatever the row's `lag` is.
    """
    known = {**PLAIN, **row} if row.get("mode") == "training" else dict(row)
    if known.pop("overlap", False):
        known["lag"] = 1
    if "n_steps" in row:
        known["num_steps"] = row["n_steps"]
    if row.get("cuda") is None:
        # A CPU has neither, whatever is asked for.
        known |= {name: PLAIN[name] for name in ("bf16", "cuda_graphs")}
    return known | {"engine": engine_of(row)}


def read(paths: Iterable[Path]) -> list[Row]:
    """The rows of files that measured a speed. Damaged ones are left out with a warning.

    Raises:
        OSError: a file cannot be read.
        ValueError: it has lines, but no row.
    """
    rows = []
    for path in paths:
        lines = read_lines(path, lambda values: {**values, "mode": values["mode"]})
        if lines.damaged and not lines.good:
            raise InvalidValue(f"expected a file of JSON lines, got {path} ({lines.damaged[0][1]})")
        rows += [Row(row, path.name, facts(row)) for row in lines.usable("row of results")]
    # A failed case has no speed. Trainings that share a GPU say nothing of what one takes.
    return [
        row
        for row in rows
        if row.number("fps") is not None and row.values.get("trainings_on_gpu", 1) == 1
    ]


def matches(row: Row, wanted: Values) -> bool:
    """Whether a row has all that is wanted. What it lacks counts as None."""
    return all(row.facts.get(name) == value for name, value in wanted.items())


def left_over(cases: Iterable[Case], rows: Sequence[Row]) -> list[Case]:
    """The cases of which a row is missing."""
    return [
        case
        for case in cases
        if not all(any(matches(row, values) for row in rows) for values in case.wanted)
    ]


class Found:
    """The rows of some cases.

    Args:
        rows: where they are looked for.
        commits: how the commits of rows that count begin; empty: the newest that has one of the
            cases; "all": any.
        cases: what may be shown.
    """

    def __init__(self, rows: Sequence[Row], commits: Sequence[str], cases: Sequence[Case]):
        wanted = [values for case in cases for values in case.wanted]
        self.rows = sorted(
            (row for row in rows if any(matches(row, values) for values in wanted)),
            key=lambda row: str(row.values.get("date")),
        )
        if not commits and self.rows:
            commits = (str(self.rows[-1].values.get("commit")),)
        if "all" not in commits:
            self.rows = [
                row for row in self.rows if str(row.values.get("commit")).startswith(tuple(commits))
            ]
        self._letters: dict[str, str] = {}

    def of(self, wanted: Values) -> Row | None:
        """The newest row that has all that is wanted."""
        return next((row for row in reversed(self.rows) if matches(row, wanted)), None)

    def every(self, values: Iterable[Values]) -> list[Row]:
        """The newest row of each of some wishes, without those that have none."""
        return [row for wanted in values if (row := self.of(wanted)) is not None]

    def cell(self, text: str, rows: Iterable[Row]) -> str:
        """A text made of rows, with a letter for each place that they are from."""
        sources = dict.fromkeys(row.source for row in rows)
        for source in sources:
            self._letters.setdefault(source, _letter(len(self._letters)))
        marks = ",".join(self._letters[source] for source in sources)
        return f"{text} [{marks}]" if marks else text

    def sources(self) -> str:
        """Which letter of `cell` is which file, commit and device."""
        return "\n".join(f"- [{letter}] {source}" for source, letter in self._letters.items())


def _letter(number: int) -> str:
    more, last = divmod(number, 26)
    return (_letter(more - 1) if more else "") + string.ascii_lowercase[last]
