"""Rows of benchmarks/results, chosen by what they say."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
Row = dict[str, Any]


@functools.cache
def all_rows() -> tuple[Row, ...]:
    """Every row, with the name of its file as `file`."""
    return tuple(
        {**json.loads(line), "file": path.name}
        for path in sorted(RESULTS.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    )


@dataclass(frozen=True)
class Source:
    """Rows behind some figures of a page.

    Attributes:
        title: the figures, as the page's table names them.
        rows: in the order of their files.
    """

    title: str
    rows: tuple[Row, ...]

    def where(self, test: Callable[[Row], Any] | None = None, **equal: Any) -> list[Row]:
        """Some of the rows.

        Raises:
            LookupError: there is no such row.
        """
        found = [
            row
            for row in self.rows
            if all(row.get(key) == value for key, value in equal.items())
            and (test is None or test(row))
        ]
        if not found:
            raise LookupError(f"expected rows of {self.title} with {equal}, got none")
        return found

    def one(self, **equal: Any) -> Row:
        """The only such row."""
        (row,) = self.where(**equal)
        return row

    def values(self, key: str, **equal: Any) -> list[Any]:
        """What some of the rows say under a key."""
        return [row[key] for row in self.where(**equal)]

    def line(self, page: Path) -> str:
        """The source's line in the table of a page."""

        def names(key: str) -> list[str]:
            return list(dict.fromkeys(str(row[key]) for row in self.rows))

        links = [f"[{name}]({os.path.relpath(RESULTS / name, page.parent)})" for name in
                 names("file")]  # fmt: skip
        commits = dict.fromkeys(commit[:7] for commit in names("commit"))
        cells = [self.title, *map(", ".join, (names("device_name"), links, commits))]
        return f"| {' | '.join([*cells[:-1], str(len(self.rows)), cells[-1]])} |"


def source(
    title: str, files: str | Sequence[str], commits: str, test: Callable[[Row], Any] | None = None,
    /, **equal: Any,
) -> Source:  # fmt: skip
    """The rows of some files (named without ".jsonl") and commits (separated by spaces).

    Args:
        title: see `Source`.
        files: names of files.
        commits: their first seven digits.
        test: what else a row has to be.
        equal: keys with the values that rows have to have.

    Raises:
        LookupError: there is no such row.
    """
    names = {f"{name}.jsonl" for name in ([files] if isinstance(files, str) else files)}
    rows = [row for row in all_rows() if row["file"] in names and row["commit"][:7] in commits]
    return Source(title, tuple(Source(title, tuple(rows)).where(test, **equal)))
