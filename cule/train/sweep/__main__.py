"""Runs many trainings on few devices.

    python -m cule.train.sweep --algorithm examples.ppo.ppo --games pong breakout --seeds 0 1 2 \
        --folder runs/sweep --per-gpu 2 -- --total-frames 10_000_000

What follows `--` goes to each training. They run as processes, some on each device. The next starts
so early that it can train when one has trained, and is only evaluated any more: both a start and an
evaluation are work for the CPU. If it is ready before, it waits for its turn (gpu_lock.py). Stopped
or killed, the same command goes on: finished trainings are left out, the others continue from their
checkpoints. One that fails is started once more.

`--executor ray` and `--executor slurm` run them on a cluster instead (placing.py).

    python -m cule.train.sweep report runs/sweep runs/other

prints one table of several sweeps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro

from cule.errors import InvalidValue
from cule.rom import find_game
from cule.train.command import run_program
from cule.train.import_path import program_in
from cule.train.layout import Layout
from cule.train.sweep.jobs import Job
from cule.train.sweep.placing import Placing, device_of, executor_of
from cule.train.sweep.report import report
from cule.train.sweep.sweep import RESULTS, Sweep, report_end
from cule.train.sweep.table import Live, summary


@dataclass
class Args(Placing):
    """Trains on several games with several seeds. Options after -- go to each training."""

    algorithm: str
    """the training program: its module, such as examples.ppo.ppo, or its script"""
    games: tuple[str, ...]
    """the games"""
    seeds: tuple[int, ...] = (0,)
    """the seeds; there is a training for each game and seed"""
    folder: Path = Path("runs/sweep")
    """each training gets a folder in it, such as pong-0"""


@dataclass
class ReportArgs:
    """Prints one table of several sweeps, and says what is twice there."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """folders of sweeps"""


def jobs_of(args: Args, options: Sequence[str], device: str) -> list[Job]:
    """A job for each game and seed.

    Wrong settings are found here, before anything starts. A number of frames that no option names
    is named, so that it is the same wherever the sweep goes on.

    Raises:
        ValueError: a setting is wrong.
    """
    _, settings = program_in(args.algorithm)
    program = [args.algorithm] if args.algorithm.endswith(".py") else ["-m", args.algorithm]
    for name in ("game", "seed"):
        if Job("", tuple(options)).option(name) is not None:
            raise InvalidValue(f"expected --{name}s before --, got --{name} after it")
    jobs = []
    for game in [find_game(game).name for game in args.games]:
        for seed in args.seeds:
            words = ["--game", game, "--seed", str(seed), "--no-progress", *options]
            training = tyro.cli(settings, args=words).on(torch.device(device))
            layout = Layout.parse(training.layout)
            training.check(len(layout.ranks(args.gpus_per_training, "act")))
            if training.explain:
                raise InvalidValue("expected options that train, got --explain")
            frames = ["--total-frames", str(training.total_frames)]
            jobs.append(Job(f"{game}-{seed}", (*program, *frames, *words), args.gpus_per_training))
    return jobs


def run(args: Args, options: Sequence[str]) -> int:
    """Runs a sweep of all games and seeds; returns the exit status.

    Raises:
        ValueError: an argument is wrong.
    """
    executor = executor_of(args)
    jobs = jobs_of(args, options, device_of(executor))
    sweep = Sweep(jobs, args.folder, executor=executor, losses=args.retries)
    rows = sweep.run(Live(sys.stderr))
    if table := summary(rows):
        sys.stdout.write(f"{table}\nThe rows are in {args.folder / RESULTS}.\n")
    return report_end(sweep)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the sweep; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["report"]:

        def tell(args: ReportArgs) -> int:
            sys.stdout.write(f"{report(args.folders)}\n")
            return 0

        return run_program("python -m cule.train.sweep report", ReportArgs, tell, words[1:])
    split = words.index("--") if "--" in words else len(words)
    options = words[split + 1 :]
    return run_program(
        "python -m cule.train.sweep", Args, lambda args: run(args, options), words[:split]
    )


if __name__ == "__main__":
    sys.exit(main())
