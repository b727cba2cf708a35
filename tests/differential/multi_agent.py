"""A console of multi-agent-ale-py and one of cule, which begin in the same state.

multi-agent-ale-py is built on an older ale-py, and its console is turned on with other random
numbers: it has one generator, with the user's seed, from which each frame's actions take numbers,
too. So a reset here begins with its RAM, and with the number that its generator has reached. All
else is compared as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cule
from cule import _core
from cule.console.power_on import power_on_numbers
from cule.errors import MissingFile
from cule.rom import Game, rom_path

# The seed of cule's table of power-on numbers (kPowerOnSeed).
SEED = 4753849
# In a record, the word after the env's seed says how many of these numbers have been taken.
DRAWS_WORD = _core.RANDOM_BYTES[0] // 4 + 2
MOST_FRAMES = 2**31 - 1


def path_of(game: Game) -> str:
    """Where the game's ROM is; the test is skipped if it is nowhere."""
    try:
        path = rom_path(game)
    except MissingFile as problem:
        pytest.skip(str(problem))
    if not path.exists():
        pytest.skip(f"needs the ROM {path}")
    return str(path)


def make_oracle(game: Game, mode: int, difficulty: int = 0) -> Any:
    """A console of multi-agent-ale-py; the test is skipped if that is not installed."""
    peer = pytest.importorskip("multi_agent_ale_py", reason="needs multi-agent-ale-py")
    ale = peer.ALEInterface()
    peer.ale_python_interface.ale_lib.setLoggerMode(2)  # errors only
    ale.setInt("random_seed", SEED)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(path_of(game))
    if difficulty:
        ale.setDifficulty(difficulty)
    ale.setMode(mode)
    return ale


class Players:
    """A game for several players on both.

    Args:
        game: the game.
        mode: its mode.
        difficulty: its difficulty.
    """

    def __init__(self, game: Game, mode: int, difficulty: int = 0):
        self.ale = make_oracle(game, mode, difficulty)
        assert self.ale.numPlayersActive() == game.num_players
        self.num_players = game.num_players
        self.env = cule.AtariEnv(
            game.name, 1, "cpu", num_players=game.num_players, mode=mode, difficulty=difficulty,
            frameskip=1, noop_max=0, use_fire_reset=False, reset_pool_size=0, num_threads=1,
            autoreset_mode="disabled", reward_clipping=False, full_action_space=True,
            max_num_frames_per_episode=MOST_FRAMES, output="numpy",
        )  # fmt: skip
        self.env.reset(seed=0)
        # loadROM has taken one number, after it seeded the generator anew.
        self.draws = 1

    def start(self) -> None:
        """Starts an episode on both, and compares what it begins with."""
        ram = np.array(self.ale.getRAM())
        self.ale.reset_game()
        self.env.set_ram(np.arange(128), ram[None])
        records = self.env.engine.contents.records()
        records[:, DRAWS_WORD] = self.draws
        self.env.engine.tensors["records"].copy_(records)
        assert self.draws < len(power_on_numbers())
        self.draws += 1
        _, infos = self.env.reset()
        self.compare(infos)

    def compare(self, infos: dict[str, np.ndarray]) -> None:
        """Asserts that RAM, screens and lives are the same."""
        assert np.array_equal(self.ale.getRAM(), self.env.get_ram()[0])
        width, height = self.ale.getScreenDims()
        assert np.array_equal(self.ale.getScreen().reshape(height, width), self.env.get_screen()[0])
        assert self.ale.allLives().tolist() == infos["lives"][0].tolist()

    def act(self, actions: np.ndarray) -> list[int]:
        """Plays a frame on both, compares all, and returns the players' rewards."""
        rewards = self.ale.act(actions).tolist()
        self.draws += self.num_players
        _, ours, terminated, _, infos = self.env.step(actions[None])
        assert ours[0].tolist() == rewards
        assert bool(terminated[0]) == self.ale.game_over()
        self.compare(infos)
        return rewards

    def play(self, frames: int, seed: int, longest: int = 12) -> np.ndarray:
        """Random play of all players, up to the game's end; returns the sums of their rewards.

        Args:
            frames: how many.
            seed: of the play.
            longest: for how many frames actions are held at most.
        """
        random = np.random.default_rng(seed)
        sums = np.zeros(self.num_players, int)
        held, left = np.zeros(self.num_players, int), 0
        for _ in range(frames):
            if left == 0:
                held = random.integers(len(cule.ACTIONS), size=self.num_players)
                left = int(random.integers(1, longest + 1))
            left -= 1
            sums += self.act(held)
            if self.ale.game_over():
                break
        return sums
