"""What EnvPool's interface refuses, in sentences."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cule.adapters import envpool

OPTIONS: dict[str, Any] = {"device": "cpu", "num_threads": 1, "reset_pool_size": 1}


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"env_type": "dm"}, ValueError, "env_type to be 'gym' or 'gymnasium', got 'dm'"),
        (
            {"frameskip": 4},
            TypeError,
            "keywords of EnvPool's Atari envs, got 'frameskip'; did you mean 'frame_skip'?",
        ),
        ({"from_pixels": True}, TypeError, "keywords of EnvPool's Atari envs, got 'from_pixels'"),
        ({"task": "pong"}, TypeError, "got 'task'"),
        ({"max_num_players": 2}, ValueError, "max_num_players to be 1, got 2"),
        ({"num_envs": 4, "batch_size": 5}, ValueError, "batch_size to be at most 4, got 5"),
        ({"num_envs": 4, "batch_size": -1}, ValueError, "batch_size to be at least 0, got -1"),
        ({"num_envs": 0}, ValueError, "num_envs to be at least 1, got 0"),
        (
            {"use_inter_area_resize": False},
            ValueError,
            "use_inter_area_resize to be True, as cule resizes by area",
        ),
        ({"thread_affinity_offset": -2}, ValueError, "thread_affinity_offset to be at least -1"),
        (
            {"seed": [1, 2], "env_seed": [1, 2]},
            ValueError,
            "either seeds for all envs as seed or as env_seed, got both",
        ),
        ({"seed": [1, 2]}, ValueError, "one integer for each of the 1 envs"),
        ({"seed": -1}, ValueError, "seed to be at least 0, got -1"),
        ({"mode": -2}, ValueError, "mode to be at least -1, got -2"),
        ({"gray_scale": 1}, TypeError, "gray_scale to be True or False, got 1"),
    ],
    ids=str,
)
def test_wrong_keywords_are_refused(
    options: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        envpool.make("Pong-v5", **options)
    assert sentence in str(caught.value)


def test_wrong_calls_are_refused() -> None:
    env = envpool.make("Pong-v5", num_envs=2, **OPTIONS)
    env.reset()
    for ids in ([0], [0, 0]):
        with pytest.raises(ValueError, match="env_id to name each of the 2 envs once, got"):
            env.send(np.zeros(len(ids), int), ids)
    with pytest.raises(ValueError, match="expected env_ids from 0 to 1, got"):
        env.send([0, 0], [1, 2])
    for actions in (0, [0], np.arange(4)):
        with pytest.raises(
            ValueError, match=r"expected an action for each of the 2 envs, got shape \("
        ):
            env.step(actions, [1, 0])
    with pytest.raises(ValueError, match=r"expected actions to have shape \(2,\), got \(4,\)"):
        env.step([0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"a dict of actions to have 'action', got \['env_id'\]"):
        env.step({"env_id": [0, 1]})


def test_wrong_resets_are_refused() -> None:
    env = envpool.make("Pong-v5", num_envs=2, **OPTIONS)
    with pytest.raises(gym.error.ResetNeeded, match="the first reset to reset every env"):
        env.reset([0])
    env.reset()
    for ids, sentence in (
        ([2], "from 0 to 1, got"),
        ([0, 0], r"env_id to name an env once, got \[0, 0\]"),
    ):
        with pytest.raises(ValueError, match=sentence):
            env.reset(ids)
    with pytest.raises(TypeError, match="expected env_ids to be a list of integers"):
        env.reset([0.5])
    with pytest.raises(ValueError, match=r"either env_id or options\['reset_mask'\], got both"):
        env.reset([0], options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match="options of a reset to be reset_mask, got 'mask'"):
        env.reset(options={"mask": np.array([True, False])})
    with pytest.raises(ValueError, match="one integer for each of the 1 envs"):
        env.reset([0], seed=[1, 2])
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        env.reset(force=True)
