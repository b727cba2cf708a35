"""Several processes on a GPU against one: frames a second of serving and of training.

    python -m benchmarks.tools.instances --what serving a2c ppo --envs 1200 4800 19200
    python -m cule.train.mps -- torchrun --nproc-per-node 2 -m benchmarks.tools.instances --each 2
    torchrun --nproc-per-node 8 -m benchmarks.tools.instances --each 2 --reduction hierarchical

The question of GMI-DRL's figures 7 and 11 and its table 7. --each says how many of torchrun's
processes share a GPU; the envs are divided among all of them. Serving is acting without learning;
a2c is A2C with V-trace. A JSON line for each game, kind of work and number of envs.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
from collections.abc import Callable
from typing import Any, get_args

from cule.programs.results import command_line, commit, machine, now
from cule.train.distributed.process_group import ProcessGroup
from cule.train.layout import Layout, Strategy
from cule.train.trainer import Trainer
from cule.train.tune import trial
from examples.a2c_vtrace import train as a2c
from examples.ppo import ppo

# Later than any step.
NEVER = 2**40
# Iterations of serving in which graphs are captured, and between two looks at the clock.
WARM_UP, LOOK = 8, 32
# Of an epoch of PPO, whatever the number of envs.
MINIBATCHES = 8


class Serving(a2c.A2C):
    """Acts, and never learns."""

    def learning(self) -> Any:
        """It would begin after the end of time."""
        return dataclasses.replace(super().learning(), start=NEVER)


ALGORITHMS: dict[str, tuple[Callable[[Any], Any], Callable[..., Any]]] = {
    "serving": (Serving, a2c.Args), "a2c": (a2c.A2C, a2c.Args), "ppo": (ppo.PPO, ppo.Args),
}  # fmt: skip


def serving_fps(
    make: Callable[[Any], Any], args: Any, processes: ProcessGroup, seconds: float
) -> float:
    """Frames a second, over all processes."""
    with processes.all_or_none():
        trainer = Trainer(make, args, processes)
        trainer.warm_up()
    try:
        for _ in range(WARM_UP):
            trainer.iterate()
        begun, took = trainer.frames, 0.0
        while took < seconds:
            took += trial.timed(trainer, LOOK)
        return (trainer.frames - begun) / took
    finally:
        trainer.close()


def measured_fps(what: str, args: Any, processes: ProcessGroup, seconds: float) -> float:
    """Frames a second of a kind of work, over all processes.

    Raises:
        ValueError: the settings do not work.
    """
    make = ALGORITHMS[what][0]
    if what == "serving":
        return serving_fps(make, args, processes, seconds)
    found = trial.measure(make, args, {}, processes, seconds=seconds)
    if found.problem:
        raise ValueError(found.problem)
    return found.fps


def fps_of(
    what: str, game: str, envs: int, reduction: Strategy | None, processes: ProcessGroup,
    options: argparse.Namespace,
) -> float:  # fmt: skip
    """Frames a second of a case.

    Raises:
        ValueError: the settings do not work.
    """
    args = ALGORITHMS[what][1](
        game=game, num_envs=envs, layout=str(processes.layout), lag=options.lag,
        device=options.device, reduction=reduction,
    ).on(processes.device)  # fmt: skip
    if what == "ppo":
        each = envs * args.num_steps // processes.size // MINIBATCHES
        args = dataclasses.replace(args, minibatch_size=each)
    args.check(processes.size)
    return measured_fps(what, args, processes, options.seconds)


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--games", nargs="+", default=["pong", "breakout", "space_invaders"])
    parser.add_argument("--what", nargs="+", choices=list(ALGORITHMS), default=list(ALGORITHMS))
    parser.add_argument("--envs", nargs="+", type=int, default=[1200, 4800, 19200])
    parser.add_argument("--each", type=int, default=1, help="processes on a GPU")
    parser.add_argument("--reduction", nargs="+", choices=get_args(Strategy), default=[None],
                        help="table 7: the ways")  # fmt: skip
    parser.add_argument("--lag", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--device")
    options = parser.parse_args()
    processes = ProcessGroup.join(options.device, Layout.staggered(options.each))
    cases = itertools.product(options.games, options.what, options.envs, options.reduction)
    for game, what, envs, reduction in cases:
        row = {"game": game, "what": what, "num_envs": envs, "each": options.each,
               "lag": options.lag, "reduction": reduction}  # fmt: skip
        try:
            row["fps"] = round(fps_of(what, game, envs, reduction, processes, options))
        except (RuntimeError, ValueError) as problem:
            row["problem"] = str(problem).partition("\n")[0]
        if processes.rank == 0:
            row |= {"commit": commit(), "date": now(), "system": "cule", "mode": "instances",
                    "num_gpus": processes.num_devices, **machine(processes.device, 1),
                    "command": command_line()}  # fmt: skip
            print(json.dumps(row), flush=True)
    processes.leave()


if __name__ == "__main__":
    main()
