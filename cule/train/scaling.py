"""Foretells how fast a training is with more GPUs, from rows of trainings that were measured.

    python -m cule.train.scaling runs/*/result.jsonl --num-envs 4800 --gpus-per-machine 8

Without a cluster at hand this says how many GPUs are worth asking for. Each GPU acts, learns and
averages gradients with the others (layout "together"). One step of all envs takes

    fixed + per_env * envs of a GPU + updates * (average inside machines + average between them)

The first two are fitted to rows of one GPU with different numbers of envs. NCCL averages b bytes
over n by a ring or by two trees, whichever is faster (S. Jeaugey, "Massively Scale Your Deep
Learning Training with NCCL 2.4", NVIDIA, 2019). They take

    2 (n - 1) latency + 2 (n - 1) / n * b / bandwidth    and    2 log2(n) latency + 2 b / bandwidth

Rows of several GPUs are not used for the fit: they show how far the model is off.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from cule.disk.forms import are_numbers
from cule.errors import InvalidValue
from cule.programs.results import read_rows
from cule.scope.table import columns
from cule.train.checks import above, at_least
from cule.train.command import run_program
from cule.train.nn.models import MODELS, ActorCritic

# The most GPUs of the table.
MOST_GPUS = 1024
# What the rows have to share.
SHARED = (
    "algorithm", "game", "device_name", "model", "width", "bf16", "optimizer", "lag", "num_steps",
    "num_batches", "minibatch_size", "update_epochs", "env_device", "emulator", "cuda_graphs",
)  # fmt: skip
# Games have at most so many actions; the others change a network hardly.
NUM_ACTIONS = 18
NUMBERS = ("num_envs", "fps", "frames", "updates", "frameskip")


@dataclass
class Args:
    """Foretells frames per second with more GPUs, from rows of trainings."""

    rows: tyro.conf.Positional[tuple[Path, ...]]
    """files of rows, such as the result.jsonl of trainings with different numbers of envs"""
    num_envs: int | None = None
    """all envs; by default as many as the row with the most of one GPU"""
    parameters: int | None = None
    """weights of the networks that learn; by default as many as the rows' model and width have"""
    gpus_per_machine: int = 8
    """GPUs that a machine has"""
    latency: float = 5.0
    """microseconds of a message between GPUs of a machine"""
    bandwidth: float = 200.0
    """gigabytes a second between GPUs of a machine"""
    machine_latency: float = 10.0
    """microseconds of a message between machines"""
    machine_bandwidth: float = 25.0
    """gigabytes a second between machines"""
    gain: float = 1.25
    """twice as many GPUs are worth it if they are so many times as fast"""


@dataclass(frozen=True)
class Link:
    """A network between GPUs or machines.

    Attributes:
        latency: seconds of a message.
        bandwidth: bytes a second.
    """

    latency: float
    bandwidth: float

    def average(self, count: int, size: float) -> float:
        """Seconds to average so many bytes over so many members."""
        if count == 1:
            return 0.0
        ring = 2 * (count - 1) * (self.latency + size / count / self.bandwidth)
        trees = 2 * math.ceil(math.log2(count)) * self.latency + 2 * size / self.bandwidth
        return min(ring, trees)


@dataclass(frozen=True)
class Model:
    """How long a step of all envs takes.

    Attributes:
        fixed, per_env: seconds of a GPU's step, and more for each env.
        updates: updates in a step with so many envs of a GPU: at none, and more for each env.
        frames: of a step of one env.
        size: bytes of a gradient.
        inside, between: the links of a machine's GPUs, and of machines.
        each: GPUs of a machine.
    """

    fixed: float
    per_env: float
    updates: tuple[float, float]
    frames: float
    size: float
    inside: Link
    between: Link
    each: int

    def averaging(self, envs: float, gpus: int) -> float:
        """Seconds of a step in which gradients are averaged, with so many envs on each GPU."""
        machines = math.ceil(gpus / self.each)
        once = self.inside.average(min(gpus, self.each), self.size)
        once += self.between.average(machines, self.size)
        return max(0.0, self.updates[0] + self.updates[1] * envs) * once

    def fps(self, envs: float, gpus: int) -> float:
        """Frames a second of all GPUs, with so many envs on each."""
        seconds = self.fixed + self.per_env * envs + self.averaging(envs, gpus)
        return gpus * envs * self.frames / seconds


def _line(points: Mapping[float, Sequence[float]]) -> tuple[float, float]:
    """The line through the medians at each place, of least squares; it is never below 0 at 0."""
    places = np.array(sorted(points))
    values = np.array([statistics.median(points[place]) for place in sorted(points)])
    slope, begin = np.polyfit(places, values, 1, w=1 / np.maximum(values, 1e-12))
    if begin < 0:
        begin, slope = 0.0, float((values / places).mean())
    return float(begin), max(0.0, float(slope))


def _gpus(row: Mapping[str, Any]) -> int:
    """The GPUs of a training; none count as one."""
    return row.get("num_gpus") or 1


def usable(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of finished trainings in which each GPU acts and learns.

    Raises:
        ValueError: there are none, or they have different settings.
    """
    found = [
        row
        for row in rows
        if are_numbers(row, NUMBERS) and row["fps"] > 0 and row["frames"] > 0
        and row.get("layout") == "together" and not row.get("interrupted")
    ]  # fmt: skip
    if not found:
        raise InvalidValue("expected rows of trainings with the layout together, got none")
    for name in SHARED:
        values = {repr(row.get(name)) for row in found}
        if len(values) > 1:
            raise InvalidValue(
                f"expected rows with one {name}, got {', '.join(sorted(values))}: leave some out"
            )
    return found


def gradient_bytes(row: Mapping[str, Any]) -> float:
    """The bytes of a gradient of a row's network, four for each weight.

    Raises:
        ValueError: the network is none of cule's.
    """
    name, width = str(row.get("model")), row.get("width")
    if name not in MODELS or not isinstance(width, (int, float)):
        raise InvalidValue(
            f"expected parameters, where the network is none of {', '.join(MODELS)}, got nothing"
        )
    with torch.device("meta"):
        network = ActorCritic(NUM_ACTIONS, name, width)
    return 4.0 * sum([weights.numel() for weights in network.parameters()])


def fit(rows: Sequence[Mapping[str, Any]], args: Args) -> Model:
    """The model of rows that `usable` has returned.

    Raises:
        ValueError: fewer than two numbers of envs were measured on one GPU, or the network is
            unknown.
    """
    seconds: dict[float, list[float]] = {}
    updates: dict[float, list[float]] = {}
    for row in rows:
        if _gpus(row) == 1:
            envs, frames = row["num_envs"], row["num_envs"] * row["frameskip"]
            seconds.setdefault(envs, []).append(frames / row["fps"])
            updates.setdefault(envs, []).append(row["updates"] * frames / row["frames"])
    if len(seconds) < 2:
        raise InvalidValue(
            "expected rows of one GPU with two numbers of envs or more, got "
            f"{', '.join(f'{envs:,.0f}' for envs in seconds) or 'none'}"
        )
    fixed, per_env = _line(seconds)
    return Model(
        fixed, per_env, _line(updates), rows[0]["frameskip"],
        4.0 * args.parameters if args.parameters is not None else gradient_bytes(rows[0]),
        Link(1e-6 * args.latency, 1e9 * args.bandwidth),
        Link(1e-6 * args.machine_latency, 1e9 * args.machine_bandwidth), args.gpus_per_machine,
    )  # fmt: skip


def table(model: Model, num_envs: int) -> str:
    """Frames a second with 1, 2, 4, ... GPUs: so many envs in all, and so many on each."""
    lines, gpus = [], 1
    while gpus <= min(MOST_GPUS, num_envs):
        divided, whole = num_envs / gpus, float(num_envs)
        fps, grown = model.fps(divided, gpus), model.fps(whole, gpus)
        share = model.averaging(divided, gpus) * fps / (num_envs * model.frames)
        lines.append([
            f"{gpus:,}", f"{divided:,.1f}", f"{fps:,.0f}", f"{fps / model.fps(whole, 1):.2f}",
            f"{share:.0%}", f"{grown:,.0f}", f"{grown / gpus / model.fps(whole, 1):.0%}",
        ])  # fmt: skip
        gpus *= 2
    head = ("GPUs", "envs of each", "FPS", "times one", "averaging", "FPS with as many envs each",
            "of linear")  # fmt: skip
    return columns(head, lines)


def worth(model: Model, num_envs: int, gain: float) -> int:
    """The most GPUs, doubled from one, of which each doubling was so many times as fast."""
    gpus = 1
    while 2 * gpus <= min(MOST_GPUS, num_envs) and (
        model.fps(num_envs / (2 * gpus), 2 * gpus) >= gain * model.fps(num_envs / gpus, gpus)
    ):
        gpus *= 2
    return gpus


def errors(model: Model, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each measured number of envs and GPUs: what was measured and foretold."""
    measured: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        key = (_gpus(row), row["num_envs"])
        measured.setdefault(key, []).append(row["fps"])
    found = []
    for (gpus, envs), values in sorted(measured.items()):
        fps, foretold = statistics.median(values), model.fps(envs / gpus, gpus)
        found.append(
            f"{gpus} GPU{'s' if gpus > 1 else ''}, {envs:,} envs: measured {fps:,.0f} FPS, the "
            f"model says {foretold:,.0f} ({foretold / fps - 1:+.0%})"
        )
    return found


def run(args: Args) -> None:
    """Prints what the rows foretell.

    Raises:
        ValueError: an argument is wrong, or the rows are not enough.
        OSError: a file cannot be read.
    """
    at_least(1, args, "num_envs", "parameters", "gpus_per_machine", "gain")
    above(0, args, "bandwidth", "machine_bandwidth")
    at_least(0, args, "latency", "machine_latency")
    rows = usable(row for path in args.rows for row in read_rows(path))
    model = fit(rows, args)
    num_envs = args.num_envs or max(row["num_envs"] for row in rows if _gpus(row) == 1)
    most = worth(model, num_envs, args.gain)
    sys.stdout.write(
        f"A step takes {1e3 * model.fixed:.3f} ms, and {1e6 * model.per_env:.3f} us for each env "
        "of a GPU.\n" + "".join(f"{line}\n" for line in errors(model, rows))
        + f"\n{table(model, num_envs)}\n\nWith {num_envs:,} envs in all {most:,} "
        f"GPU{'s are' if most > 1 else ' is'} worth it: twice as many are not {args.gain:g} times "
        "as fast.\n"
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Foretells; returns the exit status."""
    return run_program("python -m cule.train.scaling", Args, run, argv)


if __name__ == "__main__":
    sys.exit(main())
