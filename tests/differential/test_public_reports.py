"""Faults that users reported of ale-py's games: cule keeps them, as ale-py does
(design/ale_differences.md lists them)."""

from __future__ import annotations

import ale_py
import numpy as np
import pytest

import cule
from cule.rom import find_game

# The bytes of a score in RAM, and what they hold at the most: all nines.
SCORES = {
    "asterix": ((0xDE, 0xDF, 0xE0), 0x99),
    "defender": (tuple(range(0x9C, 0xA2)), 9),
    "gopher": ((0xB0, 0xB1, 0xB2), 0x99),
    "seaquest": ((0xB8, 0xB9, 0xBA), 0x99),
    "video_pinball": ((0xB4, 0xB2, 0xB0), 0x99),
}


@pytest.mark.parametrize("game", SCORES)
def test_a_score_that_wraps_costs_what_it_costs_in_ale(game: str) -> None:
    addresses, digits = SCORES[game]
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path(find_game(game).name))
    ale.reset_game()
    env = cule.AtariEnv(
        game, device="cpu", num_threads=1, reset_pool_size=0, noop_max=0, frameskip=1,
        maxpool=False, use_fire_reset=False, reward_clipping=False, output="numpy",
    )  # fmt: skip
    env.reset(seed=0)
    rewards = []
    for value in (digits, 0):
        for address in addresses:
            ale.setRAM(address - 0x80, value)
            env.engine.tensors["ram"][0, address - 0x80] = value
        rewards.append((ale.act(ale_py.Action.NOOP), int(env.step(np.zeros(1, int))[1][0])))
    assert rewards[0][0] == rewards[0][1] > 900_000
    assert rewards[1][0] == rewards[1][1] < -900_000, "the score fell to 0"
