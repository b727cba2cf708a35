"""The standard experiment: an agent for each of 57 Atari games, and one report.

    python -m examples.atari57.run --algorithm a2c_vtrace --gpus 0 1 2 3 --folder runs/suite
    python -m examples.atari57.run --gpu-hours 1 --protocol machado --folder runs/hour

Each agent is trained, evaluated and filmed by a process of its own (agent.py). Stopped or killed,
the same command goes on: finished agents are left out, the others continue from their checkpoints.
docs/atari57.md says what the report means.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cule.devices.device import MAX_THREADS
from cule.errors import InvalidValue
from cule.train.checks import MAX_SEED, at_least, within
from cule.train.command import options_of, run_program
from cule.train.published.weights import library
from cule.train.sweep import sweep
from cule.train.sweep.jobs import Job
from cule.train.sweep.placing import Placing, executor_of
from cule.train.sweep.table import Live
from cule.wrappers.video_file import video_library
from examples.atari57.agent import PROGRAM
from examples.atari57.games import games_of, longest_first
from examples.atari57.report import REPORT, write_report
from examples.atari57.settings import AlgorithmName, ProtocolName, lengths


@dataclass
class Args(Placing):
    """Trains an agent for each game and seed, evaluates them on ale-py, and writes a report."""

    algorithm: AlgorithmName | None = None
    """what to train, with one setting for all games; by default a2c_vtrace, or with gpu_hours what
    scores most in so many"""
    gpu_hours: float | None = None
    """hours of a GPU that all trainings together may take: each trains for as many seconds as the
    others, in place of total_frames; starts and evaluations are not counted"""
    games: tuple[str, ...] = ("atari57",)
    """the games: names, or the sets atari57 and atari5"""
    protocol: ProtocolName = "noops"
    """noops: no-ops before an episode, no sticky actions; machado: sticky actions, all 18 actions,
    no signal of lost lives"""
    seeds: tuple[int, ...] = (0,)
    """seeds of the trainings"""
    total_frames: int | None = None
    """emulated frames of each training; by default 200,000,000, or with gpu_hours what there is
    time for"""
    episodes: int = 100
    """episodes of each evaluation"""
    max_frames: int = 108_000
    """frames after which an episode of an evaluation is truncated"""
    greedy: bool = False
    """take the most probable actions in evaluations, instead of sampling them from the policy"""
    video: bool = True
    """film an episode of each agent"""
    card: bool = True
    """make a folder of each agent's policy, with a model card"""
    evaluate_on: Literal["cpu", "gpu"] = "cpu"
    """where policies compute in evaluations; gpu: that of the training, which pays among clients of
    CUDA's Multi-Process Service (python -m cule.train.mps)"""
    num_threads: int = 0
    """CPU threads of each agent; 0: one for each core"""
    folder: Path = Path("runs/atari57")
    """each agent gets a folder in it, such as pong-0; the report goes there, too"""


def what_and_how_long(args: Args, agents: int) -> dict[str, Any]:
    """The options of each of so many agents that say what is trained, and for how long.

    Raises:
        ValueError: there are no such hours, or both hours and frames.
    """
    hours, frames = args.gpu_hours, args.total_frames
    if hours is None:
        return lengths(None, frames) | {"algorithm": args.algorithm}
    if not 0 < hours < math.inf:
        raise InvalidValue(f"expected gpu_hours to be greater than 0, got {hours}")
    if frames is not None:
        raise InvalidValue(
            f"expected gpu_hours or total_frames, got {hours} hours and {frames:,} frames"
        )
    # Of several that share a GPU each has a part of its seconds.
    seconds = 3600 * hours / agents * args.per_gpu / args.gpus_per_training
    return lengths(seconds, None) | {"algorithm": args.algorithm}


def jobs_of(args: Args) -> list[Job]:
    """The agents: all games with the first seed, then with the next, of each the longest first.

    Raises:
        ValueError: a setting is wrong.
    """
    at_least(1, args, "total_frames", "episodes", "max_frames", "per_gpu")
    within(0, MAX_THREADS, args, "num_threads")
    within(0, MAX_SEED, args, "seeds")
    if not args.seeds:
        raise InvalidValue("expected seeds, got none")
    names = (
        "protocol", "episodes", "max_frames", "greedy", "video", "card", "evaluate_on",
        "num_threads",
    )  # fmt: skip
    shared = options_of({
        **{name: getattr(args, name) for name in names}, "progress": False,
        **what_and_how_long(args, len(games_of(args.games)) * len(args.seeds)),
    })  # fmt: skip
    return [
        Job(
            f"{game}-{seed}",
            (*PROGRAM, "--game", game, "--seed", str(seed), *shared),
            args.gpus_per_training,
        )
        for seed in args.seeds
        for game in longest_first(games_of(args.games))
    ]


def run(args: Args) -> int:
    """Does what the command line asks for; returns the exit status.

    Raises:
        ImportError: videos are wanted, and imageio is not installed.
        ValueError: a setting is wrong, cards are wanted and safetensors is not installed, or the
            folder has agents of other settings.
    """
    jobs = jobs_of(args)
    # What is lacking is said now, and not only after the first training.
    if args.video:
        video_library()
    if args.card:
        library()
    executor = executor_of(args, needs_folder=True)
    suite = sweep.Sweep(jobs, args.folder, executor=executor, losses=args.retries)
    rows = suite.run(Live(sys.stderr))
    if any("error" not in row for row in rows):
        write_report(args.folder)
        sys.stdout.write(f"The report is {args.folder / REPORT}.\n")
    return sweep.report_end(suite)


def main() -> int:
    """Runs the suite; returns the exit status."""
    return run_program("python -m examples.atari57.run", Args, run)


if __name__ == "__main__":
    sys.exit(main())
