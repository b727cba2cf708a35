"""Plays a trained policy on ale-py, not on cule, and prints the score.

    python -m cule.train.evaluate runs/a2c_vtrace --episodes 100 --sticky 0 0.25

Each episode starts with up to 30 no-ops, or with as many as --noops allows. All are played at the
same time, one in each env, so that long episodes count as much as short ones. The actions are those
of the training. They are sampled from the policy, unless --greedy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cule.train.command import run_program
from cule.train.evaluate.evaluation import Args, evaluate


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the evaluation; returns the exit status."""
    return run_program("python -m cule.train.evaluate", Args, evaluate, argv)


if __name__ == "__main__":
    sys.exit(main())
