"""One table of several sweeps: `python -m cule.train.sweep report FOLDER FOLDER ...`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cule.disk.files import content_of
from cule.disk.forms import formed
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.scope.table import columns
from cule.train.sweep.jobs import result_in
from cule.train.sweep.sweep import JOBS
from cule.train.sweep.table import summary

HEAD = ("folder", "training", "algorithm", "game", "seed", "frames", "FPS", "seconds", "score")


@dataclass(frozen=True)
class Entry:
    """A training of a sweep.

    Attributes:
        folder: the sweep's.
        name: the training's.
        trained: what is trained, as words; two with the same words train the same.
        row: its result; None: it is not finished.
    """

    folder: Path
    name: str
    trained: tuple[str, ...]
    row: dict[str, Any] | None


def entries_of(folder: Path) -> list[Entry]:
    """The trainings of a sweep's folder.

    Raises:
        ValueError: it is no such folder.
    """
    path = folder / JOBS
    try:
        known = formed(json.loads(content_of(path)), dict[str, list[str]])
    except (OSError, *DAMAGE) as problem:
        raise InvalidValue(f"expected the folder of a sweep, got {folder}: {problem}") from problem
    return [
        Entry(folder, name, tuple(words), result_in(folder / name)) for name, words in known.items()
    ]


def _without_seed(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a training without the number of its seed."""
    before = ("", *words)
    return tuple(
        word for last, word in zip(before, words, strict=False)
        if last != "--seed" and word.partition("=")[0] != "--seed"
    )  # fmt: skip


def _cells(entry: Entry) -> list[str]:
    assert entry.row is not None, "only of what is finished"
    row, score = entry.row, entry.row["score"]
    return [
        str(entry.folder), entry.name, str(row["algorithm"]), str(row["game"]),
        str(row.get("seed", ".")), f"{row['frames']:,}", f"{row['fps']:,.0f}",
        f"{row['seconds']:,.1f}", "." if score is None else f"{score:,.2f}",
    ]  # fmt: skip


def report(folders: Sequence[Path]) -> str:
    """A line for each finished training, means over seeds, and what is twice there or missing.

    A training that is in several folders counts once, in the first of them that has its result.

    Raises:
        ValueError: a folder is no sweep's, or there is none.
    """
    if not folders:
        raise InvalidValue("expected folders of sweeps to report on, got none")
    # A folder that is named twice has nothing twice.
    distinct: dict[Path, Path] = {}
    for folder in folders:
        distinct.setdefault(folder.resolve(), folder)
    entries = [entry for folder in distinct.values() for entry in entries_of(folder)]
    first: dict[tuple[str, ...], Entry] = {}
    lines, twice = [], []
    for entry in entries:
        if entry.row is None:
            continue
        lines.append(_cells(entry))
        known = first.setdefault(entry.trained, entry)
        if known is not entry:
            assert known.row is not None
            same = "with" if known.row["score"] == entry.row["score"] else "with another than"
            twice.append(
                f"{entry.folder / entry.name} has trained what {known.folder / known.name} has, "
                f"{same} its score; the means have {known.folder / known.name} alone."
            )
    parts = [columns(HEAD, lines, left=4)] if lines else []
    done = [entry for entry in first.values() if entry.row is not None]
    # Seeds of the same settings; these have the name of the first training with them.
    named: dict[tuple[str, ...], str] = {}
    for entry in done:
        named.setdefault(_without_seed(entry.trained), str(entry.folder / entry.name))
    names = [named[_without_seed(entry.trained)] for entry in done]
    if table := summary([entry.row for entry in done if entry.row is not None], names):
        parts.append(table)
    parts += ["\n".join(twice)] if twice else []
    if left := [str(one.folder / one.name) for one in entries if one.trained not in first]:
        parts.append(f"Not finished: {', '.join(left)}.")
    return "\n\n".join(parts)
