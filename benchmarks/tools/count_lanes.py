"""Counts the instructions that a warp executes when its lanes diverge, without a GPU.

For example `python -m benchmarks.tools.count_lanes pong riverraid`. Plays envs with random actions,
notes each 6507 instruction of a step, and combines envs as the lanes of a warp, which executes an
instruction once for all lanes that are at it. Prints, for each game and width of a warp, how many
instructions it executes in a frame, and how often it changes to other lanes. There are two rules:
lanes that have diverged stay apart until a scanline ends; or the lanes at the lowest place of the
program go first (design/translation.md), in turns of several lengths.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from cule.console import Group, Options, action_numbers
from cule.engine import Engine
from cule.rom import find_game
from tests.support.build import build_module

ENVS = 62
WIDTHS = (8, 16, 31)
TURNS = (1, 2, 4, 8)  # of a stretch (csrc/console/latch_search.h)
FLAGS = ["-O2", "-Wno-unknown-pragmas"]


def trace(module: ModuleType, name: str, steps: int) -> None:
    """Has the module write down a step of envs that have spread out for some steps."""
    game = find_game(name)
    groups = [Group(game, game.facts["default_mode"], 0)]
    options, device = Options(autoreset=2), torch.device("cpu")
    engine = Engine(groups, np.zeros(ENVS, np.uint32), options, device, 2)
    engine.reset(None, torch.arange(ENVS))
    actions = len(action_numbers(game, "minimal"))
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        engine.tensors["actions"][:] = torch.randint(actions, (ENVS,), generator=generator)
        engine.step()
        ended = engine.tensors["terminated"] | engine.tensors["truncated"]
        if ended.any():
            engine.reset(ended.to(torch.uint8), None)
    module.clear()
    for env in range(ENVS):
        module.trace(engine.batch.address, env)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="+")
    parser.add_argument("--steps", type=int, default=300, help="random steps before (default: 300)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(__file__).with_suffix(".cpp")
        module = build_module("count_lanes", [source], Path(folder), compile_flags=FLAGS)
    for name in options.games:
        trace(module, name, options.steps)
        for width in WIDTHS:
            apart, groups, own = module.count(width, 1, False)
            cells = [f"apart {apart:.0f} ({groups:.0f})"]
            for turn in TURNS:
                executed, groups, _ = module.count(width, turn, True)
                cells.append(f"{turn}: {executed:.0f} ({groups:.0f})")
            print(f"{name} {width} lanes, one env {own:.0f}: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
