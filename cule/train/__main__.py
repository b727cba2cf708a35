"""`python -m cule.train`: says how to train, and which programs there are around trainings."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cule.programs.command_line import listed, run_one_of
from cule.programs.directory import PROGRAMS

# The training programs of a checkout of cule, by their modules.
ALGORITHMS = {
    "examples.a2c_vtrace.train": "A2C with V-trace: the most frames a second",
    "examples.dqn.dqn": "DQN with n-step targets and a replay memory",
    "examples.rainbow.rainbow": "Rainbow: DQN with six parts, each a setting",
    "examples.rainbow.btr": "BTR: Rainbow with IQN, Munchausen and the IMPALA ResNet",
    "examples.ppo.ppo": "PPO: the one to begin with",
    "examples.pqn.pqn": "PQN: Q-learning without a replay memory",
    "examples.reinforce.reinforce": "REINFORCE: the shortest program, to learn from",
    "examples.self_play.train": "PPO for both players of a game",
    "examples.go_explore.robustify": "PPO backwards from the end of a demonstration",
}
AROUND = {
    name: entry for name, entry in PROGRAMS.items()
    if entry[0].startswith("cule.train.") and name != "train"
}  # fmt: skip


def overview() -> str:
    """How to train, and the programs with what they do."""
    return "\n".join([
        "To train, in the folder of cule's repository (--help lists the settings):",
        "",
        "  python -m examples.ppo.ppo --game pong --folder runs/pong",
        "",
        "On a CPU that takes hours; make train has a game that is learned within minutes.",
        "",
        *listed(ALGORITHMS),
        "",
        "An algorithm of your own is a program that ends in train.main(Algorithm, Args):",
        "docs/training.md has one in a page.",
        "",
        "Then: python -m cule.train PROGRAM ...   (--help after it lists its options)",
        "",
        *listed({name: what for name, (_, what) in AROUND.items()}),
    ])  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program that the command line names; returns the exit status."""
    return run_one_of("cule.train", AROUND, overview, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
