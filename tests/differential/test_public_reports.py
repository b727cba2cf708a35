"""What users reported of ale-py and of what is built around it, tried beside both: cule does as
ale-py does, faults of the games' own rules included (design/ale_differences.md lists them)."""

from __future__ import annotations

import itertools

import ale_py
import pytest
import torch
from reference import SEED, Pair

import cule
from cule.rom import find_game, rom_path

NOOP, FIRE, RIGHT = 0, 1, 3
# The bytes of a score in RAM, and what they hold at the most: all nines.
SCORES = {
    "asterix": ((0xDE, 0xDF, 0xE0), 0x99),
    "defender": (tuple(range(0x9C, 0xA2)), 9),
    "gopher": ((0xB0, 0xB1, 0xB2), 0x99),
    "seaquest": ((0xB8, 0xB9, 0xBA), 0x99),
    "video_pinball": ((0xB4, 0xB2, 0xB0), 0x99),
}


def poke(pair: Pair, address: int, value: int) -> None:
    """Writes a byte of RAM on both."""
    pair.ale.setRAM(address - 0x80, value)
    pair.memory["ram"][0, address - 0x80] = value


def hold(pair: Pair, action: int, frames: int) -> bool:
    """Plays some frames on both, compares, and returns whether the game ended."""
    over = sum(pair.act(action) for _ in range(frames)) > 0
    pair.compare()
    return over


@pytest.mark.parametrize("game", SCORES)
def test_a_score_that_wraps_costs_what_it_costs_in_ale(game: str) -> None:
    addresses, digits = SCORES[game]
    pair = Pair(game)
    rewards = []
    for value in (digits, 0):
        for address in addresses:
            poke(pair, address, value)
        pair.act(NOOP)
        rewards.append(int(pair.memory["raw_rewards"][0]))
    assert rewards[0] > 900_000
    assert rewards[1] < -900_000, "the score fell to 0"


def test_defenders_first_reward_is_none() -> None:
    pair = Pair("defender")
    hold(pair, NOOP, 1)
    assert pair.memory["raw_rewards"][0] == 0


def test_pitfall_goes_on_when_its_time_is_up() -> None:
    pair = Pair("pitfall")
    hold(pair, RIGHT, 30)
    poke(pair, 0xD8, 0)  # minutes
    poke(pair, 0xD9, 1)  # seconds
    assert not hold(pair, RIGHT, 200)
    assert pair.memory["ram"][0, 0x58:0x5A].tolist() == [0, 0]
    stopped = pair.memory["ram"][0].copy()
    assert not hold(pair, RIGHT, 100)
    assert (stopped != pair.memory["ram"][0]).sum() < 10, "nothing moves any more"


@pytest.mark.parametrize("frames", [0, 0xFFF0])
def test_breakout_serves_no_ball_after_65536_frames(frames: int) -> None:
    pair = Pair("breakout")
    poke(pair, 0xDA, frames & 0xFF)
    poke(pair, 0xDB, frames >> 8)
    hold(pair, NOOP, 40)
    hold(pair, FIRE, 30)
    ball = pair.memory["ram"][0, [0x63, 0x65]]
    assert ball.any() == (frames == 0)


def test_breakout_waits_for_fire() -> None:
    pair = Pair("breakout")
    assert not hold(pair, NOOP, 500)
    assert pair.memory["lives"][0] == 5


def test_space_invaders_ends_with_lives_left_when_the_invaders_land() -> None:
    pair = Pair("space_invaders")
    hold(pair, NOOP, 300)
    lower, over = 0, False
    while not over and lower < 100:
        lower += 2
        poke(pair, 0x90, lower)
        over = any(pair.act(NOOP) for _ in range(8))
    pair.compare()
    assert over and pair.memory["ram"][0, 0x49] == 3
    assert pair.memory["lives"][0] == 0


def test_skiing_has_negative_rewards_from_the_start() -> None:
    pair = Pair("skiing")
    pair.act(NOOP)
    rewards = {int(pair.memory["raw_rewards"][0]) for _ in range(200) if not pair.act(NOOP)}
    assert min(rewards) < 0 and max(rewards) <= 0


def test_pacman_draws_a_ghost_in_each_frame() -> None:
    pair = Pair("pacman")
    hold(pair, NOOP, 300)
    screens = []
    for _ in range(5):
        hold(pair, NOOP, 1)
        screens.append(pair.engine.contents.screen(0).numpy().copy())
    assert all((one != two).any() for one, two in itertools.pairwise(screens))


@pytest.mark.parametrize("game", ["freeway", "frostbite"])
def test_a_seed_changes_no_game_without_sticky_actions(game: str) -> None:
    pair = Pair(game)
    pair.engine.reset(None, torch.tensor([SEED + 1]))
    pair.ale.setInt("random_seed", SEED + 2)
    pair.ale.loadROM(rom_path(find_game(game)))
    pair.ale.reset_game()
    pair.play(150, 1000)


@pytest.mark.parametrize(("game", "count"), [("skiing", 9), ("space_invaders", 18)])
def test_legal_actions_are_those_of_the_game(game: str, count: int) -> None:
    pair = Pair(game)
    assert len(pair.actions) == len(pair.ale.getLegalActionSet()) == count


def test_a_difficulty_leaves_the_mode_as_it_is() -> None:
    pair = Pair("space_invaders", mode=5, difficulty=1)
    hold(pair, NOOP, 2)
    assert pair.memory["ram"][0, 0x5C] == 5


def test_a_mode_is_one_of_those_that_the_game_has() -> None:
    with pytest.raises(ValueError, match="mode"):
        cule.AtariEnv("breakout", device="cpu", mode=1)
    assert 1 not in Pair("breakout").ale.getAvailableModes()


@pytest.mark.parametrize("game", ["centipede", "pooyan", "air_raid"])
def test_the_default_mode_is_ales_where_it_is_not_0(game: str) -> None:
    ale = ale_py.ALEInterface()
    ale.loadROM(rom_path(find_game(game)))
    ale.reset_game()
    pair = Pair(game)
    assert find_game(game).facts["default_mode"] > 0
    assert (ale.getRAM() == pair.memory["ram"][0]).all()


def test_pong_has_no_lives_to_lose() -> None:
    env = cule.AtariEnv("pong", device="cpu", num_threads=1, life_loss_info=True, output="numpy",
                        reset_pool_size=0, noop_max=0)  # fmt: skip
    env.reset(seed=0)
    for _ in range(200):
        _, rewards, terminated, _, info = env.step([NOOP])
        assert not terminated.any() and not info["lives"].any()
        if rewards[0] < 0:
            return
    raise AssertionError("no point was lost")


def test_a_truncation_is_none_of_a_life() -> None:
    env = cule.AtariEnv(
        "breakout", device="cpu", num_threads=1, life_loss_info=True, noop_max=0, output="numpy",
        reset_pool_size=0, max_num_frames_per_episode=400,
    )  # fmt: skip
    env.reset(seed=0)
    terminations, truncations = [], []
    for step in range(1, 101):
        _, _, terminated, truncated, _ = env.step([FIRE])
        terminations += [step] * int(terminated[0])
        truncations += [step] * int(truncated[0])
    assert truncations == [100] and terminations and 100 not in terminations


def test_an_observation_of_one_frame_is_that_frame() -> None:
    pair = Pair("breakout")
    env = cule.AtariEnv(
        "breakout", device="cpu", num_threads=1, frameskip=1, stack_num=1, maxpool=False,
        img_height=210, img_width=160, noop_max=0, use_fire_reset=False, reset_pool_size=0,
        full_action_space=True, output="numpy",
    )  # fmt: skip
    env.reset(seed=0)
    for action in (FIRE, RIGHT, RIGHT, NOOP):
        observations = env.step([action])[0]
        pair.act(action)
        assert (observations[0, 0] == pair.ale.getScreenGrayscale()).all()


def test_a_state_holds_the_random_numbers_of_sticky_actions() -> None:
    """ale-py's cloneSystemState; its cloneState leaves them out, as copies in other envs do.

    Neither of them holds the action that a sticky first frame repeats: ale-py repeats what it
    played last before it restored. So the first future, which begins after other actions, is not
    compared.
    """
    actions = [FIRE, RIGHT, NOOP, 4] * 12
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", SEED)
    ale.setFloat("repeat_action_probability", 0.25)
    ale.loadROM(rom_path(find_game("breakout")))
    ale.reset_game()

    def futures_of_ale(state: ale_py.ALEState) -> int:
        found = []
        for _ in range(5):
            ale.restoreState(state)
            for action in actions:
                ale.act(ale_py.Action(action))
            found.append(ale.getRAM().tobytes())
        return len(set(found[1:]))

    assert futures_of_ale(ale.cloneState(include_rng=True)) == 1
    assert futures_of_ale(ale.cloneState()) > 1
    env = cule.AtariEnv("breakout", num_envs=4, device="cpu", num_threads=1, output="numpy",
                        repeat_action_probability=0.25, full_action_space=True)  # fmt: skip
    env.reset(seed=0)
    state, found = env.clone_state([0]), set()
    for _ in range(4):
        env.restore_state(state, [0])
        env.copy_state([0, 0, 0], [1, 2, 3])
        for action in actions:
            env.step([action] * 4)
        found.add(env.get_ram()[0].tobytes())
    assert len(found) == 1
    assert len({ram.tobytes() for ram in env.get_ram()}) > 1
