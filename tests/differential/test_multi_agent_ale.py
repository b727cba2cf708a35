"""Games of two and four players equal multi-agent-ale-py's: RAM, screens, rewards, lives, ends."""

from __future__ import annotations

import numpy as np
import pytest
from multi_agent import Players, make_oracle

from cule.rom import Game, find_game, games

GAMES = [*games(2), *games(4)]
IDS = [f"{game.name}-{game.num_players}" for game in GAMES]
MODES = [(game, mode) for game in GAMES for mode in game.modes]
NOOP, FIRE, RIGHT = 0, 1, 3


@pytest.mark.parametrize("game", GAMES, ids=IDS)
def test_each_game_in_its_first_mode(game: Game) -> None:
    players = Players(game, game.modes[0])
    players.start()
    players.play(100, seed=1)


@pytest.mark.parametrize("game", GAMES, ids=IDS)
def test_modes_and_difficulties_are_the_same(game: Game) -> None:
    ale = make_oracle(game, game.modes[0])
    assert tuple(ale.getAvailableModes(game.num_players)) == game.modes
    assert tuple(ale.getAvailableDifficulties()) == game.difficulties
    minimal = [i for i in range(18) if game.facts["minimal_actions"] >> i & 1]
    assert ale.getMinimalActionSet().tolist() == minimal


@pytest.mark.parametrize(
    ("name", "count", "mode", "frames", "expected"),
    [
        ("pong", 2, 4, 260, [0, -2]),
        ("pong", 4, 6, 130, [0, -1, 0, -1]),
        ("tennis", 2, 2, 190, [-1, 0]),
        ("double_dunk", 2, 16, 130, [-1, -1]),
        ("othello", 2, 4, 610, [-1, 0]),
        ("video_checkers", 2, 10, 610, [-1, 0]),
    ],
)
def test_players_who_do_nothing_lose_points(
    name: str, count: int, mode: int, frames: int, expected: list[int]
) -> None:
    players = Players(find_game(name, count), mode)
    players.start()
    idle = np.zeros(count, int)
    assert sum(np.array(players.act(idle)) for _ in range(frames)).tolist() == expected


@pytest.mark.parametrize(("name", "count"), [("pong", 2), ("pong", 4), ("surround", 2)])
def test_an_episode_after_another(name: str, count: int) -> None:
    game = find_game(name, count)
    players = Players(game, game.modes[-1])
    for seed in range(3):
        players.start()
        players.play(40, seed=seed)


def test_after_the_end_nothing_is_played() -> None:
    """A player who stands still loses each round of Surround, by running into a wall."""
    players = Players(find_game("surround", 2), 1)
    players.start()
    random = np.random.default_rng(0)
    for _ in range(6000):
        players.act(np.array([int(random.integers(2, 6)) if random.random() < 0.1 else NOOP, NOOP]))
        if players.ale.game_over():
            break
    assert players.ale.game_over()
    for _ in range(3):
        assert players.act(np.array([RIGHT, FIRE])) == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "mode"), MODES, ids=[f"{game.name}-{game.num_players}-{mode}" for game, mode in MODES]
)
def test_each_mode_for_a_thousand_frames(game: Game, mode: int) -> None:
    players = Players(game, mode)
    players.start()
    players.play(1000, seed=mode)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES, ids=IDS)
def test_each_difficulty_for_a_thousand_frames(game: Game) -> None:
    for difficulty in game.difficulties:
        players = Players(game, game.modes[-1], difficulty)
        players.start()
        players.play(1000, seed=difficulty, longest=40)
