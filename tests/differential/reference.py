"""ale-py and cule side by side, one frame at a time.

Both load the ROM, begin an episode and get the same actions, each held for a while. After every
frame everything that can be seen is compared: 128 bytes of RAM, each pixel's palette index, the
reward, the lives, whether the game is over.
"""

from __future__ import annotations

import ale_py
import numpy as np
import torch

from cule.console import Group, Options, action_numbers
from cule.engine import Engine
from cule.rom import find_game, rom_path

HOLD = 0.1  # chance, each frame, that another action begins
SEED = 123
# A frame is a step here, nothing is skipped, pooled or reset by itself.
OPTIONS = Options(
    frameskip=1, noop_max=0, fire_reset=False, autoreset=2, action_space="full", reset_pool_size=0,
    reward_clipping=False, stack=1, max_frames=1 << 30,
)  # fmt: skip

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


class Pair:
    """One game on both emulators, in the same mode and difficulty."""

    def __init__(
        self, name: str, mode: int | None = None, difficulty: int = 0, options: Options = OPTIONS
    ):
        self.game = game = find_game(name)
        mode = game.facts["default_mode"] if mode is None else mode
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("random_seed", SEED)
        self.ale.setBool("sound_obs", options.sound)
        self.ale.loadROM(rom_path(game))
        self.ale.setMode(mode)
        if difficulty:
            self.ale.setDifficulty(difficulty)
        self.ale.reset_game()
        self.engine = Engine(
            [Group(game, mode, difficulty)], np.zeros(1, int), options, torch.device("cpu"), 1
        )
        self.memory = {name: tensor.numpy() for name, tensor in self.engine.tensors.items()}
        self.engine.reset(None, torch.tensor([SEED]))
        self.actions = action_numbers(game, "full")
        self.height = self.engine.heights[0]

    def reset(self) -> None:
        """Begins a new episode on both."""
        self.ale.reset_game()
        self.engine.reset(None, None)

    def act(self, index: int) -> bool:
        """Plays one frame on both.

        Raises AssertionError if reward or game over differ; returns whether the game is over.
        """
        reward = self.ale.act(ale_py.Action(self.actions[index]))
        self.memory["actions"][0] = index
        self.engine.step()
        assert self.memory["raw_rewards"][0] == reward, "reward"
        over = self.ale.game_over()
        assert self.memory["terminated"][0] == over, "game over"
        return over

    def compare_facts(self) -> None:
        """Raises AssertionError if the game has other actions, modes or difficulties."""
        for kind, theirs in (
            ("minimal", self.ale.getMinimalActionSet()),
            ("full", self.ale.getLegalActionSet()),
        ):
            actions = list(action_numbers(self.game, kind))
            assert actions == [action.value for action in theirs], f"{kind} actions"
        assert list(self.game.modes) == self.ale.getAvailableModes(), "modes"
        assert list(self.game.difficulties) == self.ale.getAvailableDifficulties(), "difficulties"

    def compare(self) -> None:
        """Raises AssertionError if anything visible differs."""
        same("RAM", self.memory["ram"][0], self.ale.getRAM())
        same("screen", self.engine.contents.screen(0)[: self.height].numpy(), self.ale.getScreen())
        assert self.memory["lives"][0] == self.ale.lives(), "lives"
        assert self.memory["faults"][0] == 0, "fault"
        if "sounds" in self.memory:
            same("sound", self.memory["sounds"][0, -1], self.ale.getAudio())

    def play(self, frames: int, reset_every: int, seed: int = 0) -> None:
        """Plays and compares `frames` frames.

        A new episode begins when one ends, and after `reset_every` frames.
        """
        rng = np.random.default_rng(seed)
        index = 0
        self.compare()
        for frame in range(1, frames + 1):
            if rng.random() < HOLD:
                index = int(rng.integers(len(self.actions)))
            try:
                over = self.act(index)
                self.compare()
                if over or frame % reset_every == 0:
                    self.reset()
                    self.compare()
            except AssertionError as problem:
                raise AssertionError(f"frame {frame}: {problem}") from problem


def same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Raises AssertionError, which says where, unless the arrays are equal."""
    if not np.array_equal(ours, theirs):
        np.testing.assert_array_equal(ours, theirs, name)
