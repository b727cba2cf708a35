"""The core against ale-py: all 104 games, frame by frame, in the default mode and in a sample of
the others."""

from __future__ import annotations

import pytest
from reference import Pair

from cule.rom import games

NAMES = [game.name for game in games()]
# So many frames, and how often they are begun anew; the slow tests play for longer.
FRAMES, RESET_EVERY = 400, 250
FRAMES_OF_OTHER_MODES, RESET_OTHERS_EVERY = 100, 70
SLOW_FRAMES = 20_000


def other_settings() -> list[tuple[str, int, int]]:
    """For every game with several: the last mode with the last difficulty."""
    settings = [(game, game.modes[-1], game.difficulties[-1]) for game in games()]
    return [
        (game.name, mode, difficulty)
        for game, mode, difficulty in settings
        if (mode, difficulty) != (game.facts["default_mode"], 0)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_core_matches_ale_in_default_mode(name: str) -> None:
    pair = Pair(name)
    pair.compare_facts()
    pair.play(FRAMES, RESET_EVERY)


@pytest.mark.parametrize(("name", "mode", "difficulty"), other_settings())
def test_core_matches_ale_in_other_modes(name: str, mode: int, difficulty: int) -> None:
    Pair(name, mode, difficulty).play(FRAMES_OF_OTHER_MODES, RESET_OTHERS_EVERY)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_core_matches_ale_for_long(name: str) -> None:
    Pair(name).play(SLOW_FRAMES, 5_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode", "difficulty"),
    [
        (game.name, mode, d)
        for game in games()
        for mode in game.modes[:40]
        for d in game.difficulties
    ],
)
def test_core_matches_ale_in_every_mode(name: str, mode: int, difficulty: int) -> None:
    Pair(name, mode, difficulty).play(200, 120)
