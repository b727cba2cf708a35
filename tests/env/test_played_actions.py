"""With sticky actions the info says what was played, which an env without them then plays again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cule


def make(device: str, **options: Any) -> cule.AtariEnv:
    return cule.AtariEnv(
        "breakout", 6, device, output="numpy", reset_pool_size=2, full_action_space=True,
        max_num_frames_per_episode=100, **{"use_fire_reset": False, "noop_max": 1} | options,
    )  # fmt: skip


def test_info_says_which_frames_held_an_earlier_action(device: str) -> None:
    """An env of single frames and without sticky actions is told what each frame has played."""
    frameskip = 3
    sticky = make(device, frameskip=frameskip, repeat_action_probability=0.4)
    told = make(device, frameskip=1, autoreset_mode="disabled")
    for env in (sticky, told):
        env.reset(seed=5)
    rng, held, seen = np.random.default_rng(0), np.zeros(6, int), set()
    for _ in range(32):
        actions = rng.integers(0, 18, 6)
        info = sticky.step(actions)[4]
        repeated = info["repeated_frames"]
        assert info["_repeated_frames"].all() and repeated.dtype == np.int32
        for frame in range(frameskip):
            played = np.where(frame < repeated, held, actions)
            told.step(played)
        held = played
        np.testing.assert_array_equal(info["played_action"], held)
        np.testing.assert_array_equal(sticky.get_ram(), told.get_ram())
        seen |= set(repeated.tolist())
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_a_step_says_what_it_played_and_not_what_a_restart_did(mode: str, device: str) -> None:
    """FIRE of a restart is not what the step played; a step that only resets has played nothing."""
    env = make(device, repeat_action_probability=1e-9, autoreset_mode=mode, noop_max=3)
    env.reset(seed=0)
    ends = 0
    for _ in range(60):
        _, _, terminated, truncated, info = env.step([3] * 6)
        nothing = info["new_game"] & ~(terminated | truncated)
        np.testing.assert_array_equal(info["played_action"], np.where(nothing, 0, 3))
        ends += int((terminated | truncated).sum())
    assert ends == 12


def test_info_is_there_with_sticky_actions_only() -> None:
    plain, sticky = make("cpu"), make("cpu", repeat_action_probability=0.5)
    for env, there in ((plain, False), (sticky, True)):
        info = env.reset(seed=0)[1]
        assert "played_action" not in info
        assert ("played_action" in env.step([0] * 6)[4]) is there


def test_steps_that_start_an_episode_repeat_nothing() -> None:
    env = make("cpu", repeat_action_probability=0.9)
    env.reset(seed=0)
    for step in range(52):
        info = env.step([3 if step < 25 else 4] * 6)[4]
        if info["new_game"].any():
            assert not info["repeated_frames"][info["new_game"]].any()
            return
    raise AssertionError("no episode began")
