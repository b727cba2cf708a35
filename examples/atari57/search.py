"""Compares settings on a few games in little time, to find those that the suite uses.

    python -m examples.atari57.search --seconds 60 --folder runs/search

Each candidate, one setting for all games, trains an agent for each game for so many seconds and
evaluates it on ale-py. What changes in the course of a training, such as a learning rate, is at its
end with the seconds, as in a suite of `--gpu-hours`; with `--total-frames` it is after so many
frames, and a training ends by whichever comes first.

The table at the end has the candidates' human-normalised scores, the best median first. Stopped or
killed, the same command goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cule.devices.device import MAX_THREADS
from cule.errors import InvalidValue
from cule.scope.table import columns
from cule.train.checks import at_least, within
from cule.train.command import options_of, run_program
from cule.train.sweep import sweep
from cule.train.sweep.jobs import Job
from cule.train.sweep.placing import Placing, executor_of
from cule.train.sweep.table import Live
from examples.atari57 import aggregates
from examples.atari57.agent import PROGRAM
from examples.atari57.games import games_of
from examples.atari57.references import human_normalised
from examples.atari57.settings import (
    CANDIDATES,
    SEARCH_GAMES,
    ProtocolName,
    lengths,
    settings_of,
)  # fmt: skip


@dataclass
class Args(Placing):
    """Compares candidates of examples/atari57/settings.py."""

    candidates: tuple[str, ...] = tuple(CANDIDATES)
    """names of candidates"""
    games: tuple[str, ...] = SEARCH_GAMES
    """the games: names, or the sets atari57 and atari5"""
    seeds: tuple[int, ...] = (0,)
    """seeds of the trainings"""
    seconds: float = 60.0
    """seconds of each training at most, without its start and its evaluation"""
    total_frames: int | None = None
    """emulated frames of each training at most, over which learning rates fall to zero, and not
    over its seconds"""
    protocol: ProtocolName = "noops"
    """how agents are trained and evaluated"""
    episodes: int = 32
    """episodes of each evaluation"""
    max_frames: int = 27_000
    """frames after which an episode of an evaluation is truncated; fewer than in the suite, as
    evaluations take longer than these trainings"""
    greedy: bool = False
    """take the most probable actions in evaluations, instead of sampling them from the policy"""
    num_threads: int = 0
    """CPU threads of each agent; 0: one for each core"""
    folder: Path = Path("runs/atari57_search")
    """each agent gets a folder in it, such as ppo-256/qbert-0"""


def jobs_of(args: Args) -> list[Job]:
    """A job for each game and candidate: all candidates of a game, then the next game.

    Raises:
        ValueError: a setting is wrong.
    """
    at_least(1, args, "total_frames", "episodes", "max_frames", "per_gpu")
    within(0, MAX_THREADS, args, "num_threads")
    if not args.seconds > 0:
        raise InvalidValue(f"expected seconds to be greater than 0, got {args.seconds}")
    for name in args.candidates:
        settings_of("a2c_vtrace", args.device, name)
    names = ("protocol", "episodes", "max_frames", "greedy", "num_threads")
    shared = options_of({
        **{name: getattr(args, name) for name in names},
        **lengths(args.seconds, args.total_frames),
        "video": False, "card": False, "progress": False,
    })  # fmt: skip
    jobs = []
    for seed in args.seeds:
        for game in games_of(args.games):
            for name in args.candidates:
                job = options_of({"game": game, "seed": seed, "candidate": name})
                jobs.append(
                    Job(f"{name}/{game}-{seed}", (*PROGRAM, *job, *shared), args.gpus_per_training)
                )
    return jobs


def scores_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """A candidate's human-normalised scores by game, one for each seed."""
    found: dict[str, list[float]] = {}
    for row in rows:
        score = human_normalised(row["game"], row["score"])
        found.setdefault(row["game"], []).append(score)
    return found


def table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """The candidates' scores, the best median first; those without all games are last.

    Args:
        rows: as of `Sweep.run`.
        names: the candidates.
    """
    scored = [row for row in rows if row.get("score") is not None]
    games = list(dict.fromkeys(row["game"] for row in scored))
    ranked: list[tuple[float, list[str]]] = []
    for name in names:
        own = [row for row in scored if row["job"].startswith(f"{name}/")]
        if not own:
            continue
        scores = scores_of(own)
        means = np.array([[np.mean(scores[game]) for game in games if game in scores]])
        cells = [
            name, *(f"{100 * float(one(means)):.0f}%" for one in aggregates.STATISTICS.values()),
            f"{np.mean([row['fps'] for row in own]) / 1e6:.2f}",
            f"{np.mean([row['frames'] for row in own]) / 1e6:.1f}",
            *(f"{100 * np.mean(scores[game]):.0f}%" if game in scores else "." for game in games),
        ]  # fmt: skip
        whole = len(scores) == len(games)
        ranked.append((float(aggregates.median(means)) if whole else -np.inf, cells))
    ranked.sort(key=lambda one: -one[0])
    head = ["candidate", *aggregates.STATISTICS, "M FPS", "M frames", *games]
    return columns(head, [cells for _, cells in ranked], left=1)


def compare(args: Args) -> int:
    """Does what the command line asks for; returns the exit status.

    Raises:
        ValueError: a setting is wrong, or the folder has agents of other settings.
    """
    jobs = jobs_of(args)
    executor = executor_of(args)
    search = sweep.Sweep(jobs, args.folder, executor=executor, losses=args.retries)
    rows = search.run(Live(sys.stderr))
    if any("error" not in row for row in rows):
        sys.stdout.write(f"{table(rows, args.candidates)}\n")
    return sweep.report_end(search)


def main() -> int:
    """Runs the search; returns the exit status."""
    return run_program("python -m examples.atari57.search", Args, compare)


if __name__ == "__main__":
    sys.exit(main())
