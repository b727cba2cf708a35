"""A run as a row of benchmarks/results."""

from __future__ import annotations

import dataclasses
import shlex
import time
from pathlib import Path
from typing import Any

import torch

from cule.disk.forms import are_numbers
from cule.errors import InvalidValue
from cule.programs.results import read_rows
from cule.train.distributed.reduction import strategy_of
from cule.train.envs.emulator import FRAMESKIP
from cule.train.import_path import ships
from cule.train.logs.log import RESULT
from cule.train.logs.pictures import scores_of
from cule.train.logs.repeat import command_of
from cule.train.logs.rows import is_result, row_of
from cule.train.run.standing import Standing
from cule.train.settings import Args, as_saved
from cule.train.trainer import Trainer

# The settings of train.Args in a row; those of the algorithm's own class are there, too.
SETTINGS = (
    "env_device", "env_groups", "layout", "reduction", "max_staleness", "lag", "multiprocessors",
    "rewards", "model", "width", "optimizer", "learning_rate", "anneal_lr", "schedule_by", "bf16",
    "compile", "cuda_graphs", "memory_budget", "stop_at_score", "eval_episodes",
    "eval_emulator", "eval_sticky", "eval_max_frames",
)  # fmt: skip
# The key of a row that says where and when its process trained.
PART = ("trained_on", "trained_from", "trained_to")
# What else a row has, or may have. No setting of an algorithm's own class can have such a name.
MEASURED = {
    *PART, "commit", "date", "system", "mode", "device_name", "driver", "cuda", "cpu_name", "torch",
    "rom_md5", "frameskip", "fps", "steps_per_second", "command", "threads", "algorithm",
    "num_gpus", "score", "score_deviation", "frames", "training_frames", "updates",
    "updates_per_second", "seconds", "evaluation_seconds", "startup_seconds", "cpu_seconds",
    "planning_seconds", "frames_to_score", "seconds_to_score", "trainings_on_gpu", "dealt",
    "interrupted",
}  # fmt: skip


def _own(args: Args) -> list[str]:
    """The names of the settings that only the algorithm's class has."""
    shared = {field.name for field in dataclasses.fields(Args)}
    return [field.name for field in dataclasses.fields(args) if field.name not in shared]


def check_names(args: Args) -> None:
    """Checks that a row has room for the settings of the algorithm's class.

    Raises:
        ValueError: one is named as what a row has of the training.
    """
    if taken := MEASURED.intersection(_own(args)):
        raise InvalidValue(
            f"expected settings of {type(args).__name__} with other names than what the row of a "
            f"result has, got {', '.join(sorted(taken))}"
        )


def settings_of(args: Args) -> dict[str, Any]:
    """The settings that a row has, as values that JSON can hold."""
    values = as_saved(args)
    return {name: values[name] for name in (*SETTINGS, *_own(args))}


def in_force(trainer: Trainer) -> dict[str, Any]:
    """Settings whose value in the run was another than the given one, by name.

    Such are the multiprocessors that the autotuner has chosen; None: the setting was not used.
    """
    not_used = trainer.unread & {*SETTINGS}
    reduction = strategy_of(trainer.processes, trainer.args.reduction)
    values: dict[str, Any] = {
        "lag": trainer.lag, "reduction": reduction, **dict.fromkeys(not_used)
    }  # fmt: skip
    if trainer.autotuner is not None:
        values |= trainer.autotuner.way._asdict()
    elif trainer.apart is not None:
        values["multiprocessors"] = trainer.apart[0].multiprocessors
    return values


def part_trained(device: torch.device, standing: Standing) -> dict[str, Any]:
    """[device, begin, end] of this process's training, in seconds since 1970, as `parts_in`."""
    if standing.trained is None:
        return {}
    begin, end = (round(when, 3) for when in standing.trained)
    return dict(zip(PART, (str(device), begin, end), strict=True))


def parts_in(folder: Path) -> list[list[Any]]:
    """[device, begin, end] of each process that trained in a folder, but for killed ones.

    Raises:
        OSError: there are no results, or they cannot be read.
    """
    rows = read_rows(folder / RESULT)
    return [[row[name] for name in PART] for row in rows if PART[0] in row]


def result_of(trainer: Trainer, standing: Standing) -> dict[str, Any]:
    """A run as a row of benchmarks/results; "interrupted" is in it if a signal has stopped it."""
    args, processes, algorithm = trainer.args, trainer.processes, trainer.algorithm
    return row_of(
        system=args.emulator, mode="training", game=args.game, num_envs=args.num_envs,
        fps=trainer.frames / standing.seconds, device=processes.device, threads=args.num_threads,
        command=command_of(algorithm), algorithm=algorithm.name, seed=args.seed,
        num_gpus=processes.num_devices,
        score=standing.test.get("test_score"), score_deviation=standing.test.get("test_deviation"),
        frames=trainer.frames, training_frames=trainer.frames // FRAMESKIP,
        updates=trainer.updates, updates_per_second=round(trainer.updates / standing.seconds, 2),
        seconds=round(standing.seconds, 3),
        evaluation_seconds=round(standing.evaluation_seconds, 3),
        startup_seconds=round(standing.startup_seconds, 3),
        cpu_seconds=round(time.process_time(), 3),
        planning_seconds=round(trainer.plan.seconds, 3), **part_trained(processes.device, standing),
        **({"frames_to_score": None, "seconds_to_score": None} | (standing.reached or {})),
        **({"trainings_on_gpu": trainer.sharing} if trainer.sharing > 1 else {}),
        **({"dealt": [list(time) for time in trainer.dealt.times]} if trainer.dealt.times else {}),
        **settings_of(args) | in_force(trainer),
        **({"interrupted": True} if standing.interrupted else {}),
    )  # fmt: skip


def row_before(args: Any, trainer: Trainer, standing: Standing) -> dict[str, Any] | None:
    """The row of a run if it was finished before, with these settings."""
    path = args.folder / RESULT
    long_enough = args.max_seconds is not None and standing.seconds >= args.max_seconds
    finished = trainer.frames >= args.total_frames or standing.reached or long_enough
    if not finished or not path.exists():
        return None
    names = ("stop_at_score", "eval_episodes", "eval_emulator", "eval_sticky", "eval_max_frames")
    wanted = {name: getattr(args, name) for name in names}
    wanted |= {"frames": trainer.frames, "updates": trainer.updates}
    for row in reversed(read_rows(path)):
        same = all(row.get(name) == value for name, value in wanted.items())
        if same and is_result(row) and not row.get("interrupted"):
            # A row without a score: its evaluation was stopped.
            scored = are_numbers(row, ("score", "score_deviation"))
            return row if scored == bool(args.eval_episodes) else None
    return None


def summary(row: dict[str, Any], folder: Path, module: str) -> str:
    """The result of a training in three lines for people.

    Args:
        row: the run's row.
        folder: the run's folder.
        module: the module of its algorithm, or the path of its script.

    Raises:
        ValueError: the log cannot be read.
    """
    trained = (
        f"{row['algorithm']} on {row['game']}: {row['frames']:,} frames and {row['updates']:,} "
        f"updates in {row['seconds']:,.1f} seconds, {row['fps']:,.0f} frames a second"
    )
    if row["score"] is not None:
        score = (
            f"{row['score']:.2f} +- {row['score_deviation']:.2f} on {row['eval_emulator']}, "
            f"{row['eval_episodes']} episodes"
        )
    elif training := scores_of(folder)[0]:
        score = f"{training[-1]['score']:.2f}, of the last episodes in training; not evaluated"
    else:
        score = "none, as no episode has ended; not evaluated"
    own = [] if ships(module) else ["--program", module]
    watch = shlex.join(["python", "-m", "cule.train.watch", str(folder), *own])
    return f"{trained}\nScore: {score}\nIn {folder}: log, checkpoints, result. A video: {watch}"
