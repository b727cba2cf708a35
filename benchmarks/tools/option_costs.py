"""What options of AtariEnv cost: FPS with each of them beside images alone, in the same run.

    python -m benchmarks.tools.option_costs pong breakout --num-envs 4096 --device cuda

A line for each game and option: million FPS, the median of the rounds, which the options take in
turns, and its part of the speed of images alone. All play random actions. An option that a game
does not have is left out. `--results` appends a row for each line, and `--options` chooses some.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces

import cule
from cule.programs.results import append_row, command_line, commit, machine, now

FRAMESKIP = 4
OPTIONS: dict[str, dict[str, Any]] = {
    "images": {},
    "sound": {"sound_obs": True},
    "objects": {"obs_type": "objects"},
    "images and objects": {"obs_type": ("image", "objects")},
    "RAM": {"obs_type": "ram"},
    "two players": {"num_players": 2},
}


def envs_of(
    game: str, options: list[str], num_envs: int, device: str, threads: int
) -> Iterator[tuple[str, cule.AtariEnv]]:
    """An env of each option that the game has."""
    for name in options:
        if name == "two players" and game not in cule.list_games(2):
            continue
        on_cpu = {"num_threads": threads} if device == "cpu" else {}
        env = cule.AtariEnv(
            game, num_envs, device, output="torch_shared", frameskip=FRAMESKIP, **on_cpu,
            **OPTIONS[name],
        )  # fmt: skip
        env.reset(seed=0)
        yield name, env


def play(env: cule.AtariEnv, steps: int) -> float:
    """Seconds of steps with random actions."""
    space = env.single_action_space
    count = int(space.n if isinstance(space, spaces.Discrete) else space.nvec.min())
    actions = torch.randint(count, (steps, *env.action_space.shape), device=env.device)
    if env.device.type == "cuda":
        torch.cuda.synchronize(env.device)
    begin = time.perf_counter()
    for row in actions:
        env.step(row)
    if env.device.type == "cuda":
        torch.cuda.synchronize(env.device)
    return time.perf_counter() - begin


def main() -> None:
    """Measures as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tools.option_costs", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("games", nargs="+", metavar="GAME")
    add("--options", nargs="+", choices=list(OPTIONS), default=list(OPTIONS), metavar="OPTION",
        help=f"{', '.join(OPTIONS)} (images are always measured)")  # fmt: skip
    add("--num-envs", type=int, default=4096)
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--num-threads", type=int, default=torch.get_num_threads(), help="of a CPU")
    add("--warmup-steps", type=int, default=300)
    add("--steps", type=int, default=100, help="of a round")
    add("--rounds", type=int, default=5)
    add("--results", type=Path, help="append rows to this file, as JSON lines")
    given = parser.parse_args()
    options = list(dict.fromkeys(["images", *given.options]))
    for game in given.games:
        envs = dict(envs_of(game, options, given.num_envs, given.device, given.num_threads))
        for env in envs.values():
            env.wait_until_translated()
            play(env, given.warmup_steps)
        seconds: dict[str, list[float]] = {name: [] for name in envs}
        for _ in range(given.rounds):
            for name, env in envs.items():
                seconds[name].append(play(env, given.steps))
        frames = FRAMESKIP * given.steps * given.num_envs
        images = statistics.median(seconds["images"])
        for name, times in seconds.items():
            fps, part = frames / statistics.median(times), images / statistics.median(times)
            print(f"{game} {given.num_envs} {name:18} {fps / 1e6:8.3f} {part:6.1%}", flush=True)
            if given.results is not None:
                append_row(given.results, {
                    "commit": commit(), "date": now(),
                    **machine(torch.device(given.device), given.num_threads), "system": "cule",
                    "mode": "options", "game": game, "option": name, "num_envs": given.num_envs,
                    "fps": fps, "part_of_images": part,
                    "rounds": [frames / one for one in times], "command": command_line(),
                })  # fmt: skip
        for env in envs.values():
            env.close()


if __name__ == "__main__":
    main()
