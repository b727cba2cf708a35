"""Emulation beside a learner, in five ways: milliseconds of an iteration and frames a second.

    python -m benchmarks.tools.five_ways
    python -m cule.train.mps -- torchrun --nproc-per-node 2 -m benchmarks.tools.five_ways --each 2

A2C with V-trace in Pong, 1,200 envs, three updates an iteration: one after the other (alone); at
the same time with nothing reserved (shared), with half of the multiprocessors reserved for
emulation (padded), or in two disjoint sets of multiprocessors (green, by how many emulate); and in
processes that share the GPU by NVIDIA's service (mps), under torchrun. A JSON line for each.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import Any

import torch

from cule.programs.results import command_line, commit, machine, now
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.emulator import FRAMESKIP, make_env
from cule.train.layout import Layout
from cule.train.tune import trial
from examples.a2c_vtrace.train import A2C, Args


class Shared(A2C):
    """The same with envs that reserve nothing."""

    @classmethod
    def environment(cls, args: Any, num_envs: int, device: torch.device) -> Any:
        """As `train` makes them, but for the reservation."""
        return make_env("cule", args.game, num_envs, device, life_loss_ends=True)


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--game", default="pong")
    parser.add_argument("--num-envs", type=int, default=1200)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--green", nargs="*", type=int, default=[16, 24, 32, 40, 48, 66, 88])
    parser.add_argument("--each", type=int, default=1, help="processes on the GPU")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--device")
    options = parser.parse_args()
    processes = ProcessGroup.join(options.device, Layout.staggered(options.each))
    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "alone": (A2C, {"lag": 0}),
        "shared": (Shared, {}),
        "padded": (A2C, {}),
        **{f"green {count}": (A2C, {"layout": f"apart:{count}"}) for count in options.green},
    }
    if options.each > 1:
        ways = {f"mps {options.each}": (A2C, {})}
    args = Args(
        game=options.game, num_envs=options.num_envs, updates_at_once=options.updates,
        lag=1, layout=str(processes.layout), device=options.device,
    ).on(processes.device)  # fmt: skip
    for _ in range(options.turns):
        for name, (make, settings) in ways.items():
            found = trial.measure(make, args, settings, processes, seconds=options.seconds)
            row = dataclasses.asdict(found) | {
                "way": name, "game": options.game, "num_envs": options.num_envs,
                "iteration_milliseconds": 1e3 * FRAMESKIP * options.num_envs / (found.fps or 1),
                "commit": commit(), "date": now(), "system": "cule", "mode": "five-ways",
                **machine(processes.device, 1), "command": command_line(),
            }  # fmt: skip
            if processes.rank == 0:
                print(json.dumps(row), flush=True)
    processes.leave()


if __name__ == "__main__":
    main()
