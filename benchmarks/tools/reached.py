"""What share of the instructions that an agent executes its game's kernel has.

    python -m benchmarks.tools.reached runs/phoenix --steps 200 600 1200

The agent of a run plays on the CPU. After so many steps it is looked what its envs execute, as
AtariEnv.translate_again does, and printed which share of that is in blocks: of those that random
play gives, and of those with all that was seen so far (design/translation.md). No GPU is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import tyro

import cule
from cule import translation
from cule.rom import find_game
from cule.train.evaluate.policies import full_actions_of, load_policy
from cule.train.nn.models import sample
from cule.translation.blocks import share_of
from cule.translation.executed import both, profile_from


@dataclass
class Args:
    """Prints which share of the instructions that an agent executes is in blocks."""

    run: tyro.conf.Positional[Path]
    """the run folder that training wrote"""
    steps: tuple[int, ...] = (200, 600, 1200)
    """after how many steps of each env it is looked"""
    num_envs: int = 24
    """envs that play"""
    program: tuple[str, ...] = ()
    """modules or scripts that have the algorithm's code, as evaluate has it"""


@torch.no_grad()
def main() -> None:
    """Plays and prints."""
    args = tyro.cli(Args)
    policy, state = load_policy(args.run, torch.device("cpu"), args.program)
    game, generator = find_game(state["args"]["game"]), torch.Generator().manual_seed(0)
    env = cule.AtariEnv(
        game.name, args.num_envs, "cpu", full_action_space=full_actions_of(state)
    )  # fmt: skip
    observations, _ = env.reset(seed=1)
    played = translation.profile(game)
    random = translation.blocks_of(game)
    print("| steps | in blocks of random play | in blocks of all play | instructions in blocks |")
    print("|---:|---:|---:|---:|")
    for step in range(1, max(args.steps) + 1):
        observations, *_ = env.step(sample(policy(observations), generator))
        if step in args.steps:
            now = profile_from(game, env.clone_state().consoles())
            played = both(played, now)
            blocks = translation.blocks_of(game, played)
            shares = f"{share_of(random, now):.1%} | {share_of(blocks, now):.1%}"
            print(f"| {step:,} | {shares} | {sum(map(len, blocks)):,} |", flush=True)
    env.close()


if __name__ == "__main__":
    main()
