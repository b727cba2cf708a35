"""A sweep as text: a live table, and the results' means over seeds."""

from __future__ import annotations

import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from statistics import mean, stdev
from typing import Any, TextIO

from cule.scope.table import columns
from cule.train.sweep.jobs import JobState

HEAD = ("training", "game", "seed", "device", "state", "frames", "FPS", "score", "time left")
# In a file the whole table is written once in so many seconds.
EVERY = 300.0
# Seconds; of a time left that is longer nothing is known.
LONGEST = 1e9
UP, CLEAR = "\x1b[{}F", "\x1b[J"


def _number(value: float | None, text: str = ",.0f") -> str:
    return "." if value is None else f"{value:{text}}"


def _cells(state: JobState) -> list[str]:
    job, left = state.job, state.seconds_left
    again = f", start {state.starts}" if state.starts > 1 and state.state == "running" else ""
    does = "evaluating" if state.evaluating else state.state
    return [
        job.name, job.option("game") or ".", job.option("seed") or ".",
        state.place or state.device or ".",
        does + again, f"{state.frames:,}", _number(state.fps), _number(state.score, ",.1f"),
        "." if left is None or left > LONGEST else str(timedelta(seconds=round(left))),
    ]  # fmt: skip


def table(states: Iterable[JobState]) -> str:
    """A line for each job."""
    return columns(HEAD, map(_cells, states), left=5)


def what_is_left(states: Sequence[JobState]) -> str:
    """How many jobs are in each state."""
    counts = Counter(state.state for state in states)
    return ", ".join(f"{count} {state}" for state, count in counts.items())


class Live:
    """Shows a sweep: on a terminal a table in place, elsewhere a line for each change.

    Args:
        file: where it is shown.
    """

    def __init__(self, file: TextIO):
        self._file, self._terminal = file, file.isatty()
        self._lines = 0
        self._noted: Counter[str] = Counter()
        self._known: dict[str, tuple[str, int]] = {}
        self._shown_at = time.monotonic()

    def __call__(self, states: Sequence[JobState]) -> None:
        """Shows these states."""
        if self._terminal:
            self._redraw(states)
        else:
            self._append(states)
        self._file.flush()

    def _new_notes(self, states: Sequence[JobState]) -> str:
        """What has happened to trainings since the last call, a line for each."""
        lines = []
        for state in states:
            name, told = state.job.name, self._noted[state.job.name]
            lines += [f"{name}: {note}\n" for note in state.notes[told:]]
            self._noted[name] = len(state.notes)
        return "".join(lines)

    def _redraw(self, states: Sequence[JobState]) -> None:
        size = shutil.get_terminal_size()
        # Head, the line below the table and the cursor's line need room, too.
        shown, room = list(states), max(1, size.lines - 3)
        if len(shown) > room:
            shown = [state for state in states if state.state in ("running", "failed")][-room:]
        lines = [*table(shown).split("\n"), what_is_left(states)]
        back = UP.format(self._lines) if self._lines else ""
        text = "".join(f"{line[: size.columns - 1]}\n" for line in lines)
        self._file.write(f"{back}{CLEAR}{self._new_notes(states)}{text}")
        self._lines = len(lines)

    def _append(self, states: Sequence[JobState]) -> None:
        self._file.write(self._new_notes(states))
        for state in states:
            now = state.state, state.starts
            if now != self._known.get(state.job.name) and now != ("waiting", 0):
                cells = zip(HEAD[3:], _cells(state)[3:], strict=True)
                shown = ", ".join(
                    f"{name} {cell}" for name, cell in cells if cell not in (".", "0")
                )
                self._file.write(f"{state.job.name}: {shown}\n")
            self._known[state.job.name] = now
        if time.monotonic() - self._shown_at >= EVERY:
            self._shown_at = time.monotonic()
            running = [state for state in states if state.state == "running"]
            self._file.write(f"{table(running)}\n{what_is_left(states)}\n")


def summary(rows: Sequence[Mapping[str, Any]], settings: Sequence[str] | None = None) -> str:
    """Means over the seeds, by algorithm and game; empty without a result.

    Args:
        rows: the results.
        settings: the name of each row's settings, which then have a column and means of their own;
            None: all have the same.
    """
    by_game: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row, name in zip(rows, settings or [""] * len(rows), strict=True):
        if "error" not in row:
            by_game[row["algorithm"], row["game"], name].append(row)
    lines = []
    for (algorithm, game, name), some in by_game.items():
        scores = [row["score"] for row in some if row["score"] is not None]
        lines.append([
            algorithm, game, str(len(some)), f"{mean(row['frames'] for row in some):,.0f}",
            f"{mean(row['fps'] for row in some):,.0f}",
            f"{mean(row['seconds'] for row in some):,.1f}",
            _number(mean(scores) if scores else None, ",.2f"),
            _number(stdev(scores) if len(scores) > 1 else None, ",.2f"),
            *([name] if settings else []),
        ])  # fmt: skip
    head = ["algorithm", "game", "seeds", "frames", "FPS", "seconds", "score", "deviation"]
    head += ["settings of"] if settings else []
    return columns(head, lines, left=2) if lines else ""
