"""What each game's facts say about the memory that it needs, compared with what the game does.

The facts were decided by the figures of longer runs:
benchmarks/log/2026-11-23.md#device-memory-an-env-200-kb-to-119.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from cule.console import Group, Options, action_numbers
from cule.console.instruction_buffers import own_buffer_entries
from cule.engine import Engine
from cule.rom import Game, games
from tests.support.traces import ENTRIES, last_two_share_picture, trace_words

ROWS = Path(__file__).resolve().parents[2] / "csrc/games"
ENVS, STEPS, MODES = 4, 100, 3
# These think for long only at a point of the game that random play does not reach.
NOT_SEEN_TO_BE_CUT_OFF = {"othello", "video_chess"}


def traces_of(game: Game) -> torch.Tensor:
    """(steps, envs, words) int32: the StepTraces of random play in the game's first modes."""
    modes = game.modes[:MODES]
    groups = [Group(game, mode, 0) for mode in modes]
    group_of_env = np.arange(len(modes) * ENVS, dtype=np.uint32) // ENVS
    options = Options(reset_pool_size=1)
    engine = Engine(groups, group_of_env, options, torch.device("cpu"), 1)
    engine.reset(None, torch.arange(len(group_of_env)))
    generator = torch.Generator().manual_seed(1)
    num_actions = len(action_numbers(game, options.action_space))
    traces = []
    for _ in range(STEPS):
        engine.tensors["actions"][:] = torch.randint(
            num_actions, group_of_env.shape, generator=generator
        )
        engine.step()
        traces.append(engine.tensors["traces"].clone())
    return torch.stack(traces)


@pytest.mark.slow
@pytest.mark.parametrize("game", games(), ids=lambda game: game.name)
def test_game_needs_the_memory_that_its_row_says(game: Game) -> None:
    traces = traces_of(game)
    entries = trace_words(traces)[..., ENTRIES]
    ordinary = own_buffer_entries(Options().frameskip, [])
    assert ordinary == 4096, "which csrc/games/game.h names"
    assert bool((entries > ordinary).any()) == game.facts["writes_much"]
    assert int(entries.max()) <= own_buffer_entries(Options().frameskip, [game])
    cut_off = game.facts["frames_cut_off"] and game.name not in NOT_SEEN_TO_BE_CUT_OFF
    assert bool(last_two_share_picture(traces).any()) == cut_off


def test_games_that_draw_for_their_mode_are_marked() -> None:
    """If a mode is reached with `random()`, each env needs a generator."""
    for game in games():
        draws = re.search(r"\brandom\(\)", (ROWS / f"{game.name}.h").read_text())
        assert game.facts["draws_for_mode"] == bool(draws), game.name
