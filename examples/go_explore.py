"""Exploration by forking, after Go-Explore (Ecoffet et al., 2021): acts at random from rare states.

A cell is a picture scaled down to a few coarse pixels. After each round, consoles in cells that
have been seen often become copies of consoles in rare ones. States are copied on the device, not
through the host.

    python examples/go_explore.py pitfall --num-envs 512 --rounds 200
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from torch.nn.functional import adaptive_avg_pool2d
from tqdm import tqdm

import cule
from cule.programs.command_line import exit_status_of

CELL_COUNT = 1 << 22  # a cell is known by a hash of this many values
SHADES, ROWS, COLUMNS = 8, 11, 8


def cells_of(observations: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """The cells, (n,) int64, of the newest frames of (n, stack, height, width) uint8
    observations."""
    small = adaptive_avg_pool2d(observations[:, -1:].float(), (ROWS, COLUMNS)).flatten(1)
    return ((small * SHADES / 256).long() * factors).sum(1) % CELL_COUNT


def now(device: torch.device) -> float:
    """Seconds on a clock, once the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def main() -> None:
    """Explores, and prints how many cells were seen."""
    parser = argparse.ArgumentParser(
        prog="python examples/go_explore.py", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "game", nargs="?", default="ms_pacman", help="what to play (default: ms_pacman)"
    )
    parser.add_argument("--num-envs", type=int, default=128, help="consoles (default: 128)")
    parser.add_argument(
        "--rounds", type=int, default=50, help="rounds, each ended by a fork (default: 50)"
    )
    parser.add_argument("--steps", type=int, default=10, help="steps of a round (default: 10)")
    parser.add_argument("--no-forks", action="store_true", help="only act at random, to compare")
    parser.add_argument("--device", help="cpu or cuda (default: cuda if there is one)")
    options = parser.parse_args()
    if options.rounds < 1 or options.steps < 1:
        parser.error(
            f"expected --rounds and --steps to be at least 1, got {options.rounds} and "
            f"{options.steps}"
        )

    torch.manual_seed(0)
    env = cule.AtariEnv(options.game, options.num_envs, options.device)
    device, everyone = env.device, torch.arange(options.num_envs, device=env.device)
    factors = torch.randint(CELL_COUNT, (ROWS * COLUMNS,), device=device)
    visits = torch.zeros(CELL_COUNT, device=device)
    one = torch.ones(options.num_envs, device=device)
    env.reset(seed=0)
    forks, seconds = 0, 0.0
    for _ in tqdm(range(options.rounds), unit="round"):
        for _ in range(options.steps):
            actions = torch.randint(env.single_action_space.n, (options.num_envs,), device=device)
            cells = cells_of(env.step(actions)[0], factors)
            visits.index_add_(0, cells, one)
        if not options.no_forks:
            sources = torch.multinomial(visits[cells].rsqrt(), options.num_envs, replacement=True)
            moved = torch.nonzero(sources != everyone).squeeze(1)
            begin = now(device)
            env.copy_state(sources[moved], moved)
            seconds += now(device) - begin
            forks += len(moved)
    env.close()
    print(
        f"{int((visits > 0).sum()):,} cells seen in "
        f"{options.rounds * options.steps * options.num_envs:,} steps"
    )
    if forks:
        print(f"{forks:,} forks, {forks / seconds:,.0f} a second")


if __name__ == "__main__":
    sys.exit(exit_status_of("go_explore", main))
