"""Measures the speed of emulation, of play with the network and of training, and its parts.

    python -m examples.a2c_vtrace.measure --game assault --num-envs 256 1024 --results out.jsonl

Each number of envs gives three rows, as in the paper's figure 4: mode emulation-only (random
actions), with-policy (the network chooses, nothing is learned) and training. Settings of training
are those of train.py, as --train.NAME.

The row of training says how the milliseconds of an iteration are spent. Each operation of the plan
is timed alone, over many calls. `idle` is the time of an iteration less the sum of its parts; with
overlap it is negative.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from cule.train.command import run_program
from cule.train.emulator import FRAMESKIP
from cule.train.plan.execution import Step
from cule.train.plan.graphs import CALLS_BEFORE_CAPTURE, CudaStreams
from cule.train.rows import Utilization, append_row, row_of
from cule.train.trainer import Trainer
from cule.train.world import World
from examples.a2c_vtrace import train


@dataclass
class Args:
    """Measures emulation, play and training side by side."""

    game: str = "assault"
    """what to play"""
    num_envs: tuple[int, ...] = (256, 1024, 4096, 16384, 65536)
    """numbers of envs; each is a case"""
    seconds: float = 5.0
    """how long to measure each mode; each part of training gets a tenth of it"""
    warmup_steps: int = 500
    """steps before measuring, so that games are at different points"""
    train: train.Args = field(
        default_factory=lambda: train.Args(num_batches=1, num_steps=5, steps_per_update=5, game="")
    )
    """settings of training; vanilla A2C by default"""
    progress: bool = True
    """show a progress bar"""
    results: Path | None = None
    """file to which the rows are appended, as JSON lines"""


class Meter:
    """Times the parts of a Trainer.

    Args:
        args: the settings of training.
        world: this process, alone.
        warmup_steps: steps played at random before anything is measured.
    """

    def __init__(self, args: train.Args, world: World, warmup_steps: int):
        self.args, self.world = args, world
        self.trainer = Trainer(train.A2C(args), world)
        stage, count = self.trainer.stage, self.trainer.stage.num_actions
        actions = torch.zeros(stage.num_envs, dtype=torch.int64, device=world.device)
        self.emulate = self.graphed(lambda: stage.step(actions.random_(0, count)), stage.captured)
        acting = [self.operation(name) for name in ("act", "emulate")]
        self.play = self.graphed(lambda: [part() for part in acting], stage.captured)
        for _ in range(warmup_steps):
            self.emulate()

    def operation(self, name: str) -> Callable[[], None]:
        """Calls an operation of the plan, at the same time again and again."""
        for executor in self.trainer.plan.executors:
            for found in executor.group.operations:
                if found.name == name:
                    step = Step(0, 0, ((found, ((0, 0),)),))
                    return lambda: executor.make(step)
        raise ValueError(f"expected an operation {name} in the plan")

    def graphed(self, function: Callable[[], Any], captured: bool = True) -> Callable[[], Any]:
        """The function, as a CUDA graph if there can be one."""
        if not (self.args.cuda_graphs and captured):
            return function
        for _ in range(CALLS_BEFORE_CAPTURE):
            function()
        return CudaStreams(self.world.device, 0).capture(lambda: function() and None)

    def seconds_of(self, function: Callable[[], Any], seconds: float) -> float:
        """How long a call takes, on average over `seconds` of calls without a wait between them."""
        for _ in range(CALLS_BEFORE_CAPTURE + 2):
            function()
        calls = 1
        while True:
            self.world.synchronize()
            begun = time.perf_counter()
            for _ in range(calls):
                function()
            self.world.synchronize()
            passed = time.perf_counter() - begun
            if passed >= seconds / 2:
                return passed / calls
            calls = max(calls + 1, round(calls * min(10.0, seconds / max(passed, 1e-9))))

    def milliseconds(self, iteration: float, seconds: float) -> dict[str, float]:
        """How the seconds of an iteration are spent, in milliseconds, by operation."""
        spent = {}
        for executor in self.trainer.plan.executors:
            for operation in executor.group.operations:
                calls = self.trainer.plan.program.period // operation.domain.every
                part = self.graphed(self.operation(operation.name), operation.captured)
                each = self.seconds_of(part, seconds)
                spent[operation.name] = calls * operation.domain.times * each * 1e3
        spent["idle"] = iteration * 1e3 - sum(spent.values())
        return {name: round(value, 4) for name, value in spent.items()}


def measure(args: Args, num_envs: int, world: World) -> list[dict[str, Any]]:
    """The rows for one number of envs."""
    settings = dataclasses.replace(args.train, game=args.game, num_envs=num_envs, warmup_steps=0)
    settings = settings.on(world.device)
    settings.check(1)
    meter = Meter(settings, world, args.warmup_steps)
    rows = []

    def add(mode: str, fps: float, **more: Any) -> None:
        rows.append(row_of(
            system=settings.emulator, mode=mode, game=args.game, num_envs=num_envs, fps=fps,
            device=world.device, threads=settings.num_threads, **more,
        ))  # fmt: skip

    for mode, function in (("emulation-only", meter.emulate), ("with-policy", meter.play)):
        with Utilization(world.device) as utilization:
            seconds = meter.seconds_of(function, args.seconds)
        add(mode, num_envs * FRAMESKIP / seconds, model=settings.model, **utilization.row())
    trainer = meter.trainer
    while trainer.phases <= CALLS_BEFORE_CAPTURE:
        trainer.iterate()
    with Utilization(world.device) as utilization:
        seconds = meter.seconds_of(trainer.iterate, args.seconds)
    names = ("model", "overlap", "num_batches", "num_steps", "steps_per_update", "updates_at_once",
             "multiprocessors", "bf16", "channels_last", "compile", "cuda_graphs",
             "seed")  # fmt: skip
    add(
        "training", num_envs * FRAMESKIP * settings.steps_per_update / seconds,
        algorithm=trainer.algorithm.name, num_gpus=1,
        updates_per_second=round(settings.updates_at_once / seconds, 2),
        iteration_milliseconds=round(seconds * 1e3, 4),
        part_milliseconds=meter.milliseconds(seconds, args.seconds / 10),
        score=None, frames=trainer.frames, seconds_to_score=None,
        **{name: getattr(settings, name) for name in names}, **utilization.row(),
    )  # fmt: skip
    trainer.close()
    return rows


def run(args: Args) -> list[dict[str, Any]]:
    """Measures all cases; returns the rows.

    Raises:
        ValueError: a setting is not as it should be.
    """
    args.train.use_threads()
    world = World.join(args.train.device)
    rows = []
    for num_envs in tqdm(args.num_envs, disable=not args.progress, file=sys.stderr, unit="case"):
        some = measure(args, num_envs, world)
        for row in some:
            append_row(row, args.results)
            print(f"{row['game']}, {num_envs:>6} envs, {row['mode']:<14} {row['fps']:>12,.0f} FPS")
        print("  milliseconds of an iteration:", json.dumps(some[-1]["part_milliseconds"]))
        rows += some
    return rows


def main() -> int:
    """Measures; returns the exit status."""
    return run_program("python -m examples.a2c_vtrace.measure", Args, run)


if __name__ == "__main__":
    sys.exit(main())
