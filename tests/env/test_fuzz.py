"""Any combination of arguments either works or raises an error whose message is a sentence."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cule

JUNK = st.sampled_from([
    None, "x", "", b"x", -1, 1.5, float("nan"), float("inf"), 2**31, 2**63, -(2**70), True, [], [1],
    [None], {}, {1: 2},
    (), object(), np.int64(-1), np.float32(0.5), np.zeros(2), np.zeros((2, 2), int), np.array("x"),
    torch.zeros(2),
    torch.zeros(2, dtype=torch.bool), lambda: 0, float, "cuda:99", 1j,
])  # fmt: skip
FLAG = st.booleans()
GOOD: dict[str, st.SearchStrategy[Any]] = {
    "game": st.sampled_from(
        ["pong", "ALE/Breakout-v5", "Qbert-v5", ["pong", "air_raid"], ["skiing"] * 2, "pnog"]
    ),
    "num_envs": st.integers(1, 3),
    "device": st.sampled_from([None, "cpu", torch.device("cpu")]),
    "max_num_frames_per_episode": st.integers(1, 40),
    "repeat_action_probability": st.floats(0, 1),
    "full_action_space": FLAG, "continuous": FLAG, "continuous_action_threshold": st.floats(0, 1),
    "autoreset_mode": st.sampled_from(["NextStep", "SameStep", "Disabled"]),
    "img_height": st.integers(1, 260), "img_width": st.integers(1, 170),
    "grayscale": FLAG, "stack_num": st.integers(1, 5), "frameskip": st.integers(1, 5),
    "maxpool": FLAG,
    "noop_max": st.integers(0, 4), "episodic_life": FLAG, "life_loss_info": FLAG,
    "reward_clipping": FLAG,
    "use_fire_reset": FLAG, "num_threads": st.integers(0, 3), "batch_size": st.integers(0, 2),
    "thread_affinity_offset": st.sampled_from([-1, 0]),
    "mode": st.one_of(st.integers(0, 4), st.lists(st.integers(0, 1), max_size=3)),
    "difficulty": st.one_of(st.integers(0, 3), st.lists(st.integers(0, 1), max_size=3)),
    "obs_type": st.sampled_from(["image", "ram"]), "seed": st.integers(0, 2**63 - 1),
    "reset_pool_size": st.integers(0, 2), "output": st.sampled_from(["torch", "numpy"]),
    "render_mode": st.sampled_from(["mosaic", "rgb_array", "rgb_array_list", None]),
    "progress": FLAG,
}  # fmt: skip
SMALL = {"game": "pong", "num_envs": 2, "device": "cpu", "num_threads": 1, "reset_pool_size": 1}
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def is_sentence(problem: Exception) -> bool:
    return "expected" in str(problem) or "was asked for" in str(problem)


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """Some options, most of them valid."""
    names = draw(st.lists(st.sampled_from(sorted(GOOD)), max_size=8, unique=True))
    chosen = {name: draw(GOOD[name]) for name in names}
    if draw(st.integers(0, 2)) == 0:
        chosen[draw(st.sampled_from(sorted(GOOD)))] = draw(JUNK)
    return SMALL | chosen


@FUZZ
@given(options())
def test_any_options_work_or_are_refused(chosen: dict[str, Any]) -> None:
    try:
        env = cule.AtariEnv(**chosen)
    except (ValueError, TypeError, torch.OutOfMemoryError) as problem:
        assert is_sentence(problem), problem
        return
    env.action_space.seed(0)
    observations, _ = env.reset()
    for _ in range(3):
        results = env.step(env.action_space.sample())
        assert not torch.as_tensor(results[4]["fault"]).any()
    assert tuple(results[0].shape) == tuple(observations.shape) == env.observation_space.shape
    if env.batch_size < env.num_envs:
        said = f"batch_size={env.batch_size}"
        with pytest.raises(gymnasium.error.AlreadyPendingCallError, match=said):
            env.render()
    else:
        assert env.render_mode is None or env.render() is not None
    env.close()


ENVS: dict[bool, cule.AtariEnv] = {}


def env_of(continuous: bool) -> cule.AtariEnv:
    if continuous not in ENVS:
        ENVS[continuous] = cule.AtariEnv(**SMALL, continuous=continuous)
        ENVS[continuous].reset(seed=0)
    return ENVS[continuous]


NUMBERS = st.one_of(
    st.lists(st.integers(-1, 7), max_size=3),
    st.lists(st.floats(width=32), max_size=3).map(lambda values: np.array(values, np.float32)),
    st.lists(st.lists(st.floats(-1, 2, width=32), min_size=3, max_size=3), max_size=3).map(
        lambda rows: np.array(rows, np.float32)
    ),
    st.lists(st.integers(-1, 7), max_size=3).map(
        lambda values: torch.tensor(values, dtype=torch.int32)
    ),
    st.lists(st.booleans(), max_size=3).map(lambda values: np.array(values, bool)),
    JUNK,
)
CALLS = {
    "step": lambda env, a, b: env.step(a, b),
    "reset": lambda env, a, b: env.reset(seed=a, options=b),
    "reset some": lambda env, a, b: env.reset(seed=a, options={"reset_mask": b}),
    "clone": lambda env, a, b: env.clone_state(a),
    "restore": lambda env, a, b: env.restore_state(env.clone_state([0]), a),
    "restore junk": lambda env, a, b: env.restore_state(a, b),
    "copy": lambda env, a, b: env.copy_state(a, b),
}


@FUZZ
@given(st.booleans(), st.sampled_from(sorted(CALLS)), NUMBERS, NUMBERS)
def test_any_arguments_of_calls_work_or_are_refused(
    continuous: bool, call: str, a: Any, b: Any
) -> None:
    env = env_of(continuous)
    try:
        CALLS[call](env, a, b)
    except (ValueError, TypeError, torch.OutOfMemoryError) as problem:
        assert is_sentence(problem), problem
    still = np.zeros((2, 3), np.float32) if continuous else np.zeros(2, int)
    results = env.step(still)
    assert results[0].any()
    assert not results[4]["fault"].any()
