"""`episode_start="fire"`: a lost life is followed by a frame of FIRE and a fresh stack."""

from __future__ import annotations

from typing import Any

import ale_py
import numpy as np
import pytest

import cule
from cule.rom import find_game, rom_path

SEED, FRAMESKIP = 4, 3
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


@pytest.mark.parametrize("name", ["breakout", "asterix"])
def test_games_start_from_the_same_pool_as_in_ale(name: str) -> None:
    found = []
    for start in ("ale", "fire"):
        env = cule.AtariEnv(
            name, 4, "cpu", num_threads=1, output="numpy", episode_start=start, noop_max=9,
            reset_pool_size=5, life_loss_info=True, frameskip=FRAMESKIP,
        )  # fmt: skip
        observations, info = env.reset(seed=SEED)
        found.append([observations, env.get_ram(), env.get_screen(), info["episode_frame_number"]])
    for ale, fire in zip(*found, strict=True):
        np.testing.assert_array_equal(fire, ale)


class Rules:
    """What is meant, around ale-py: whole grey screens, stacks of two, no no-ops."""

    def __init__(self, name: str, fire: bool):
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("random_seed", SEED)
        self.ale.loadROM(rom_path(find_game(name)))
        self.fire = fire and ale_py.Action.FIRE in self.ale.getMinimalActionSet()
        self.stack: list[np.ndarray] = []

    def _press(self) -> np.ndarray:
        if self.fire:
            self.ale.act(ale_py.Action.FIRE)
        screen = self.ale.getScreenGrayscale()
        self.stack, self.lives = [np.zeros_like(screen), screen], self.ale.lives()
        return np.stack(self.stack)

    def new_game(self) -> np.ndarray:
        self.ale.reset_game()
        return self._press()

    def new_life(self) -> np.ndarray:
        return self._press()

    def step(self, action: ale_py.Action) -> tuple[np.ndarray, int, bool, bool]:
        """The observation, the reward, whether a life was lost, whether the game ended."""
        reward = 0
        for _ in range(FRAMESKIP):
            reward += self.ale.act(action)
            if self.ale.game_over():
                break
        over = self.ale.game_over()  # that frame is not looked at, as in ale-py's vector env
        self.stack = [self.stack[1], self.stack[1] if over else self.ale.getScreenGrayscale()]
        lost, self.lives = self.ale.lives() < self.lives, self.ale.lives()
        return np.stack(self.stack), reward, lost, self.ale.game_over()


@pytest.mark.parametrize(
    ("name", "mode", "fire"),
    [("breakout", "next_step", True), ("breakout", "same_step", True),
     ("space_invaders", "next_step", False), ("asterix", "same_step", True)],
)  # fmt: skip
def test_a_life_begins_with_fire_and_a_fresh_stack(name: str, mode: str, fire: bool) -> None:
    rules = Rules(name, fire)
    height, width = rules.ale.getScreenDims()
    env = cule.AtariEnv(
        name, 1, "cpu", num_threads=1, output="numpy", episode_start="fire", life_loss_info=True,
        autoreset_mode=mode, noop_max=0, reset_pool_size=0, frameskip=FRAMESKIP, maxpool=False,
        stack_num=2, img_height=height, img_width=width, reward_clipping=False,
        use_fire_reset=fire,
    )  # fmt: skip
    actions = rules.ale.getMinimalActionSet()
    np.testing.assert_array_equal(env.reset(seed=SEED)[0][0], rules.new_game())
    rng, lives, games = np.random.default_rng(0), 0, 0
    while games < 1 or lives < 3:
        action = int(rng.integers(len(actions)))
        observation, reward, lost, over = rules.step(actions[action])
        ours, rewards, terminated, _, info = env.step([action])
        assert (rewards[0], terminated[0], info["game_over"][0]) == (reward, lost or over, over)
        shown: Any = ours[0]
        if lost or over:
            lives, games = lives + lost, games + over
            start = rules.new_game() if over else rules.new_life()
            if mode == "next_step":
                np.testing.assert_array_equal(shown, observation)
                shown = env.step([action])[0][0]
            else:
                np.testing.assert_array_equal(info["final_obs"][0], observation)
            observation = start
        np.testing.assert_array_equal(shown, observation)
