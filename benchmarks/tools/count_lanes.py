"""Counts the instructions that a warp executes when its lanes diverge, without a GPU.

For example `python -m benchmarks.tools.count_lanes pong riverraid`. Plays envs with random actions,
notes each 6507 instruction of a step, and combines envs as the lanes of a warp, which executes an
instruction once for all lanes that are at it. Prints, for each game and width of a warp, how many
instructions it executes in a frame, and how often it changes to other lanes. There are two rules:
lanes that have diverged stay apart until a scanline ends; or the lanes at the lowest place of the
program go first (design/translation.md), in turns of several lengths.

With --blocks it counts under the second rule what blocks of 124 envs execute, in four warps and in
eight: with envs at random, and with envs that are alike side by side, in the order of their keys
(csrc/kernels/cuda/order.cuh).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from cule.console import Group, Options, action_numbers
from cule.engine import Engine
from cule.rom import find_game
from tests.support.build import build_module

ENVS, ENVS_OF_BLOCKS = 62, 992
BLOCK = 124  # envs: 8,192 on 66 multiprocessors
WIDTHS = (8, 16, 31)
TURNS = (1, 2, 4, 8)  # of a stretch (csrc/console/latch_search.h)
FLAGS = ["-O2", "-Wno-unknown-pragmas"]


def trace(module: ModuleType, name: str, steps: int, envs: int) -> Iterator[None]:
    """Each time it is asked, has the module write down a step of envs that have spread out."""
    game = find_game(name)
    groups = [Group(game, game.facts["default_mode"], 0)]
    options, device = Options(autoreset=2), torch.device("cpu")
    engine = Engine(groups, np.zeros(envs, np.uint32), options, device, 2)
    engine.reset(None, torch.arange(envs))
    actions = len(action_numbers(game, "minimal"))
    generator = torch.Generator().manual_seed(1)

    def choose() -> None:
        engine.tensors["actions"][:] = torch.randint(actions, (envs,), generator=generator)

    for _ in range(steps):
        choose()
        engine.step()
        ended = engine.tensors["terminated"] | engine.tensors["truncated"]
        if ended.any():
            engine.reset(ended.to(torch.uint8), None)
    while True:
        choose()
        module.clear()
        for env in range(envs):
            module.trace(engine.batch.address, env)
        yield


def count_warps(module: ModuleType, name: str, steps: int) -> None:
    """Prints what warps of several widths execute."""
    next(trace(module, name, steps, ENVS))
    for width in WIDTHS:
        apart, groups, own = module.count(width, 1, False)
        cells = [f"apart {apart:.0f} ({groups:.0f})"]
        for turn in TURNS:
            executed, groups, _ = module.count(width, turn, True)
            cells.append(f"{turn}: {executed:.0f} ({groups:.0f})")
        print(f"{name} {width} lanes, one env {own:.0f}: {', '.join(cells)}", flush=True)


def count_blocks(module: ModuleType, name: str, steps: int) -> None:
    """Prints what warps and blocks execute with envs in two orders."""
    made = trace(module, name, steps, ENVS_OF_BLOCKS)
    next(made)
    keys = [module.key(env) for env in range(ENVS_OF_BLOCKS)]
    next(made)
    orders = {
        "at random": np.random.default_rng(0).permutation(ENVS_OF_BLOCKS),
        "alike": np.argsort(keys, kind="stable"),
    }
    for warps in (4, 8):
        cells = []
        for what, order in orders.items():
            blocks = order.reshape(-1, BLOCK).tolist()
            found = np.array([module.count_block(block, warps, TURNS[-1]) for block in blocks])
            of_warps, of_blocks = found.T
            cells.append(
                f"{what}: a warp {of_warps.mean() / warps:.0f}, a block {of_blocks.mean():.0f}, "
                f"the slowest {of_blocks.max():.0f}"
            )
        print(f"{name} {warps} warps a block, {'; '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="+")
    parser.add_argument("--steps", type=int, default=300, help="random steps before (default: 300)")
    parser.add_argument("--blocks", action="store_true", help="count what blocks execute")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(__file__).with_suffix(".cpp")
        module = build_module("count_lanes", [source], Path(folder), compile_flags=FLAGS)
    for name in options.games:
        (count_blocks if options.blocks else count_warps)(module, name, options.steps)


if __name__ == "__main__":
    main()
