"""Envs on the CPU under a training's network: frames a second by envs, groups and threads.

    python -m benchmarks.tools.cpu_envs --envs 64 512 4096 --groups 1 2 4 8 --threads 4 16

The table of the native PufferLib fork ("GPU batch size scaling effect"): acting alone (serving),
and acting and learning (PPO, two epochs of eight minibatches), with groups of envs in flight. Where
there are many envs, PPO learns from fewer steps of each, so that a row does not take minutes.
ale-py's vector environment can be beside them, under the same learner, with all envs at once.
Groups are measured one after the other, in several turns; figures are medians. A JSON line for each
case.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import statistics
from typing import Any

from benchmarks.tools.instances import ALGORITHMS, MINIBATCHES, measured_fps
from cule.programs.results import command_line, commit, machine, now
from cule.train.distributed.process_group import ProcessGroup

WHAT = ["serving", "ppo"]
MOST_SAMPLES = 2**16  # that PPO learns from at once


def args_of(what: str, settings: dict[str, Any], processes: ProcessGroup) -> Any:
    """The settings of a kind of work."""
    if what == "serving":
        settings = {**settings, "num_batches": 1}  # it never learns
    args = ALGORITHMS[what][1](**settings).on(processes.device)
    if what == "ppo":
        steps = min(args.num_steps, MOST_SAMPLES // args.num_envs)
        size = args.num_envs * steps // MINIBATCHES
        args = dataclasses.replace(args, num_steps=steps, minibatch_size=size, update_epochs=2)
    args.check(processes.size)
    return args


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--game", default="pong")
    parser.add_argument("--what", nargs="+", choices=WHAT, default=WHAT)
    parser.add_argument("--envs", nargs="+", type=int, default=[64, 512, 4096])
    parser.add_argument("--groups", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--threads", nargs="+", type=int, default=[4, 16])
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--against-ale", action="store_true")
    parser.add_argument("--device")
    options = parser.parse_args()
    processes = ProcessGroup.join(options.device)
    kinds: list[dict[str, Any]] = [{"env_groups": groups} for groups in options.groups]
    kinds = [{"env_device": "cpu", **kind} for kind in kinds]
    kinds += [{"emulator": "ale-py"}] * options.against_ale
    for what, envs, threads in itertools.product(options.what, options.envs, options.threads):
        turns: list[list[float]] = [[] for _ in kinds]
        problems: list[str | None] = [None for _ in kinds]
        num_steps = None
        for _ in range(options.turns):
            for number, kind in enumerate(kinds):
                settings = {"game": options.game, "num_envs": envs, "num_threads": threads, **kind}
                try:
                    args = args_of(what, {**settings, "device": options.device}, processes)
                    num_steps = args.num_steps
                    turns[number].append(measured_fps(what, args, processes, options.seconds))
                except (RuntimeError, ValueError) as problem:
                    problems[number] = str(problem).partition("\n")[0]
        for kind, fps, problem in zip(kinds, turns, problems, strict=True):
            row = {"commit": commit(), "date": now(), "mode": "cpu-envs", "what": what,
                   "system": kind.get("emulator", "cule"), "game": options.game,
                   "num_envs": envs, "num_steps": num_steps, "env_groups": kind.get("env_groups"),
                   "num_threads": threads, "rounds": [round(each) for each in fps],
                   "fps": round(statistics.median(fps)) if fps else None, "problem": problem,
                   **machine(processes.device, threads), "command": command_line()}  # fmt: skip
            print(json.dumps(row), flush=True)
    processes.leave()


if __name__ == "__main__":
    main()
