"""One agent of the suite: trains it on a game, evaluates it on ale-py, films and publishes it.

    python -m examples.atari57.agent --algorithm a2c_vtrace --game pong --folder runs/pong

What is done already is not done again: a training goes on from its newest checkpoint, and the
folder's result.jsonl is written last. Of a training that has ended only the networks are kept, as
57 checkpoints with all frames would take 80 GB.

Evaluated and filmed is on the CPU. Another agent trains on the GPU by then, and whatever else runs
there takes all of it for a time slice, though a policy of a few envs has nearly nothing to compute.
Clients of CUDA's Multi-Process Service take no slices: among them --evaluate-on gpu spares the CPU
half of an evaluation's work.

Several processes of torchrun train together; the first of them alone evaluates and films.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from cule import train
from cule.devices.device import usable_cpus
from cule.train import publish, watch
from cule.train.checkpoints import checkpoint
from cule.train.checks import at_least
from cule.train.command import run_program
from cule.train.distributed.ranks import rank_and_size
from cule.train.evaluate import evaluation
from cule.train.logs.log import LOG, RESULT
from cule.train.logs.rows import append_row
from cule.train.published.weights import library
from cule.train.run.result import parts_in
from cule.train.sweep.jobs import result_in
from cule.train.sweep.sweep import STOPPED
from examples.atari57.games import game_of
from examples.atari57.references import human_normalised
from examples.atari57.settings import (
    ALGORITHMS,
    FRAMES,
    PROTOCOLS,
    AlgorithmName,
    ProtocolName,
    settings_of,
    training_settings,
)  # fmt: skip

# The command that makes an agent; options follow it.
PROGRAM = ("-m", "examples.atari57.agent")
# In an agent's folder.
TRAINING, VIDEO, CARD = "training", "video.mp4", "card"
MOST_FILMED_FRAMES = 18_000
# Threads of each process of an evaluation.
THREADS = 4
# The nice value of an evaluation: trainings, for which GPUs wait, have 0.
WAY_GIVEN = 10
# What a result's row has from the training's.
OF_TRAINING = (
    "device_name", "driver", "cuda", "seconds", "startup_seconds", "fps", "trainings_on_gpu",
    "schedule_by",
)  # fmt: skip


@dataclass
class Args:
    """Trains, evaluates and films an agent."""

    algorithm: AlgorithmName | None = None
    """what to train; by default a2c_vtrace, or on a GPU, if annealing follows seconds, what scores
    most after so many"""
    candidate: str | None = None
    """a candidate of settings.py, which is trained instead"""
    protocol: ProtocolName = "noops"
    """how it is trained and evaluated"""
    game: str = "pong"
    """the game, one of Atari-57"""
    seed: int = 0
    """seed of the training"""
    total_frames: int = FRAMES
    """emulated frames of the training"""
    max_seconds: float | None = None
    """when to end the training, in seconds"""
    schedule_by: Literal["frames", "seconds"] = "frames"
    """what annealing follows, as in a training: frames, or the seconds of max_seconds"""
    episodes: int = 100
    """episodes of the evaluation"""
    max_frames: int = 108_000
    """frames after which an episode of the evaluation is truncated"""
    greedy: bool = False
    """take the most probable action in the evaluation and the film, instead of sampling one"""
    video: bool = True
    """film an episode, of five minutes at most"""
    card: bool = True
    """make a folder of the policy with a model card, as cule.train.publish does"""
    evaluate_on: Literal["cpu", "gpu"] = "cpu"
    """where the policy computes in the evaluation; gpu: that of the training, which pays among
    clients of CUDA's Multi-Process Service (python -m cule.train.mps)"""
    num_threads: int = 0
    """CPU threads of the emulators and of torch; 0: one for each core"""
    folder: Path = Path("runs/agent")
    """where everything goes"""
    device: str | None = None
    """where it is trained: cpu, cuda or cuda:1; by default cuda if there is one"""
    resume: bool = False
    """go on with what is in the folder"""
    progress: bool = True
    """show progress bars"""


def is_first() -> bool:
    """Whether this process is the first of those that torchrun has started, or the only one."""
    return rank_and_size()[0] == 0


def link_log(folder: Path) -> None:
    """Lets a sweep find the training's log in the agent's folder.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / LOG).is_symlink():
        (folder / LOG).symlink_to(Path(TRAINING) / LOG)


def film(args: Args) -> None:
    """Films an episode, unless that is done.

    Raises:
        ImportError: imageio is not installed.
        ValueError: the video cannot be written.
    """
    path = args.folder / VIDEO
    if not args.video or path.exists():
        return
    wanted = watch.Args(
        args.folder / TRAINING, path, sticky=PROTOCOLS[args.protocol].sticky,
        max_frames=min(args.max_frames, MOST_FILMED_FRAMES), greedy=args.greedy, device="cpu",
        progress=False,
    )  # fmt: skip
    watch.watch(wanted)


def make_card(args: Args) -> None:
    """Makes the folder of the policy with its card, unless it is not wanted.

    Raises:
        ValueError: safetensors is not installed, or a file cannot be written.
    """
    if args.card:
        film = args.folder / VIDEO if args.video else None
        publish.publish(publish.Args(
            args.folder / TRAINING, output=args.folder / CARD, video=args.video, film=film,
        ))  # fmt: skip


def has_trained(row: dict[str, Any], args: Args) -> bool:
    """Whether a training's result is that of the whole training."""
    long = args.max_seconds is not None and row["seconds"] >= args.max_seconds
    return long or row["frames"] >= args.total_frames


def train_agent(args: Args, game: str) -> dict[str, Any] | None:
    """Trains an agent, unless that is done; the training's row, None if a signal stopped it.

    Raises:
        ImportError: torch is too old.
        ValueError: a setting is wrong, or a file cannot be written.
    """
    seconds = args.max_seconds if args.schedule_by == "seconds" else None
    algorithm, added = settings_of(args.algorithm, args.device, args.candidate, seconds)
    settings = training_settings(
        algorithm, args.protocol, **added, game=game, seed=args.seed,
        total_frames=args.total_frames, max_seconds=args.max_seconds, schedule_by=args.schedule_by,
        folder=args.folder / TRAINING, device=args.device, resume=args.resume,
        num_threads=args.num_threads, progress=args.progress,
    )  # fmt: skip
    if is_first():
        link_log(args.folder)
    trained = result_in(args.folder / TRAINING) if args.resume else None
    if trained is None or not has_trained(trained, args):
        trained = train.train(ALGORITHMS[algorithm][0], settings)
    return trained if has_trained(trained, args) else None


def make(args: Args, gives_way: bool = False) -> dict[str, Any] | None:
    """Trains, evaluates, films and publishes; returns the result's row, None after a signal.

    With `gives_way` this process has a lower priority once it has trained. The row is that of the
    evaluation, with the training's device and times, `protocol` and `score_normalised`. `trained`
    has device, begin and end of each part of the training, in seconds since 1970. Of several
    processes all but the first only train, and return the training's row.

    Raises:
        ImportError: a package is missing.
        ValueError: a setting is wrong, or a file cannot be written.
    """
    at_least(1, args, "total_frames", "episodes", "max_frames")
    game = game_of(args.game)
    if args.card:
        library()  # which is lacking now, or not at all
    if args.resume and (row := result_in(args.folder)) is not None:
        return row
    trained = train_agent(args, game)
    if trained is None or not is_first():
        return trained
    checkpoint.keep_networks(args.folder / TRAINING)
    # The GPU's memory is the next agent's, and so is a core when it wants one.
    gc.collect()
    torch.cuda.empty_cache()
    if gives_way:
        os.setpriority(os.PRIO_PROCESS, 0, WAY_GIVEN)
    # A policy of a few envs is no work for several, which would wait for each other's cores.
    torch.set_num_threads(1)
    begun, protocol = time.perf_counter(), PROTOCOLS[args.protocol]
    wanted = evaluation.Args(
        args.folder / TRAINING, episodes=args.episodes, sticky=(protocol.sticky,),
        noops=protocol.noops, max_frames=args.max_frames, greedy=args.greedy,
        device=args.device if args.evaluate_on == "gpu" else "cpu",
        num_threads=args.num_threads, progress=args.progress,
        num_processes=-(-(args.num_threads or usable_cpus()) // THREADS),
    )  # fmt: skip
    (row,) = evaluation.evaluate(wanted)
    seconds = time.perf_counter() - begun
    film(args)
    make_card(args)
    row |= {
        "candidate": args.candidate,
        "device": args.device,
        "protocol": args.protocol,
        "score_normalised": human_normalised(game, row["score"]),
        **{name: trained[name] for name in OF_TRAINING if name in trained},
        "trained": parts_in(args.folder / TRAINING),
        "evaluation_seconds": round(seconds, 3),
    }
    append_row(row, args.folder / RESULT)
    return row


def run(args: Args) -> int:
    """Does what the command line asks for; returns the exit status."""
    row = make(args, gives_way=True)
    if row is None:
        return STOPPED
    if is_first():
        sys.stdout.write(json.dumps(row) + "\n")
    return 0


def main() -> int:
    """Runs the program; returns the exit status."""
    return run_program("python -m examples.atari57.agent", Args, run)


if __name__ == "__main__":
    sys.exit(main())
