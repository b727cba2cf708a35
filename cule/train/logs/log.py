"""The log of a run: a JSONL file, a logger, a progress bar. Only process 0 writes it."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cule.disk.files import append_line, check_appendable, replacing
from cule.disk.forms import are_numbers, is_score
from cule.disk.json_lines import read_lines
from cule.errors import InvalidType, InvalidValue
from cule.train.envs.emulator import FRAMESKIP
from cule.train.logs.loggers import Logger, make_logger
from cule.train.logs.progress import Progress
from cule.train.settings import Args

LOG, RESULT = "log.jsonl", "result.jsonl"
# The numbers that the progress bar shows after the frames per second. The mean score of unfinished
# episodes (score_so_far) is shown only until an episode has ended.
SHOWN = ("ups", "score", "score_so_far", "test_score")
# The keys that every line of a kind has.
NEEDED = {
    "training": {"frames", "seconds", "score"},
    "evaluation": {"frames", "seconds", "test_score", "test_deviation"},
}


def parse_line(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a log.

    Raises:
        AttributeError, LookupError, TypeError, ValueError: it is not one.
    """
    needed = NEEDED[line["kind"]]
    if missing := needed - line.keys():
        raise InvalidValue(f"expected {', '.join(sorted(missing))} in it")
    numbers = are_numbers(line, needed - {"score"}) and is_score(line.get("score"))
    if not numbers or not isinstance(line["frames"], int):
        raise InvalidType(f"expected {', '.join(sorted(needed))} to be numbers, got another value")
    return line


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log. Damaged ones are left out with a warning.

    Raises:
        OSError: it cannot be read.
    """
    return read_lines(path, parse_line).usable("line of a log")


def cut_log(path: Path, trained: int, evaluated: int) -> None:
    """Removes the lines that a run resumed from a checkpoint will log again, and damaged ones.

    Args:
        path: the log; there may be none.
        trained: frames at the last training line before the checkpoint.
        evaluated: frames at the last evaluation before the checkpoint.
    """
    if not path.exists():
        return
    limits = {"training": trained, "evaluation": evaluated}
    rest = [line for line in read_log(path) if line["frames"] <= limits[line["kind"]]]
    with replacing(path) as file:
        file.write("".join(json.dumps(line) + "\n" for line in rest).encode())


def begin_log(path: Path, *, keep: bool) -> None:
    """Begins an empty log.

    Args:
        path: the log; there may be another run's.
        keep: whether an earlier log with lines is renamed, with a warning, and not overwritten.
    """
    if keep and path.exists() and path.stat().st_size:
        names = (path.with_name(f"{path.stem}-{number}.jsonl") for number in itertools.count(1))
        other = next(name for name in names if not os.path.lexists(name))
        path.rename(other)
        warnings.warn(
            f"{path} has lines of a training of which no checkpoint is there: they are in "
            f"{other.name} now, and a new training begins",
            stacklevel=4,
        )
    with replacing(path):
        pass


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        what = f"{problem.filename or path}: {problem.strerror or problem}"
        raise InvalidValue(f"expected a log that can be written, got {what}") from problem


class Log:
    """Writes a run's log.

    Args:
        args: the settings.
        trained: frames at the last training line that stays; 0 for a new run.
        evaluated: frames at the last evaluation's line that stays.
        frames: the frames with which the run begins; 0 for a new run.
        speak: whether this process writes the log.

    Raises:
        ValueError: the log cannot be read or written.
    """

    def __init__(self, args: Args, trained: int, evaluated: int, frames: int, speak: bool):
        self.path: Path | None = None
        self.logger: Logger | None = None
        self.shown: dict[str, float] = {}
        # The lines that `after` keeps back; None: it does not.
        self._kept: list[tuple[str, int, dict[str, Any]]] | None = None
        shown = speak and args.progress
        self.bar = Progress(args.game, args.total_frames or 0, shown=shown, done=frames)
        if not speak:
            return
        self.path = args.folder / LOG
        with _writing(args.folder):
            args.folder.mkdir(parents=True, exist_ok=True)
            for name in (LOG, RESULT):
                check_appendable(args.folder / name)
            if frames:
                cut_log(self.path, trained, evaluated)
            else:
                begin_log(self.path, keep=not args.overwrite)
            begin = 1 + max(trained, evaluated) if frames else 0
            self.logger = make_logger(args, begin)

    def show(self, frames: int, *, warming_up: bool) -> None:
        """Moves the progress bar to the number of frames played."""
        self.bar.reach(frames, "warming up" if warming_up else "")

    def write(self, kind: str, frames: int, values: dict[str, Any]) -> None:
        """Writes a line.

        Args:
            kind: "training" or "evaluation".
            frames: emulated frames so far.
            values: numbers, or None if there is none yet.

        Raises:
            ValueError: it cannot be written; the files are as they were.
        """
        self.bar.reach(frames)
        self.shown |= {name: values[name] for name in SHOWN if values.get(name) is not None}
        if "score" in self.shown:
            self.shown.pop("score_so_far", None)
        self.bar.show_values(self.shown)
        if self._kept is not None:
            self._kept.append((kind, frames, values))
        else:
            self._append(kind, frames, values)

    @contextmanager
    def after(self, wait: Callable[[], object]) -> Iterator[None]:
        """Keeps back the lines of a block; at its end it waits, and writes them.

        Args:
            wait: returns once they may be written; if it fails, they are not.

        Raises:
            ValueError: they cannot be written.
        """
        self._kept = []
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            wait()
            for line in kept:
                self._append(*line)

    def _append(self, kind: str, frames: int, values: dict[str, Any]) -> None:
        """Writes a line into the file and for the logger."""
        if self.path is None:
            return
        line = {"kind": kind, "frames": frames, "training_frames": frames // FRAMESKIP, **values}
        with _writing(self.path):
            append_line(self.path, json.dumps(line), durable=False)
            if self.logger is not None:
                known = {
                    f"{kind}/{name}": value for name, value in values.items() if value is not None
                }
                self.logger.write(frames, known)

    def close(self) -> None:
        """Ends the progress bar and the logger."""
        self.bar.close()
        if self.logger is not None:
            self.logger.close()
