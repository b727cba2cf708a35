"""The program around an algorithm: settings from the command line, a run, a row of results."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from cule.disk.files import replacing
from cule.errors import InvalidValue, MissingPackage
from cule.programs.figures import new_figure
from cule.train.algorithm import Algorithm
from cule.train.command import run_program
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.ranks import rank_and_size
from cule.train.distributed.watchdog import Watchdog
from cule.train.import_path import module_of, program_of
from cule.train.layout import Layout
from cule.train.logs.log import RESULT
from cule.train.logs.pictures import SINGLE, plot
from cule.train.logs.rows import append_row
from cule.train.lowering.settings_read import Make
from cule.train.plan import annotate, timeline
from cule.train.run.opening import Opening, open_run, with_tuned
from cule.train.run.result import check_names, result_of, summary
from cule.train.run.run import Run
from cule.train.run.stopper import Stopper
from cule.train.settings import begin
from cule.train.trainer import Trainer

LEAST_TORCH = (2, 11)
PICTURE = "--explain-picture"  # whose path is said to be wrong


def check_torch(version: str) -> None:
    """Checks torch's version.

    Raises:
        ImportError: it is older than what cule.train needs.
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < LEAST_TORCH:
        wanted = ".".join(map(str, LEAST_TORCH))
        raise MissingPackage(
            f"cule.train needs torch {wanted} or newer, and torch {version} is here"
        )


def train(make: Make, args: Any) -> dict[str, Any]:
    """Trains an algorithm.

    Args:
        make: makes the algorithm from settings and a context, as its class does.
        args: the settings.

    Returns:
        The run's row of results, as in benchmarks/results.

    Raises:
        ImportError: torch is too old.
        ValueError: the algorithm or a setting is wrong, the checkpoint to resume from is another
            run's, or the training has diverged.
    """
    with (
        _joined(args) as joined,
        joined.claimed(args.folder) as processes,
        Watchdog(processes) as watchdog,
    ):
        if args.explain:
            raise InvalidValue("expected a training without explain, which train.explain is for")
        opening = open_run(make, args, processes)
        watchdog.name_by(opening.processes)
        return _run(opening)


@contextmanager
def _joined(args: Any) -> Iterator[ProcessGroup]:
    """The processes that train together, while a block runs.

    Raises:
        ImportError: torch is too old.
        ValueError: the device or the layout is wrong.
    """
    check_torch(torch.__version__)
    begin(args)
    processes = ProcessGroup.join(args.device, Layout.parse(args.layout), args.timeout)
    try:
        yield processes
    finally:
        processes.leave()


def _run(opening: Opening) -> dict[str, Any]:
    """Trains, and writes the row and the plot; returns the row."""
    check_names(opening.args)
    run = Run(opening)
    try:
        if run.finished:
            row = run.row_before or {}
        else:
            with Stopper() as stopper, run.light, annotate.phase("training"):
                run.train(stopper)
            row = result_of(run.trainer, run.standing)
    finally:
        run.close()
    if opening.speaks:
        _write(opening.args, row, interrupted=run.standing.interrupted)
    return row


def _write(args: Any, row: dict[str, Any], *, interrupted: bool) -> None:
    """Writes the row and the plot."""
    append_row(row, args.folder / RESULT, None if interrupted else args.results, once=True)
    if args.plot:
        picture = args.folder / "scores.png"
        points = plot([args.folder], picture)
        if not points:
            picture.unlink(missing_ok=True)  # an older run's
            sys.stderr.write("No episode has ended: there is no scores.png.\n")
        elif points == 1:
            sys.stderr.write(f"scores.png {SINGLE}\n")
    if interrupted:
        sys.stderr.write(
            "Stopped by a signal; the checkpoint is written, --resume goes on from it.\n"
        )


def explain(make: Make, args: Any) -> str:
    """Plans a training with these settings without training; returns the plan as text.

    Args:
        make: makes the algorithm from settings and a context, as its class does.
        args: the settings.

    Raises:
        ValueError: the algorithm or a setting is wrong.
    """
    with _joined(args) as processes:
        if args.tuned:
            args, processes, _ = with_tuned(make, args, processes)
        args = args.on(processes.device)
        args.check(len(processes.ranks("act")))
        if args.explain_picture is not None:
            new_figure(args.explain_picture, PICTURE)  # fails now, not after the measuring
            if processes.decoupled:
                raise InvalidValue(
                    f"expected {PICTURE} where each process acts and learns, got layout "
                    f"{args.layout}"
                )
        trainer = Trainer(make, args, processes)
        text = trainer.plan.explain()
        if args.explain_picture is not None:
            text += f"\n\n{_drawn(make, args, processes)}"
        if processes.decoupled:
            acting = processes.broadcast(text, processes.only("act")[0])
            text = f"Processes that learn\n\n{text}\n\nProcesses that act\n\n{acting}"
        trainer.close()
    return text


def _drawn(make: Make, args: Any, processes: ProcessGroup) -> str:
    """Times an iteration in which all learn, and draws it; returns what that says."""
    trainer = Trainer(make, args, processes, latest_start=0)
    try:
        # Twice, as a first phase loads kernels and compiles.
        last = max(one.start + one.period for one in trainer.lowered.learnings)
        while trainer.steps <= last:
            trainer.iterate()
        periods = [one.period // trainer.period for one in trainer.lowered.learnings]
        while trainer.steps // trainer.period % math.lcm(*periods) != math.lcm(*periods) - 1:
            trainer.iterate()
        bars = trainer.plan.measure()
    finally:
        trainer.close()
    if processes.rank:  # process 0 draws
        return ""
    figure = new_figure(args.explain_picture, PICTURE)
    timeline.draw(bars, figure)
    with replacing(args.explain_picture) as file:
        figure.savefig(file, format=args.explain_picture.suffix[1:].lower())
    return f"{timeline.summary(bars)}\nThe picture is in {args.explain_picture}."


def main(algorithm: type[Algorithm[Any]], settings: type[Any]) -> int:
    """Reads the command line, and trains, or explains the plan.

    Args:
        algorithm: what to train.
        settings: the dataclass of its settings, derived from train.Args.

    Returns:
        The exit status.
    """

    def run(args: Any) -> None:
        first = rank_and_size()[0] == 0
        if args.explain:
            text = explain(algorithm, args)
        else:
            row = train(algorithm, args)
            if not first:  # process 0 has the log
                return
            text = json.dumps(row) if args.json else summary(row, args.folder, module_of(algorithm))
        if first:
            sys.stdout.write(text + "\n")

    return run_program(program_of(algorithm), settings, run)
