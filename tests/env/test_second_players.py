"""Where a second player can join in: the table, measured; elsewhere its actions are refused."""

from __future__ import annotations

import numpy as np
import pytest

import cule
from cule.facts.second_players import SECOND_PLAYERS
from cule.rom import Game, find_game, games

ENVS = 3


def is_moved(game: Game, mode: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what a second player does changes a picture in so many steps."""
    monkeypatch.setattr(Game, "modes_of_two", game.modes)
    env = cule.AtariEnv(
        game.name, 2 * ENVS, "cpu", mode=mode, output="numpy", reset_pool_size=1, noop_max=1,
        img_height=1, img_width=1, full_action_space=True, num_threads=1,
    )  # fmt: skip
    env.reset(seed=np.repeat(range(ENVS), 2))
    random = np.random.default_rng(0)
    count = env.single_action_space.n
    for step in range(steps):
        if step % 3 == 0:
            ours = random.integers(count, size=ENVS).repeat(2)
            theirs = random.integers(len(cule.ACTIONS), size=2 * ENVS)
            theirs[::2] = 0
        env.step(ours, player_b_actions=theirs)
        screens = env.get_screen()
        if not np.array_equal(screens[::2], screens[1::2]):
            return True
    return False


def test_table_names_games_and_their_modes() -> None:
    for name, modes in SECOND_PLAYERS.items():
        assert set(modes) <= set(find_game(name).modes), name
    assert find_game("pong").modes_of_two == (0, 1) and find_game("alien").modes_of_two == ()


@pytest.mark.parametrize(("name", "mode"), [("freeway", 0), ("double_dunk", 3), ("casino", 2)])
def test_second_player_of_the_table_moves_something(
    name: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mode in find_game(name).modes_of_two
    assert is_moved(find_game(name), mode, 150, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("game", games(), ids=lambda game: game.name)
def test_table_is_what_is_measured(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is found is listed, and in a listed game something is found."""
    listed = game.modes_of_two
    others = [mode for mode in (game.modes[0], game.modes[-1]) if mode not in listed]
    assert not any(is_moved(game, mode, 700, monkeypatch) for mode in others)
    assert not listed or any(is_moved(game, mode, 700, monkeypatch) for mode in listed)


@pytest.mark.parametrize(
    ("played", "settings"), [("breakout", {}), ("space_war", {"mode": [14, 15]})]
)
def test_second_player_where_there_is_none_is_refused(
    played: str, settings: dict[str, list[int]]
) -> None:
    env = cule.AtariEnv(played, 2, "cpu", reset_pool_size=1, **settings)
    env.reset(seed=0)
    before = env.clone_state()
    for call in (env.step, env.step_async):
        with pytest.raises(ValueError, match=f"a second player .* got them in '{played}' in mode"):
            call([0, 0], player_b_actions=[1, 0])
    assert env.clone_state() == before
    env.step([0, 0])


def test_batch_with_one_such_game_takes_actions_for_all_envs() -> None:
    env = cule.AtariEnv(["breakout", "pong"], 2, "cpu", reset_pool_size=1)
    env.reset(seed=0)
    env.step([0, 0], player_b_actions=[0, 2])
