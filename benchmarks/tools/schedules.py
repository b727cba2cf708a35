"""Two schedules from one algorithm (TimeRL's figure 11): whole returns, and n-step returns.

    python -m benchmarks.tools.schedules --n-step 8 64 --plot schedules.png

REINFORCE with returns of all `--num-steps` steps learns after them; with n-step returns gradients
are computed beside the steps that follow. The latter is also measured with that pass switched off
(`Passes(beside=False)`), and on a GPU with `--apart` on multiprocessors that only act and others
that only learn. Iterations are in turns. Appends a row for each to `--results`: seconds of
an iteration, the plan's rings and what gradients need, and on a GPU the most memory that torch
allocated from the trainer's construction on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cule.programs.figures import new_figure
from cule.programs.results import append_row, command_line, commit, machine, now
from cule.train.distributed.process_group import ProcessGroup
from cule.train.layout import Layout
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer
from examples.reinforce import reinforce

WARM_UP = 4  # iterations, in which graphs are captured


@dataclass
class Measured:
    """A schedule that is measured.

    Attributes:
        name: for the plot.
        facts: of its row.
        iterations: runs an iteration each time that it is asked for one.
        seconds: of its iterations so far.
    """

    name: str
    facts: dict[str, Any]
    iterations: Generator[None, None, None]
    seconds: list[float]


def iterations_of(trainer: Trainer) -> Generator[None, None, None]:
    """A trainer's iterations; closes it in the end."""
    with closing(trainer):
        while True:
            trainer.iterate()
            yield


def seconds_of(iterations: Generator[None, None, None], device: str) -> float:
    """How long the next iteration takes."""
    begun = time.perf_counter()
    next(iterations)
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def prepared(
    args: argparse.Namespace, n_step: int | None, *, beside: bool, layout: str = "together"
) -> Measured:
    """A schedule, with its graphs captured."""
    device = torch.device(args.device)
    settings = reinforce.Args(
        game=args.game, device=args.device, num_envs=args.num_envs, num_steps=args.num_steps,
        n_step=n_step, num_threads=args.num_threads, width=args.width, total_frames=10**12,
        layout=layout,
    ).on(device)  # fmt: skip
    settings.check(1)
    on_gpu, before = device.type == "cuda", 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    processes = ProcessGroup(0, 1, device, Layout.parse(layout))
    trainer = Trainer(reinforce.Reinforce, settings, processes, Passes(beside=beside))
    returns = "whole returns" if n_step is None else f"{n_step}-step returns"
    iterations = iterations_of(trainer)
    for _ in range(WARM_UP):
        seconds_of(iterations, args.device)
    memory, work = trainer.plan.memory, trainer.learner.work
    facts = {
        "n_step": n_step, "beside": bool(beside and n_step), "layout": layout,
        "ring_bytes": memory.ring_bytes,
        "gradient_bytes": work.bytes,
        "peak_bytes": torch.cuda.max_memory_allocated(device) - before if on_gpu else None,
    }  # fmt: skip
    name = returns + (", beside" if facts["beside"] else "")
    return Measured(name + f", {layout}" * (layout != "together"), facts, iterations, [])


def measure(args: argparse.Namespace) -> list[Measured]:
    """All schedules, in turns."""
    found = [prepared(args, None, beside=False)]
    for n_step in args.n_step:
        found += [prepared(args, n_step, beside=beside) for beside in (False, True)]
        found += [
            prepared(args, n_step, beside=True, layout=f"apart:{each}") for each in args.apart
        ]
    for _ in range(args.rounds):
        for one in found:
            one.seconds.append(seconds_of(one.iterations, args.device))
    return found


def draw(found: list[Measured], path: Path) -> None:
    """Seconds of an iteration, and memory, as bars."""
    figure = new_figure(path)
    times, memory = figure.subplots(2, 1, sharex=True)
    names = [one.name.replace(" returns", "") for one in found]
    times.bar(names, [statistics.median(one.seconds) * 1e3 for one in found])
    times.set_ylabel("milliseconds")
    memory.bar(names, [one.facts["ring_bytes"] / 2**20 for one in found], label="rings")
    memory.bar(
        names, [one.facts["gradient_bytes"] / 2**20 for one in found], label="a gradient",
        bottom=[one.facts["ring_bytes"] / 2**20 for one in found],
    )  # fmt: skip
    memory.set_ylabel("MiB")
    memory.tick_params("x", rotation=30)
    memory.legend()
    figure.savefig(path)


def main() -> int:
    """Does what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="pong")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--num-steps", type=int, default=1024)
    parser.add_argument("--n-step", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--num-threads", type=int, default=1, help="of envs on a CPU")
    parser.add_argument(
        "--apart", type=int, nargs="*", default=[], help="also with so many multiprocessors to act"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("schedules.jsonl"))
    parser.add_argument("--plot", type=Path, default=None)
    args = parser.parse_args()
    found = measure(args)
    facts = ("game", "num_envs", "num_steps", "width", "rounds")
    common = {
        "commit": commit(), "date": now(), **machine(torch.device(args.device), args.num_threads),
        **{name: getattr(args, name) for name in facts}, "command": command_line(),
    }  # fmt: skip
    for one in found:
        row = {"mode": "schedules", "seconds": statistics.median(one.seconds), **one.facts}
        append_row(args.results, {**common, **row, "all_seconds": one.seconds})
        sys.stdout.write(f"{one.name:24} {row['seconds'] * 1e3:10.1f} ms\n")
        one.iterations.close()
    if args.plot is not None:
        draw(found, args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
