"""What the scripts of this folder have in common: their options, and the line that they print."""

import argparse
import importlib.metadata
import time
from contextlib import contextmanager

import torch

# Some libraries play so many steps at once, or a part of them.
FRAMESKIP, STEPS_AT_ONCE = 4, 64


def arguments(purpose, **defaults):
    """The options of a script: a game, envs, steps of each env, a device."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--game", default="pong")
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=128, help="of each env")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", default=default)
    args = parser.parse_args()
    if args.steps < 1 or args.steps % STEPS_AT_ONCE:
        parser.error(f"expected --steps to be a multiple of {STEPS_AT_ONCE}, got {args.steps}")
    return args


@contextmanager
def measuring(package, args):
    """Times a block that plays all steps, and prints its emulated frames a second."""
    begun = time.perf_counter()
    yield
    if args.device != "cpu":
        torch.cuda.synchronize()
    fps = args.num_envs * args.steps * FRAMESKIP / (time.perf_counter() - begun)
    version = importlib.metadata.version(package)
    print(f"{package} {version}: {fps:,.0f} frames a second, {args.num_envs} envs, {args.device}")
