"""`episode_start="envpool"` plays what EnvPool's Atari envs play: the same observations, rewards,
ends, RAM, lives and counts, game after game and life after life, with the same random no-ops.

EnvPool may be missing, so its rules are written down here, around ale-py. Where EnvPool is
installed, it is compared with them, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ale_py
import numpy as np
import pytest
from ale_py.roms import get_rom_path

from cule.adapters import envpool
from cule.rom import find_game

Row = dict[str, Any]


def below(random: np.random.MT19937, bound: int) -> int:
    """C++'s std::uniform_int_distribution from 0 to `bound - 1`: Lemire's multiply and reject."""
    while True:
        product = int(random.random_raw()) * bound
        if product % 2**32 >= (2**32 - bound) % bound:
            return product >> 32


class EnvPoolsRules:
    """One env of EnvPool 1.2.5 around ale-py, without resize.

    `reset` starts a new game. `step` after an end starts the next game, or the next life if
    `episodic_life` is set, and then plays no action.
    """

    def __init__(
        self, task: str, seed: int, episodic_life: bool, noop_max: int = 30, frame_skip: int = 4,
        use_fire_reset: bool = True, max_episode_steps: int = 27_000,
    ):  # fmt: skip
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(get_rom_path(find_game(task).name))
        self.actions = self.ale.getMinimalActionSet()
        self.fire = use_fire_reset and ale_py.Action.FIRE in self.actions
        self.random = np.random.MT19937()
        self.random._legacy_seeding(seed)
        self.noop_max, self.frame_skip, self.max_steps = noop_max, frame_skip, max_episode_steps
        self.episodic_life, self.done = episodic_life, False

    def _screen(self) -> np.ndarray:
        return self.ale.getScreenGrayscale()

    def reset(self, new_game: bool = True) -> Row:
        noops = below(self.random, self.noop_max) + (not self.fire)
        if new_game:
            self.ale.reset_game()
            self.steps = 0
        for _ in range(noops):
            self.ale.act(ale_py.Action.NOOP)
            if self.ale.game_over():
                self.ale.reset_game()
                new_game = True
        if self.fire:
            self.ale.act(ale_py.Action.FIRE)
        older = [self._screen()] * 3 if new_game else self.stack[1:]
        self.stack = [*older, self._screen()]
        self.done, self.lives = False, self.ale.lives()
        return self._row(0)

    def step(self, action: int) -> Row:
        if self.done:
            ended = self.ale.game_over() or self.steps >= self.max_steps
            return self.reset(ended or not self.episodic_life)
        reward, screens = 0, []
        while len(screens) < self.frame_skip and not self.ale.game_over():
            reward += self.ale.act(self.actions[action])
            screens.append(self._screen())
        self.stack = [*self.stack[1:], np.maximum.reduce(screens[-2:])]
        self.steps += 1
        lives = self.ale.lives()
        lost = self.episodic_life and 0 < lives < self.lives
        self.done = self.ale.game_over() or lost or self.steps >= self.max_steps
        self.lives = lives
        return self._row(reward)

    def _row(self, reward: int) -> Row:
        truncated = self.steps >= self.max_steps
        return {
            "observation": np.stack(self.stack), "reward": reward,
            "terminated": self.done and not truncated, "truncated": truncated, "lives": self.lives,
            "game_over": self.ale.game_over(), "steps": self.steps, "ram": self.ale.getRAM(),
        }  # fmt: skip


def row_of(observations: np.ndarray, info: dict[str, Any], *ends: np.ndarray) -> Row:
    """The same of an EnvPool with one env."""
    reward, terminated, truncated = (end[0] for end in ends) if ends else (0, False, False)
    return {
        "observation": observations[0], "reward": reward, "terminated": terminated,
        "truncated": truncated, "lives": info["lives"][0], "game_over": info["terminated"][0],
        "steps": info["elapsed_step"][0], "ram": info["ram"][0],
    }  # fmt: skip


def played(env: Any, actions: np.ndarray) -> Iterator[Row]:
    """What each step does; the first row is the reset's."""
    yield env.reset() if isinstance(env, EnvPoolsRules) else row_of(*env.reset())
    for action in actions:
        if isinstance(env, EnvPoolsRules):
            yield env.step(action)
        else:
            observations, *ends, info = env.step(np.array([action]))
            yield row_of(observations, info, *ends)


def started_a_game(row: Row, before: Row) -> bool:
    """Whether this step started a life, and the game ended meanwhile."""
    same = (row["observation"] == row["observation"][:1]).all()
    return bool(row["steps"] == before["steps"] > 0 and same)


def assert_plays_by_the_rules(env: Any, rules: EnvPoolsRules, steps: int) -> np.ndarray:
    """Compares all but the last observation of a game, for which EnvPool takes other frames.

    Returns how many games ended, lives were lost, and games ended while a life started.
    """
    actions = np.random.default_rng(0).integers(len(rules.actions), size=steps)
    found, before = np.zeros(3, int), {"steps": 0}
    for step, (row, expected) in enumerate(
        zip(played(env, actions), played(rules, actions), strict=True)
    ):
        over = expected["game_over"]
        for name, value in expected.items():
            if name != "observation" or not (over or expected["truncated"]):
                np.testing.assert_array_equal(row[name], value, err_msg=f"{name}, step {step}")
        lost = expected["terminated"] and not over
        found += [over, lost, started_a_game(expected, before)]
        before = expected
    return found


# How many games end, lives are lost, and games end while a life starts, at least.
CASES = [
    ("Breakout-v5", 11, 300, (1, 6, 0), {}),
    ("Breakout-v5", 5, 60, (0, 0, 0), {"noop_max": 1, "frame_skip": 5, "max_episode_steps": 20}),
    ("Assault-v5", 4, 80, (0, 1, 1), {"noop_max": 500, "max_episode_steps": 60}),
    ("MsPacman-v5", 11, 350, (0, 1, 0), {"frame_skip": 3}),
    ("SpaceInvaders-v5", 11, 300, (0, 2, 0), {"use_fire_reset": False}),
    ("Pong-v5", 11, 50, (0, 0, 0), {"frame_skip": 1, "max_episode_steps": 20}),
]  # fmt: skip


def make(maker: Any, task: str, **options: Any) -> Any:
    sized = {"num_threads": 1, "img_height": 210, "img_width": 160, "use_inter_area_resize": False}
    return maker.make_gymnasium(task, num_envs=1, **sized, **options)


@pytest.mark.parametrize("episodic_life", [True, False])
@pytest.mark.parametrize(("task", "seed", "steps", "least", "options"), CASES, ids=str)
def test_steps_are_envpools(
    task: str, seed: int, steps: int, least: tuple[int, ...], options: dict[str, Any],
    episodic_life: bool, device: str,
) -> None:  # fmt: skip
    options = {"seed": seed, "episodic_life": episodic_life} | options
    env = make(envpool, task, device=device, reset_pool_size=0, **options)
    found = assert_plays_by_the_rules(env, EnvPoolsRules(task, **options), steps)
    assert (found >= least).all() or not episodic_life


@pytest.mark.parametrize("episodic_life", [True, False])
@pytest.mark.parametrize(("task", "seed", "steps", "least", "options"), CASES, ids=str)
def test_envpool_itself_plays_by_the_rules(
    task: str, seed: int, steps: int, least: tuple[int, ...], options: dict[str, Any],
    episodic_life: bool,
) -> None:  # fmt: skip
    options = {"seed": seed, "episodic_life": episodic_life} | options
    env = make(pytest.importorskip("envpool"), task, **options)
    assert_plays_by_the_rules(env, EnvPoolsRules(task, **options), steps)
