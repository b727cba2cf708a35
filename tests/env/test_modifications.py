"""Named modifications do what they say, and RAM labels are where a game keeps its things."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cule
from cule.facts.modifications import MODIFICATIONS
from cule.facts.ram_labels import RAM_LABELS

STEPS = 380
GAMES = tuple(MODIFICATIONS)
# Those that only change a color, in HackAtari's words.
RECOLORS = ("color_", "all_", "ui_color", "invisible_mode", "classic_colors", "red_river")
MADE = {"ui_color_red": 0x3E, "red_river": 0x42}


def play(name: str, steps: int = STEPS) -> dict[str, Any]:
    """The game without modifications (row 0) and with each of them, in the same seeds and actions,
    until the screens of all of them differ from the first: the numbers of lives, RAM, screens."""
    known = cule.modifications(name)
    env = cule.AtariEnv(
        name, len(known) + 1, "cpu", num_threads=1, output="numpy", noop_max=0, reset_pool_size=1,
        full_action_space=True, stack_num=1, img_height=4, img_width=4, maxpool=False,
    )  # fmt: skip
    for number, one in enumerate(known, start=1):
        env.set_patches(one.name, [number])
    env.reset(seed=np.zeros(len(known) + 1, int))
    rng, action = np.random.default_rng(1), 0
    lives, rams = [], []
    differ = np.zeros(len(known) + 1, bool)
    for step in range(steps):
        if step % 4 == 0:
            action = int(rng.integers(18))
        info = env.step([action] * len(differ))[4]
        lives.append(info["lives"])
        rams.append(env.get_ram())
        if step % 8 == 0:
            screens = env.get_screen()
            differ |= (screens != screens[0]).any(axis=(1, 2))
        if step == 0:
            first = screens
        if differ[1:].all() and step > 40:
            break
    return {"lives": np.array(lives), "rams": np.array(rams), "first": first, "differ": differ}


@pytest.mark.parametrize("name", GAMES)
def test_modification_is_seen(name: str) -> None:
    """Pictures differ from those of the game itself. What is always held stays in RAM. Colors are
    those that are named. Where no life is lost, there are as many as at first."""
    found = play(name)
    first, lives = found["first"], found["lives"]
    for number, one in enumerate(cule.modifications(name), start=1):
        assert found["differ"][number], one.name
        for patch in one.patches:
            if patch.keep == 0 and patch.when is None and patch.every == 1:
                assert (found["rams"][:, number, patch.address] == patch.value).all(), one.name
        if one.name.startswith(RECOLORS):
            colors = set(first[number][first[number] != first[0]].tolist())
            held = {patch.value & 0xFE for patch in one.patches}  # the TIA has no lowest bit
            # The game may make a color of the byte.
            assert colors == {MADE[one.name]} if one.name in MADE else held <= colors, one.name
        if one.name == "unlimited_lives":
            assert lives[:, number].min() >= lives[:, 0].min()
            assert len(set(lives[30:, number])) <= 2  # while one is lost there may be one less


def test_cars_that_are_stopped_stay_where_they_are() -> None:
    found, known = play("freeway", 41), cule.modifications("freeway")
    lanes = {
        "stop_top_2": [8, 9], "stop_bottom_2": [0, 1], "stop_top_4": [6, 7, 8, 9],
        "stop_bottom_4": [0, 1, 2, 3], "stop_all_cars_tunnel": range(10),
    }  # fmt: skip
    cars = np.array(cule.ram_labels("freeway")["enemy_car_x"])
    for number, one in enumerate(known, start=1):
        if one.name in lanes:
            stopped = cars[list(lanes[one.name])]
            where = found["rams"][20:, number]
            assert (where[:, stopped] == where[0, stopped]).all(), one.name
            assert (found["rams"][20:, 0][:, stopped] != found["rams"][20, 0, stopped]).any()


def test_modifications_are_listed() -> None:
    listed = cule.modifications("Pong-v5")
    assert [one.name for one in listed] == list(MODIFICATIONS["pong"])
    assert all(
        one.effect.endswith(".") and one.source.startswith("https://") and one.patches
        for game in GAMES
        for one in cule.modifications(game)
    )
    assert cule.modifications("zaxxon") == []
    with pytest.raises(ValueError, match="one of the 104 games"):
        cule.modifications("pang")


def test_labels_are_bytes_of_ram() -> None:
    assert len(RAM_LABELS) == 24 and set(RAM_LABELS) <= set(cule.list_games())
    for game, labels in RAM_LABELS.items():
        for where in labels.values():
            for byte in where if isinstance(where, tuple) else (where,):
                assert 0 <= byte < 128, game
    with pytest.raises(
        ValueError, match=r"a game whose RAM has labels \(asteroids, .*got 'zaxxon'"
    ):
        cule.ram_labels("zaxxon")


@pytest.mark.parametrize(
    ("name", "label", "back"),
    [
        ("breakout", "player_x", (3, 4)), ("pong", "player_y", (3, 4)),
        ("seaquest", "player_x", (3, 4)), ("boxing", "player_y", (2, 5)),
        ("ms_pacman", "player_x", (3, 4)),
    ],
)  # fmt: skip
def test_label_follows_what_it_names(name: str, label: str, back: tuple[int, int]) -> None:
    """A player who goes one way and then back."""
    env = cule.AtariEnv(
        name, 1, "cpu", num_threads=1, output="numpy", noop_max=0, reset_pool_size=1,
        full_action_space=True,
    )  # fmt: skip
    env.reset(seed=0)
    where = cule.ram_labels(name)[label]
    for _ in range(70):  # until the game has begun
        env.step([0])
    ways = []
    for action in back:
        before = int(env.get_ram()[0, where])
        for _ in range(4):
            env.step([action])
        ways.append(int(env.get_ram()[0, where]) - before)
    assert ways[0] * ways[1] < 0
