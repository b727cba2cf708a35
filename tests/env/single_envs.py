"""An env of one console and ale-py's, which play the same."""

from __future__ import annotations

from typing import Any

import ale_py
import gymnasium
import numpy as np

gymnasium.register_envs(ale_py)
FRAMES = ("lives", "frame_number", "episode_frame_number")


def pair(name: str, ours: str | None = None, **options: Any) -> tuple[Any, Any]:
    """ale-py's env of this id, and cule's."""
    return gymnasium.make(name, **options), gymnasium.make(ours or f"cule/{name}", **options)


def assert_same(a: Any, b: Any) -> None:
    """Compares two results of `reset`, or two of `step`."""
    np.testing.assert_array_equal(a[0], b[0])
    assert a[0].dtype == b[0].dtype
    assert a[1:-1] == b[1:-1]
    assert [type(value) for value in a[1:-1]] == [type(value) for value in b[1:-1]]
    assert [a[-1][key] for key in FRAMES] == [b[-1][key] for key in FRAMES]


def assert_plays_the_same(
    theirs: gymnasium.Env, ours: gymnasium.Env, steps: int, seed: int = 5
) -> None:
    """Plays and compares beyond the ends of episodes, with resets that seed and resets that do
    not."""
    rng = np.random.default_rng(seed)
    episodes, next_seed = 0, seed
    assert_same(theirs.reset(seed=seed), ours.reset(seed=seed))
    for _ in range(steps):
        action = int(rng.integers(theirs.action_space.n))
        results = theirs.step(action), ours.step(action)
        assert_same(*results)
        if results[0][2] or results[0][3]:
            assert_same(theirs.step(action), ours.step(action))
            episodes, next_seed = episodes + 1, next_seed + 1
            chosen = next_seed if episodes % 2 else None
            assert_same(theirs.reset(seed=chosen), ours.reset(seed=chosen))
            assert theirs.unwrapped.np_random.random() == ours.unwrapped.np_random.random()
