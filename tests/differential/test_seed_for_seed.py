"""cule.AtariEnv takes the place of ale_py.AtariVectorEnv: with the same seed and actions it returns
the same, exactly.

A game of each kind is played briefly (test_core.py has all games, and the facts by which they
differ), every option that both have on some games, and, marked slow, everything for longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vector_pair import SEED, Pair

import cule
from tests.support.marks import few

GAMES = [game.name for game in cule.games()]
# ale-py indexes their actions by the numbers of all 18, and ends the process where the button is
# asked for.
WITHOUT_BUTTON = ("skiing", "lost_luggage")

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("breakout", {"episodic_life": True}),
    ("space_invaders", {"episodic_life": True, "autoreset_mode": "SameStep"}),
    ("breakout", {"life_loss_info": True}),
    ("seaquest", {"life_loss_info": True, "autoreset_mode": "SameStep"}),
    ("ms_pacman", {"reward_clipping": False}),
    ("pong", {"maxpool": False}),
    ("space_invaders", {"maxpool": False, "episodic_life": True}),
    ("breakout", {"grayscale": False}),
    ("air_raid", {"grayscale": False, "stack_num": 2}),
    ("pong", {"img_height": 64, "img_width": 64}),
    ("riverraid", {"img_height": 105, "img_width": 80}),
    ("ms_pacman", {"img_height": 210, "img_width": 160, "stack_num": 1}),
    ("ms_pacman", {"img_height": 210, "img_width": 160, "stack_num": 1, "grayscale": False}),
    ("qbert", {"img_height": 100, "img_width": 120}),
    ("qbert", {"img_height": 100, "img_width": 120, "grayscale": False}),
    ("air_raid", {"img_height": 50, "img_width": 40}),
    ("pong", {"img_height": 1, "img_width": 1}),
    ("journey_escape", {"img_height": 96, "img_width": 160}),
    ("pong", {"img_height": 256, "img_width": 256}),
    ("air_raid", {"img_height": 84, "img_width": 200, "grayscale": False}),
    ("breakout", {"stack_num": 1}),
    ("breakout", {"stack_num": 2}),
    ("breakout", {"stack_num": 7}),
    ("pong", {"frameskip": 1}),
    ("ms_pacman", {"frameskip": 1, "maxpool": False}),
    ("pong", {"frameskip": 2}),
    # It computes for longer than ale-py lets a frame last; the next frame then goes on in the same
    # picture.
    ("tic_tac_toe_3d", {"frameskip": 2, "autoreset_mode": "SameStep"}),
    ("tic_tac_toe_3d", {"frameskip": 3, "grayscale": False}),
    ("seaquest", {"frameskip": 3}),
    ("space_invaders", {"frameskip": 5}),
    ("breakout", {"noop_max": 0}),
    ("pong", {"noop_max": 1}),
    ("enduro", {"noop_max": 7}),
    ("breakout", {"use_fire_reset": False}),
    ("breakout", {"use_fire_reset": False, "noop_max": 0, "autoreset_mode": "SameStep"}),
    ("breakout", {"full_action_space": True}),
    ("seaquest", {"full_action_space": True}),
    ("skiing", {"full_action_space": True}),
    ("pong", {"continuous": True}),
    ("breakout", {"continuous": True, "continuous_action_threshold": 0.2}),
    ("ms_pacman", {"continuous": True}),
    ("seaquest", {"continuous": True, "continuous_action_threshold": 0.0}),
    ("kaboom", {"continuous": True, "continuous_action_threshold": 0.8, "full_action_space": True}),
]


def one_of_each_kind() -> list[str]:
    """Games that differ in what an env knows of its game, and two for PAL."""
    facts = (
        "height", "minimal_actions", "uses_paddles", "draws_for_mode", "writes_much",
        "frames_cut_off",
    )  # fmt: skip
    kinds: dict[tuple[Any, ...], str] = {}
    for game in cule.games():
        kinds.setdefault(tuple(game.facts[name] for name in facts), game.name)
    return [*kinds.values(), "klax", "pacman"]


@pytest.mark.parametrize("game", few(GAMES, one_of_each_kind()))
def test_every_game_matches_ale(game: str, device: str) -> None:
    """Plays ten steps from the emulated start, with default options."""
    Pair(game, num_envs=1, device=device).play(10)


@pytest.mark.parametrize(
    ("num_envs", "game", "options"),
    [(1 + number % 2, *option) for number, option in enumerate(OPTIONS)], ids=str,
)  # fmt: skip
def test_option_matches_ale(num_envs: int, game: str, options: dict[str, Any], device: str) -> None:
    """Every other one with two envs: half of the time is ale-py's, which starts one by one."""
    Pair(game, num_envs, device, **options).play(45)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize(
    "options",
    [{}, {"episodic_life": True}, {"life_loss_info": True}, {"maxpool": False}, {"frameskip": 3}],
    ids=str,
)
def test_endings_match_ale(mode: str, options: dict[str, Any], device: str) -> None:
    """Plays Breakout, in which the ball is soon lost five times."""
    pair = Pair("breakout", device=device, autoreset_mode=mode, **options).play(260)
    assert pair.endings >= 1
    assert 1 in pair.rewards


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("limit", [1, 37, 80])
def test_truncations_match_ale(mode: str, limit: int, device: str) -> None:
    pair = Pair("pong", 1, device, max_num_frames_per_episode=limit, autoreset_mode=mode).play(45)
    assert pair.endings > 1


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("NextStep", {}), ("SameStep", {"episodic_life": True}),
        ("NextStep", {"max_num_frames_per_episode": 90}),
        ("SameStep", {"max_num_frames_per_episode": 90, "grayscale": False}),
    ],
    ids=str,
)  # fmt: skip
def test_masked_resets_match_ale(mode: str, options: dict[str, Any], device: str) -> None:
    pair = Pair("breakout", 3, device, autoreset_mode=mode, **options)
    rng = np.random.default_rng(SEED)
    pair.reset(seed=np.array([11, 5, 11]))
    for seed, chosen in (
        (None, [0]),
        (40, [1, 2]),
        (np.array([3, 1]), [2, 0]),
        (None, []),
        (None, [1]),
    ):
        for _ in range(12):
            pair.step(pair.actions(rng))
        mask = np.zeros(3, bool)
        mask[chosen] = True
        pair.reset(seed=seed, options={"reset_mask": mask})
    for _ in range(12):
        pair.step(pair.actions(rng))
    pair.reset()
    for _ in range(5):
        pair.step(pair.actions(rng))
    pair.reset(seed=2)


@pytest.mark.parametrize("game", WITHOUT_BUTTON)
def test_continuous_actions_index_by_number_as_ale_does(game: str, device: str) -> None:
    pair = Pair(game, device=device, continuous=True)
    pair.reset(seed=SEED)
    rng = np.random.default_rng(SEED)
    for _ in range(60):
        actions = pair.actions(rng)
        actions[:, 2] = 0
        actions[:, 1] = np.clip(actions[:, 1], -0.5, 0.5)
        pair.step(actions)


def test_actions_are_sent_and_results_received_as_in_ale() -> None:
    """Plays with ale-py's two halves of a step."""
    pair = Pair("breakout")
    pair.reset(seed=SEED)
    for i in range(5):
        actions = np.array([i % 4, 1])
        pair.ale.send(actions)
        pair.cule.send(actions)
        theirs, ours = pair.ale.recv(), pair.cule.recv()
        for a, b in zip(ours[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(a, b)


# Everything for longer ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("game", GAMES)
def test_every_game_matches_ale_for_long(game: str, mode: str, device: str) -> None:
    options = {"reward_clipping": False, "episodic_life": mode == "SameStep"}
    Pair(game, 4, device, autoreset_mode=mode, **options).play(600)


@pytest.mark.slow
@pytest.mark.parametrize(
    "game", [game for game in GAMES if game not in (*WITHOUT_BUTTON, "tic_tac_toe_3d")]
)
def test_every_game_matches_ale_with_continuous_actions_in_color(game: str, device: str) -> None:
    Pair(game, 2, device, continuous=True, grayscale=False, img_height=93, img_width=111).play(150)


@pytest.mark.slow
@pytest.mark.parametrize("options", [options for _, options in OPTIONS], ids=str)
@pytest.mark.parametrize(
    "game", ["pong", "breakout", "ms_pacman", "seaquest", "air_raid", "adventure", "pitfall2"]
)
def test_every_option_matches_ale_in_more_games(
    game: str, options: dict[str, Any], device: str
) -> None:
    Pair(game, 3, device, **options).play(400)
