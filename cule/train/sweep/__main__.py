"""Runs many trainings on few devices.

    python -m cule.train.sweep --algorithm examples.ppo.ppo --games pong breakout --seeds 0 1 2 \
        --folder runs/sweep --per-gpu 2 -- --total-frames 10_000_000

What follows `--` goes to each training. They run as processes, some on each device. The next starts
so early that it can train when one has trained, and is only evaluated any more: both a start and an
evaluation are work for the CPU. If it is ready before, it waits for its turn (gpu_lock.py). Stopped
or killed, the same command goes on: finished trainings are left out, the others continue from their
checkpoints. One that fails is started once more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import tyro

from cule.errors import InvalidValue
from cule.rom import find_game
from cule.train.checks import at_least
from cule.train.command import run_program
from cule.train.import_path import program_in
from cule.train.sweep.jobs import Job
from cule.train.sweep.sweep import RESULTS, Sweep, devices_of, report_end
from cule.train.sweep.table import Live, summary


@dataclass
class Args:
    """Trains on several games with several seeds. Options after -- go to each training."""

    algorithm: str
    """the training program: its module, such as examples.ppo.ppo, or its script"""
    games: tuple[str, ...]
    """the games"""
    seeds: tuple[int, ...] = (0,)
    """the seeds; there is a training for each game and seed"""
    folder: Path = Path("runs/sweep")
    """each training gets a folder in it, such as pong-0"""
    per_gpu: int = 1
    """trainings on a device at the same time; beside them four times as many may start or be
    evaluated"""
    gpus: tuple[int, ...] = ()
    """numbers of the GPUs; by default all"""
    device: Literal["cpu"] | None = None
    """cpu, to train there even if there is a GPU"""


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
            training.check(1)
            if training.explain:
                raise InvalidValue("expected options that train, got --explain")
            frames = ["--total-frames", str(training.total_frames)]
            jobs.append(Job(f"{game}-{seed}", (*program, *frames, *words)))
    return jobs


def run(args: Args, options: Sequence[str]) -> int:
    """Runs a sweep of all games and seeds; returns the exit status.

    Raises:
        ValueError: an argument is wrong.
    """
    at_least(1, args, "per_gpu")
    devices = devices_of(args.gpus, args.device)
    jobs = jobs_of(args, options, devices[0])
    sweep = Sweep(jobs, args.folder, devices, args.per_gpu)
    rows = sweep.run(Live(sys.stderr))
    if table := summary(rows):
        sys.stdout.write(f"{table}\nThe rows are in {args.folder / RESULTS}.\n")
    return report_end(sweep)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the sweep; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    split = words.index("--") if "--" in words else len(words)
    options = words[split + 1 :]
    return run_program(
        "python -m cule.train.sweep", Args, lambda args: run(args, options), words[:split]
    )


if __name__ == "__main__":
    sys.exit(main())
