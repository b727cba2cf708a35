"""Many games in one batch: the usual 57 games, with one action space for all.

python examples/mixed_games.py --envs-per-game 64 --steps 1000
"""

from __future__ import annotations

import argparse
import sys

import torch
from tqdm import tqdm

import cule
from cule.programs.command_line import exit_status_of


def main() -> None:
    """Plays at random, and prints the mean score of each game."""
    parser = argparse.ArgumentParser(
        prog="python examples/mixed_games.py", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--games", nargs="+", default=cule.ATARI_57, metavar="GAME", help="(default: 57 games)"
    )
    parser.add_argument(
        "--envs-per-game", type=int, default=2, help="consoles of each game (default: 2)"
    )
    parser.add_argument(
        "--steps", type=int, default=200, help="steps of four frames (default: 200)"
    )
    parser.add_argument("--device", help="cpu or cuda (default: cuda if there is one)")
    options = parser.parse_args()
    if options.envs_per_game < 1 or options.steps < 1:
        parser.error(
            f"expected --envs-per-game and --steps to be at least 1, got {options.envs_per_game} "
            f"and {options.steps}"
        )

    games = len(options.games)
    env = cule.AtariEnv(options.games, games * options.envs_per_game, options.device)
    generator = torch.Generator(env.device).manual_seed(0)
    actions = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
    scores = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
    print(
        f"{env.num_envs} consoles of {games} games on {env.device}, {env.single_action_space.n} "
        "actions"
    )
    env.reset(seed=0)
    for _ in tqdm(range(options.steps), unit="step"):
        info = env.step(actions.random_(0, int(env.single_action_space.n), generator=generator))[4]
        scores += info["raw_reward"]
    means = scores.view(games, options.envs_per_game).double().mean(1).tolist()
    for game, mean in zip(env.games[:: options.envs_per_game], means, strict=True):
        print(f"{game.name:<20}{mean:>10.1f} points a console")
    env.close()


if __name__ == "__main__":
    sys.exit(exit_status_of("mixed_games", main))
