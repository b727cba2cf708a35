"""How near `train.tune` comes to the best of a full grid, and how long each takes.

    python -m benchmarks.tools.tune_against_grid pong breakout space_invaders
    torchrun --nproc-per-node 4 -m benchmarks.tools.tune_against_grid pong --algorithm a2c

A JSON line for each game; tune's result is written to stderr as soon as it is known. The grid's
fastest and what tune has found are measured once more, in turns, as the maximum of many short
trials is too high.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time

from cule import train
from cule.programs.results import command_line, commit, now
from cule.train.tune import search, trial, tuning
from cule.train.tune.space import read_space
from examples.a2c_vtrace import train as a2c
from examples.ppo import ppo

FINALISTS, TURNS, SECONDS = 2, 3, 2.0
ALGORITHMS = {"a2c": (a2c.A2C, a2c.Args), "ppo": (ppo.PPO, ppo.Args)}


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("games", nargs="+", metavar="GAME")
    parser.add_argument("--search", nargs="+", metavar="SETTING=VALUES")
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="ppo")
    parser.add_argument("--budget-seconds", type=float, default=120.0)
    parser.add_argument("--device")
    options = parser.parse_args()
    make, settings_of = ALGORITHMS[options.algorithm]
    space = read_space(options.search, settings_of) if options.search else None
    for game in options.games:
        args = settings_of(game=game, device=options.device)
        found = train.tune(make, args, space, budget_seconds=options.budget_seconds, again=True)
        with tuning.searching(args) as processes:
            if processes.rank == 0:
                line = f"{game}: {dict(found.best.settings)} after {found.seconds:.1f} s"
                print(line, file=sys.stderr, flush=True)
            filled = args.on(processes.device)

            def measure(settings: dict, seconds: float) -> search.Trial:
                return trial.measure(make, filled, settings, processes, seconds=seconds)  # noqa: B023

            begun = time.monotonic()
            values = itertools.product(*found.space.values())
            points = [dict(zip(found.space, one, strict=True)) for one in values]
            grid = [measure(point, trial.SECONDS) for point in points]
            seconds = time.monotonic() - begun
            fastest = sorted(grid, key=lambda one: -one.fps)[:FINALISTS]
            tuned = dict(found.best.settings)
            rivals = [tuned, *(one.settings for one in fastest if one.settings != tuned)]
            rates = [0.0] * len(rivals)
            for _ in range(TURNS):
                for place, settings in enumerate(rivals):
                    rates[place] += measure(settings, SECONDS).fps / TURNS
        best = max(rates)
        if processes.rank == 0:
            print(json.dumps({
                "commit": commit(), "date": now(), "system": "cule", "mode": "tune-against-grid",
                "command": command_line(), "game": game, "algorithm": options.algorithm,
                "device_name": found.device_name, "num_gpus": processes.size,
                "tuned": tuned, "tuned_fps": round(rates[0]),
                "grid": rivals[rates.index(best)], "grid_fps": round(best),
                "share": round(rates[0] / best, 4),
                "trials": len(found.trials), "combinations": found.combinations,
                "failed": sum(bool(one.problem) for one in grid), "complete": found.complete,
                "tune_seconds": round(found.seconds, 1), "grid_seconds": round(seconds, 1),
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
