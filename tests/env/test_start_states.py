"""The states that episodes start from, and the bar while they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cule
from cule import _core
from cule.console import EPISODE_STARTS, Console, Group, Options, boot
from cule.console.console import Snapshot
from cule.console.start_states import make_reset_pool
from cule.engine import start_states
from cule.rom import find_game


def emulated_alone(group: Group, noops: int, options: Options) -> Snapshot:
    """A start state that is emulated from power-on, in an episode of its own."""
    booted = boot(group.game)
    console = Console(group, options, booted.pal)
    console.configure()
    console.load(booted.snapshot)
    _core.start_pool_episode(console.batch, noops)
    _core.end_pool_episode(console.batch, noops)
    return console.snapshot()


@pytest.mark.parametrize("episode_start", EPISODE_STARTS)
@pytest.mark.parametrize(
    ("game", "noop_max", "size", "fire_reset"),
    [
        ("pong", 30, 7, True), ("pong", 3, 8, True), ("pong", 30, 4, False),
        ("skiing", 30, 4, True),
        ("pitfall2", 9, 3, True), ("breakout", 0, 3, True), ("assault", 1400, 3, False),
    ],
)  # fmt: skip
def test_pool_is_what_episodes_of_their_own_give(
    game: str, noop_max: int, size: int, fire_reset: bool, episode_start: str
) -> None:
    """In the pool, each state continues from the one before it.

    Without input, assault ends after 642 frames.
    """
    group = Group(find_game(game), find_game(game).facts["default_mode"], 0)
    options = Options(
        noop_max=noop_max, fire_reset=fire_reset, reset_pool_size=size, life_loss_info=True,
        episode_start=EPISODE_STARTS.index(episode_start),
    )  # fmt: skip
    pool, least = make_reset_pool(group, options), options.least_noops
    assert least == (episode_start == "baselines" and noop_max > 0)
    assert len(pool) == size
    for i, state in enumerate(pool):
        alone = emulated_alone(group, least + i * (noop_max - least) // size, options)
        for name in ("record", "ram", "cartridge_bytes", "pictures"):
            np.testing.assert_array_equal(
                getattr(state, name), getattr(alone, name), err_msg=f"{i} {name}"
            )


@pytest.mark.parametrize(("progress", "disable"), [(True, None), (False, True)])
def test_bar_is_for_terminals_and_can_be_turned_off(
    progress: bool, disable: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With disable=None, tqdm shows a bar only if stderr is a terminal."""
    asked: list[dict[str, Any]] = []

    def bar(items: Any, **options: Any) -> Any:
        asked.append(options)
        return items

    monkeypatch.setattr(start_states, "tqdm", bar)
    env = cule.AtariEnv(
        ["pong", "skiing"], 2, "cpu", num_threads=1, reset_pool_size=1, progress=progress
    )
    assert [(options["desc"], options["disable"]) for options in asked] == [
        ("power-on", disable), ("start states", disable),
    ]  # fmt: skip
    assert env.reset(seed=0)[0].any()
