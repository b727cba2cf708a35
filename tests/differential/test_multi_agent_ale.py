"""Games of two and four players equal multi-agent-ale-py's: RAM, screens, rewards, lives, ends."""

from __future__ import annotations

import numpy as np
import pytest
from multi_agent import Players, make_oracle

from cule.rom import Game, find_game, games

GAMES = [*games(2), *games(4)]
IDS = [f"{game.name}-{game.num_players}" for game in GAMES]
MODES = [(game, mode) for game in GAMES for mode in game.modes]
NOOP, FIRE, UP = 0, 1, 2


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
        ("pong", 2, 4, 260, [0, -1]),
        ("pong", 4, 6, 260, [0, -1, 0, -1]),
        ("tennis", 2, 2, 220, [-1, 0]),
        pytest.param("othello", 2, 4, 590, [-1, 0], marks=pytest.mark.slow),
        pytest.param("video_checkers", 2, 10, 590, [-1, 0], marks=pytest.mark.slow),
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


@pytest.mark.slow
def test_after_the_end_nothing_is_played() -> None:
    """In Surround a player who goes up alone runs into the wall first, in ten rounds."""
    players = Players(find_game("surround", 2), 1)
    players.start()
    ups = np.array([UP, NOOP])
    rewards = [players.act(ups) for _ in range(3470)]
    assert rewards.count([-1, 1]) == 10 and players.ale.game_over()
    for _ in range(3):
        assert players.act(np.array([FIRE, UP])) == [0, 0]


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
