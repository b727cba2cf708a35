"""Each operation's GPU time inside a recorded iteration, beside the same part run alone.

    python -m benchmarks.tools.scope_alone --results benchmarks/results/DATE.jsonl

Without a lag they have to agree within 5%. A2C+V-trace, whose iteration is a CUDA graph. The
parts run alone as graphs of their own, after work that takes the GPU's cache. Both times are those
in which the GPU worked, without the gaps between kernels.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cule import scope
from cule.programs.results import PROFILER, append_row, command_line, commit, machine, now
from cule.scope.events import BOOKKEEPING
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.draws import keyed
from cule.train.plan.graphs import CALLS_BEFORE_CAPTURE, CudaStreams
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C, Args

REPLAYS = 50
# Bytes: more than any GPU's cache holds.
CACHE = 2**28
OTHER = "other work"


def recorded(function: Callable[[], Any], iterations: int) -> dict[str, float]:
    """Milliseconds of the GPU in a call, by operation, while it is recorded."""
    with (
        tempfile.TemporaryDirectory() as folder,
        scope.record(folder, iterations=iterations) as recording,
    ):
        for _ in range(iterations + 1):
            with scope.iteration():
                function()
        recording._recorder.stop()
        print("\n".join(recording.problems))
        return {
            one.operation: 1e3 * one.seconds / iterations
            for one in recording.gpu()
            if one.operation != BOOKKEEPING
        }


def milliseconds_alone(name: str, function: Callable[[], Any], device: torch.device) -> float:
    """The GPU's time for a part that runs as a graph of its own, after other work.

    The other work takes the GPU's cache, as that of an iteration does.
    """
    other = torch.empty(CACHE, dtype=torch.uint8, device=device)

    def part() -> None:
        with scope.operation(name):
            function()

    for _ in range(CALLS_BEFORE_CAPTURE):
        part()
    graphed = CudaStreams(device, 0).capture(part)

    def after_other_work() -> None:
        with scope.operation(OTHER):
            other.zero_()
        graphed()

    for _ in range(5):
        after_other_work()
    found = recorded(after_other_work, REPLAYS)
    return sum(found.values()) - found[OTHER]


def parts_of(trainer: Trainer) -> dict[str, Callable[[], None]]:
    """The operations of an iteration, each by itself; a gradient's rows are gathered in it."""
    collector, algorithm = trainer.collector, trainer.algorithm
    [(executor, gradient)] = [
        (executor, planned) for executor in trainer.plan.executors
        for planned in executor.group.operations if planned.name == "gradient"
    ]  # fmt: skip
    observations = torch.zeros(
        (collector.num_envs, 4, 84, 84), dtype=torch.uint8, device=trainer.device
    )
    actions = torch.zeros(collector.num_envs, dtype=torch.int64, device=trainer.device)
    step = torch.zeros(1, dtype=torch.int64, device=trainer.device)

    @torch.no_grad()
    def infer() -> None:
        with trainer.learner.autocast, keyed(trainer.args.seed, 0, step):
            algorithm.act(trainer.acting, observations)

    return {
        "inference": infer,
        "simulation": lambda: collector.step(actions.random_(0, collector.num_actions)) and None,
        "gathering and backpropagation": lambda: executor.try_out(gradient),
        "optimizer": trainer.learner.apply_gradient,
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=1200)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--results", type=Path, default=None)
    args = parser.parse_args()
    device = torch.device("cuda", torch.cuda.current_device())
    settings = Args(
        game="pong", num_envs=args.num_envs, num_batches=20, num_steps=20, steps_per_update=1,
        warmup_steps=20, device="cuda",
    ).on(device)  # fmt: skip
    scope.mark_graphs()
    trainer = Trainer(A2C, settings, ProcessGroup(0, 1, device))
    for _ in range(args.warmup):
        trainer.iterate()
    inside = recorded(trainer.iterate, args.iterations)
    compared = {}
    for name, part in parts_of(trainer).items():
        alone = milliseconds_alone(name, part, device)
        within = sum(inside.get(one, 0.0) for one in name.split(" and "))
        compared[name] = {"inside": round(within, 5), "alone": round(alone, 5)}
        print(f"{name:29} inside {within:8.4f} ms, alone {alone:8.4f} ms: "
              f"{within / alone - 1:+.1%}", flush=True)  # fmt: skip
    trainer.close()
    if args.results is not None:
        append_row(args.results, {
            "commit": commit(), "date": now(), "system": PROFILER, "mode": "profiling-alone",
            **machine(device, 1), "torch": torch.__version__, "num_envs": args.num_envs,
            "command": command_line(), "operations": compared,
        })  # fmt: skip


if __name__ == "__main__":
    main()
