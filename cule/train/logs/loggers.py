"""Where a run's numbers go besides its log: TensorBoard, Weights & Biases, or Trackio.

A run's numbers are in log.jsonl in any case. Weights & Biases and Trackio have their own processes
or threads, which send them. W&B's API: https://docs.wandb.ai/ref/python, Trackio's:
https://huggingface.co/docs/trackio.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import re
import secrets
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from cule.disk.files import content_of, replacing
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.train.checks import wanted_package
from cule.train.settings import Args, as_saved

# The project in which a tracker lists the runs.
PROJECT = "cule"
# In a run's folder: the name under which a tracker knows the run.
NAMED = "tracked.json"
# Seconds in which W&B may send what is left when a run ends.
MOST_SECONDS_TO_FINISH = 120.0


class Logger(Protocol):
    """Takes the numbers of a run."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes some numbers, by their tags, that belong to a step."""

    def close(self) -> None:
        """Ends it."""


def check_logger(args: Args) -> None:
    """Checks that the package of the chosen logger is installed.

    Raises:
        ValueError: it is not.
    """
    name = args.logger
    if name != "none":
        with wanted_package(name):
            # Its import takes seconds.
            if importlib.util.find_spec(name) is None:
                raise ModuleNotFoundError(f"No module named {name!r}")


def make_logger(args: Args, begin: int) -> Logger | None:
    """The logger of the settings.

    Args:
        args: the settings.
        begin: the step with which a resumed run goes on; 0: the run is a new one.

    Raises:
        OSError: its files cannot be written.
        ValueError: it does not begin a run.
    """
    if args.logger == "none":
        return None
    if args.logger == "tensorboard":
        from cule.train.logs.tensorboard import Board

        return Board(args.folder / "tensorboard", begin)
    return Tracker(args, resumed=begin > 0)


def _name_of(folder: Path, *, resumed: bool) -> str:
    """The name under which a tracker knows a run: a new one, or that of the run that is resumed."""
    path = folder / NAMED
    if resumed:
        with suppress(OSError, *DAMAGE):
            name = json.loads(content_of(path))["run"]
            if isinstance(name, str) and re.fullmatch(r"[\w.-]{1,128}", name, re.ASCII):
                return name
    shown = re.sub(r"[^\w.-]", "-", folder.resolve().name, flags=re.ASCII)[:64]
    name = f"{shown or 'run'}-{secrets.token_hex(4)}"
    with replacing(path) as file:
        file.write(json.dumps({"run": name}).encode())
    return name


class Tracker:
    """A run of Weights & Biases or of Trackio, whose packages have the same functions.

    A resumed run goes on under its name. What it logs again has the same numbers as before.

    Args:
        args: the settings; `logger` names the package.
        resumed: whether the run goes on from a checkpoint.

    Raises:
        OSError: the run's folder cannot be written.
        ValueError: the package does not begin a run.
    """

    def __init__(self, args: Args, *, resumed: bool):
        self._package: Any = importlib.import_module(args.logger)
        self._told = args.logger
        name = _name_of(args.folder, resumed=resumed)
        asked: dict[str, Any] = {"name": name, "config": as_saved(args), "resume": "allow"}
        if args.logger == "wandb":
            # What is printed stays here: it has a progress bar.
            settings = self._package.Settings(console="off", finish_timeout=MOST_SECONDS_TO_FINISH)
            asked |= {"id": name, "dir": str(args.folder), "settings": settings}
        try:
            with _on_stderr():
                self._run: Any = self._package.init(project=PROJECT, **asked)
                if args.logger == "wandb":
                    # Its own steps must rise, and those of a resumed run do not.
                    self._run.define_metric("frames")
                    self._run.define_metric("*", step_metric="frames")
        except Exception as problem:  # of whatever kind the package has
            raise InvalidValue(
                f"expected {args.logger} to begin a run, got {type(problem).__name__}: "
                f"{' '.join(str(problem).split())}"
            ) from problem

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Logs some numbers; if that fails, says so, and logs no more.

        Args:
            step: the frames so far.
            values: the numbers, by their tags.
        """
        if self._run is None:
            return
        try:
            if self._told == "wandb":
                self._run.log({"frames": step, **values})
            else:
                self._run.log(dict(values), step=step)
        except Exception as problem:  # a training is worth more than its tracker
            self._give_up(problem)

    def close(self) -> None:
        """Ends the run. W&B has two minutes for sending what is left, Trackio 30 seconds."""
        if self._run is None:
            return
        try:
            with _on_stderr():
                self._package.finish()
        except Exception as problem:
            self._give_up(problem)
        self._run = None

    def _give_up(self, problem: Exception) -> None:
        self._run = None
        warnings.warn(
            f"{self._told} takes no more numbers ({type(problem).__name__}: {problem}): the "
            "training goes on, and all are in its log.jsonl",
            stacklevel=4,
        )


def _on_stderr() -> contextlib.redirect_stdout[Any]:
    """Sends to stderr what a package prints: a program's stdout may be a row of JSON."""
    return contextlib.redirect_stdout(sys.stderr)
