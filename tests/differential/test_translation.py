"""Translated games and the interpreter give the same console, to the last bit, after every step.

Blocks are compiled for the CPU here, from the text that is compiled for a GPU at run time.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import cule
from cule import translation
from cule.console import Group, Options
from cule.engine import Engine
from cule.rom import find_game
from cule.translation.executed import both, profile_from
from tests.support.build import CHECKED, build_module
from tests.support.marks import few

# One of each bank-switching scheme at least, programs with stack tricks, and much reading of
# collisions; frames that are not ended by VSYNC, which are long.
QUICK = ("tic_tac_toe_3d",)  # 2K and long frames
GAMES = (
    *QUICK, "up_n_down",
    "pong", "breakout", "freeway", "seaquest", "elevator_action", "montezuma_revenge", "ms_pacman",
    "pitfall2", "robotank",
    "solaris", "klax", "blackjack", "video_chess",
)  # fmt: skip
STEPS = 400
# How many of a step's instructions are in blocks, at least: in long frames those of blocks that
# write nothing to the TIA are; the DPC's registers are read in blocks.
IN_BLOCKS = {"tic_tac_toe_3d": 16_000, "video_chess": 20_000, "pitfall2": 22_000}


def build(game: str, blocks: list[translation.Block], folder: Path) -> ModuleType:
    """Compiles blocks of a game as a module."""
    # Of two modules of one name a process would get the first one twice.
    cases, name = folder / "cases.inc", f"translated_{game}_{len(blocks)}"
    cases.write_text(translation.source_of(find_game(game), blocks))
    flags = [
        *CHECKED, "-Wno-unknown-pragmas",
        f'-DRUN_BLOCK_CASES="{cases}"', f"-DCULE_MODULE={name}", f"-DGAME={find_game(game).index}",
        f"-DLONGEST_BLOCK={translation.longest_block(blocks)}",
        f"-DDECIMAL={int(translation.stays_decimal(blocks))}",
        f"-DIN_RAM={int(translation.runs_in_ram(find_game(game)))}",
    ]  # fmt: skip
    source = Path(__file__).with_name("translated_module.cpp")
    return build_module(name, [source], folder, compile_flags=flags)


def make_engine(game: str, blocks: list[translation.Block], mode: int | None = None) -> Engine:
    found = find_game(game)
    options = Options(reset_pool_size=1, repeat_action_probability=0.25, autoreset=2)
    groups = [Group(found, found.facts["default_mode"] if mode is None else mode, 0)]
    engine = Engine(groups, np.zeros(1, np.uint32), options, torch.device("cpu"), 1)
    engine.memory.place_array("marked_ops", translation.marked_ops(found, blocks))
    engine.reset(None, torch.tensor([5]))
    return engine


@pytest.mark.parametrize("game", few(GAMES, QUICK))
def test_blocks_do_what_the_interpreter_does(game: str, tmp_path: Path) -> None:
    blocks = translation.blocks_of(find_game(game))
    module = build(game, blocks, tmp_path)
    compare(game, module, make_engine(game, blocks), make_engine(game, blocks))


@pytest.mark.slow
def test_blocks_of_what_envs_execute_do_what_the_interpreter_does(tmp_path: Path) -> None:
    """In another mode, whose code random play of the usual one does not reach."""
    game, mode = find_game("breakout"), 44
    env = cule.AtariEnv(game.name, 8, "cpu", mode=mode)
    env.reset(seed=1)
    for step in range(30):
        env.step([step % 4] * 8)
    now = profile_from(game, env.clone_state().consoles())
    blocks = translation.blocks_of(game, both(translation.profile(game), now))
    assert len(blocks) > len(translation.blocks_of(game))
    module = build(game.name, blocks, tmp_path)
    engines = [make_engine(game.name, blocks, mode) for _ in range(2)]
    compare(game.name, module, *engines)


def compare(game: str, module: ModuleType, translated: Engine, interpreted: Engine) -> None:
    """Plays at random, one engine in the module's blocks; both have to be in the same state."""
    generator = torch.Generator().manual_seed(3)
    in_blocks = blocks = looked_up = entries = 0
    for number in range(STEPS):
        action = int(torch.randint(6, (), generator=generator))
        left = []
        for engine in (translated, interpreted):
            engine.tensors["actions"][:] = action
            left.append(module.step(engine.batch.address, engine is translated))
        assert np.array_equal(left[0][0], left[1][0]), (
            f"step {number}: the instruction buffer differs"
        )
        first = torch.zeros(1, dtype=torch.int64)
        same = torch.equal(
            translated.contents.pictures(first), interpreted.contents.pictures(first)
        )
        assert same, f"step {number}: pictures differ"
        for name in (
            "records",
            "ram",
            "cartridge_bytes",
            "traces",
            "rewards",
            "terminated",
            "lives",
        ):
            same = torch.equal(translated.tensors[name], interpreted.tensors[name])
            assert same, f"step {number}: {name} differ"
        assert not left[0][4], f"step {number}: another block stands where one was known to follow"
        in_blocks, blocks, looked_up = (
            in_blocks + left[0][1],
            blocks + left[0][2],
            looked_up + left[0][3],
        )
        entries += len(left[0][0])
        if translated.tensors["terminated"][0]:
            for engine in (translated, interpreted):
                engine.reset(torch.ones(1, dtype=torch.uint8), None)
    assert entries > STEPS
    assert in_blocks > IN_BLOCKS.get(game, 1000) * STEPS, "the blocks were hardly used"
    assert looked_up < blocks, "what follows a block is never known"
