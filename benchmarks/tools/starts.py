"""How long a training takes from its command to the end of its first update, cold and warm.

    python -m benchmarks.tools.starts pong breakout --results rows.jsonl
    python -m benchmarks.tools.starts atari57 --at-once 4 --num-threads 4

Each game's training is started twice, by the same command: cold, with empty caches for compiled
games, tunings and Triton's kernels, and warm, with what the first start has left there. The clock
runs in this process, from before Python starts until the first line of the training's log is there,
which is written after the first update. Then the training is stopped. With --at-once the starts of
several games share the machine. Python's own bytecode and the disk's cache are not emptied.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from cule.devices.device import find_device
from cule.programs.results import append_row, command_line, commit, machine, now
from cule.train.logs.log import LOG
from examples.atari57.games import games_of

# How often it is looked whether the log is there, and how long a start may take.
LOOK, LIMIT = 0.01, 600.0
# A2C with V-trace as it learns Pong in seconds; a line of the log after each update.
PROGRAM = (
    "-m", "examples.a2c_vtrace.train", "--num-envs", "2400", "--updates-at-once", "3", "--lag", "1",
    "--optimizer", "muon", "--warmup-steps", "1", "--log-every", "1", "--eval-episodes", "0",
    "--checkpoint-every", "0", "--no-progress", "--no-plot", "--logger", "none",
)  # fmt: skip
# The variables that name caches.
CACHES = ("CULE_CACHE_DIR", "TRITON_CACHE_DIR")


@dataclass
class Args:
    """Measures how long trainings take to start."""

    games: tyro.conf.Positional[tuple[str, ...]]
    """names of games, or the sets atari57 and atari5"""
    at_once: int = 1
    """games whose trainings start at the same time"""
    num_threads: int = 0
    """CPU threads of each training; 0: one for each core"""
    device: str | None = None
    """where they train; by default cuda if there is one"""
    options: tuple[str, ...] = ()
    """further options of the training, as NAME=VALUE, such as num_envs=64"""
    results: Path | None = None
    """file to which a row of each game is appended, as a JSON line"""


def seconds_to_update(words: list[str], folder: Path, caches: dict[str, str]) -> float:
    """Starts a training, and stops it after its first update.

    Args:
        words: the command's words after Python's own.
        folder: the run's.
        caches: the variables that name caches.

    Returns:
        Seconds from the command to the update.

    Raises:
        RuntimeError: the training has ended without an update, or takes too long.
    """
    output = folder.with_suffix(".out")
    with output.open("wb") as file:
        begun = time.perf_counter()
        training = subprocess.Popen(
            [sys.executable, *words, "--folder", str(folder)], stdout=file, stderr=file,
            env=os.environ | caches,
        )  # fmt: skip
        try:
            log = folder / LOG
            while not (log.exists() and log.stat().st_size):
                if training.poll() is not None or time.perf_counter() - begun > LIMIT:
                    said = output.read_text(errors="replace").strip()[-500:]
                    raise RuntimeError(f"expected a training with an update, got: {said}")
                time.sleep(LOOK)
            return time.perf_counter() - begun
        finally:
            training.send_signal(signal.SIGKILL)
            training.wait()


def starts_of(game: str, args: Args) -> dict[str, Any]:
    """Seconds of a game's cold and warm start, or the problem."""
    threads = ["--num-threads", str(args.num_threads)]
    words = [*PROGRAM, "--game", game, *threads]
    if args.device is not None:
        words += ["--device", args.device]
    for option in args.options:
        name, _, value = option.partition("=")
        words += [f"--{name.replace('_', '-')}", value]
    found: dict[str, Any] = {"game": game}
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: str(Path(folder) / name.lower()) for name in CACHES}
        for kind in ("cold", "warm"):
            try:
                seconds = seconds_to_update(words, Path(folder) / kind, caches)
            except RuntimeError as problem:
                return found | {"problem": str(problem)}
            found[f"{kind}_seconds"] = round(seconds, 2)
    return found


def main() -> None:
    """Measures."""
    args = tyro.cli(Args)
    device = find_device(args.device)
    shared = {"commit": commit(), "date": now(), "mode": "starts", "system": "cule",
              "at_once": args.at_once, "command": command_line(),
              **machine(device, args.num_threads)}  # fmt: skip
    with ThreadPoolExecutor(args.at_once) as pool:
        for found in pool.map(lambda game: starts_of(game, args), games_of(args.games)):
            sys.stdout.write(f"{found}\n")
            sys.stdout.flush()
            if args.results is not None:
                append_row(args.results, {**shared, **found})


if __name__ == "__main__":
    main()
