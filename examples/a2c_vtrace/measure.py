"""Measures the speed of emulation, inference and training, and the parts of a training iteration.

    python -m examples.a2c_vtrace.measure --game assault --num-envs 256 1024 --results out.jsonl

Each number of envs gives three rows, as in the paper's figure 4: mode emulation-only (random
actions), with-policy (the network chooses, nothing is learned) and training. Settings of training
are those of train.py, as --train.NAME.

The row of training says how the milliseconds of an iteration are spent. Each part is timed alone,
over many calls like those in training. `idle` is the time of an iteration less the sum of its
parts; with overlap it is negative.
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

from examples.a2c_vtrace import arguments
from examples.a2c_vtrace.model import sample
from examples.a2c_vtrace.trainer import Trainer
from examples.a2c_vtrace.world import World
from examples.common.emulator import FRAMESKIP
from examples.common.graphed import CALLS_BEFORE_CAPTURE, Graphed
from examples.common.program import run_program
from examples.common.results import Utilization, append_row, row_of


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
    """steps before measuring, so that the games are in different states"""
    train: arguments.Args = field(
        default_factory=lambda: arguments.Args(
            num_batches=1, n_steps=5, steps_per_update=5, game=""
        )
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

    def __init__(self, args: arguments.Args, world: World, warmup_steps: int):
        self.args, self.world = args, world
        self.trainer = Trainer(args, world)
        env, player, learner = self.trainer.env, self.trainer.player, self.trainer.learner
        rollout, policy = player.rollout, player.policy
        actions = torch.zeros(env.num_envs, dtype=torch.int64, device=world.device)
        count = int(env.single_action_space.n)
        observations, (frames, *_) = rollout.observations(), env.step(actions)
        step = {
            name: getattr(rollout, name)[0].clone()
            for name in ("actions", "log_mu", "rewards", "discounts")
        }
        step["played"] = rollout.played[0].clone()
        started = torch.zeros_like(step["played"])
        group = torch.arange(learner.group_size, device=world.device)

        @torch.no_grad()
        def store() -> None:
            rollout.observations()
            rollout.append(step, frames, started)

        @torch.no_grad()
        def infer() -> None:
            sample(policy(observations)[0])

        def gather() -> None:
            for chunk in learner.chunks:
                rollout.batch(learner.end, group[chunk])

        def learn() -> None:
            learner.compute_gradient()
            learner.apply_gradient()

        def graphed(function: Callable[[], Any]) -> Callable[[], Any]:
            return Graphed(function) if args.cuda_graphs else function

        def on_env(function: Callable[[], Any]) -> Callable[[], Any]:
            return graphed(function) if args.emulator == "cule" else function

        self.emulate = on_env(lambda: env.step(actions.random_(0, count)))
        self.play = on_env(player.step)
        # The parts of an iteration: name, function, number of calls.
        steps, updates = args.steps_per_update, args.updates_at_once
        self.parts = (
            ("emulation", self.emulate, steps),
            ("inference", graphed(infer), steps),
            ("storage", graphed(store), steps),
            ("gathering", graphed(gather), updates),
            ("learning", graphed(learn), updates),
            ("handing over", self.trainer.hand_over, 1),
        )
        for _ in range(warmup_steps):
            self.emulate()

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
        """How the seconds of an iteration are spent, in milliseconds, by part."""
        spent = {
            name: calls * 1e3 * self.seconds_of(part, seconds) for name, part, calls in self.parts
        }
        # The learner gathers its batch itself.
        spent["learning"] -= spent["gathering"]
        spent["idle"] = iteration * 1e3 - sum(spent.values())
        return {name: round(value, 4) for name, value in spent.items()}


def measure(args: Args, num_envs: int, world: World) -> list[dict[str, Any]]:
    """The rows for one number of envs."""
    train = dataclasses.replace(args.train, game=args.game, num_envs=num_envs, warmup_steps=0)
    train = train.on(world.device)
    train.check(1)
    meter = Meter(train, world, args.warmup_steps)
    rows = []

    def add(mode: str, fps: float, **more: Any) -> None:
        rows.append(row_of(
            system=train.emulator, mode=mode, game=args.game, num_envs=num_envs, fps=fps,
            device=world.device,
            threads=train.num_threads, **more,
        ))  # fmt: skip

    for mode, function in (("emulation-only", meter.emulate), ("with-policy", meter.play)):
        with Utilization(world.device) as utilization:
            seconds = meter.seconds_of(function, args.seconds)
        add(mode, num_envs * FRAMESKIP / seconds, model=train.model, **utilization.row())
    while meter.trainer.updates <= CALLS_BEFORE_CAPTURE:
        meter.trainer.iterate()
    with Utilization(world.device) as utilization:
        seconds = meter.seconds_of(meter.trainer.iterate, args.seconds)
    add(
        "training", num_envs * FRAMESKIP * train.steps_per_update / seconds,
        algorithm=train.algorithm, num_gpus=1,
        updates_per_second=round(train.updates_at_once / seconds, 2),
        iteration_milliseconds=round(seconds * 1e3, 4),
        part_milliseconds=meter.milliseconds(seconds, args.seconds / 10), model=train.model,
        overlap=train.overlap,
        num_batches=train.num_batches, n_steps=train.n_steps,
        steps_per_update=train.steps_per_update,
        updates_at_once=train.updates_at_once, multiprocessors=train.multiprocessors,
        bf16=train.bf16, channels_last=train.channels_last, compile=train.compile,
        cuda_graphs=train.cuda_graphs,
        seed=train.seed, score=None, frames=meter.trainer.frames, seconds_to_score=None,
        **utilization.row(),
    )  # fmt: skip
    meter.trainer.close()
    return rows


def run(args: Args) -> list[dict[str, Any]]:
    """Measures all cases; returns the rows.

    Raises:
        ValueError: a setting is wrong.
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
    return run_program("examples.a2c_vtrace.measure", Args, run)


if __name__ == "__main__":
    sys.exit(main())
