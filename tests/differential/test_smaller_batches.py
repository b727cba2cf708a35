"""`batch_size` below num_envs: each env plays as it does with all others at once, as in ale-py."""

from __future__ import annotations

from typing import Any

import ale_py
import numpy as np
import pytest
from gymnasium import error

import cule
from cule.env.flights import Flights

NUM_ENVS, SIZE, SEED = 5, 2, 11
OPTIONS: dict[str, Any] = {"noop_max": 5, "max_num_frames_per_episode": 90}
COMPARED = ("lives", "frame_number", "episode_frame_number")


def action_of(env: int, step: int) -> int:
    return int(np.random.default_rng([env, step]).integers(4))


def of_all(mode: str) -> list[tuple[Any, ...]]:
    """For each step, what ale-py's env returns of all envs; first what its reset does."""
    env = ale_py.AtariVectorEnv(
        "breakout", NUM_ENVS, num_threads=1, autoreset_mode=mode, **OPTIONS
    )  # fmt: skip
    observations, info = env.reset(seed=SEED)
    nothing = np.zeros(NUM_ENVS, int)
    found: list[tuple[Any, ...]] = [(observations, nothing, nothing > 0, nothing > 0, info)]
    for step in range(60):
        found.append(env.step(np.array([action_of(i, step) for i in range(NUM_ENVS)])))
    env.close()
    return found


@pytest.mark.parametrize(("mode", "output"), [("NextStep", "torch"), ("SameStep", "numpy")])
def test_each_env_plays_as_with_all_others(mode: str, output: str) -> None:
    expected = of_all(mode)
    env = cule.AtariEnv(
        "breakout", NUM_ENVS, "cpu", batch_size=SIZE, num_threads=2, autoreset_mode=mode,
        reset_pool_size=0, output=output, **OPTIONS,
    )  # fmt: skip
    assert env.batch_size == SIZE and env.observation_space.shape == (SIZE, 4, 84, 84)
    assert env.action_space.shape == (SIZE,) and env.num_envs == NUM_ENVS
    steps, ends = np.zeros(NUM_ENVS, int), 0
    observations, info = env.reset(seed=SEED)
    results: tuple[Any, ...] = (observations, [0] * SIZE, [False] * SIZE, [False] * SIZE, info)
    while steps.min() < 18:
        infos = results[4]
        ids = np.asarray(infos["env_id"])
        assert ids.shape == (SIZE,) and len(set(ids)) == SIZE
        for row, number in enumerate(ids):
            of_env = expected[steps[number]]
            for value, theirs in zip(results[:4], of_env, strict=False):
                np.testing.assert_array_equal(np.asarray(value[row]), theirs[number])
            for name in COMPARED:
                assert infos[name][row] == of_env[4][name][number] and infos[f"_{name}"][row]
            if mode == "SameStep" and (of_env[2][number] or of_env[3][number]):
                final = np.asarray(infos["final_obs"][row])
                np.testing.assert_array_equal(final, of_env[4]["final_obs"][number])
                assert infos["_final_obs"][row]
            ends += int(of_env[2][number] or of_env[3][number])
        env.send([action_of(number, steps[number]) for number in ids])
        steps[ids] += 1
        results = env.recv()
    assert ends > 2
    env.close()


def started(**options: Any) -> cule.AtariEnv:
    env = cule.AtariEnv("pong", 3, "cpu", batch_size=2, num_threads=1, reset_pool_size=1, **options)
    env.reset(seed=0)
    return env


def test_a_reset_ends_what_is_in_flight() -> None:
    env = started()
    env.send([2, 2])
    Flights(env).settle()
    for name in ("rewards", "raw_rewards", "terminated", "truncated"):  # as a step may leave them
        env.engine.tensors[name].fill_(1)
    observations, info = env.reset(seed=0)
    assert observations.shape == (2, 4, 84, 84) and "raw_reward" not in info
    seen: set[int] = set(info["env_id"].tolist())
    while len(seen) < 3:
        _, rewards, terminated, truncated, info = env.step([0, 0])
        new = [row for row, number in enumerate(info["env_id"].tolist()) if number not in seen]
        assert not any(rewards[row] or terminated[row] or truncated[row] for row in new)
        seen |= set(info["env_id"].tolist())


def test_calls_out_of_turn_are_refused() -> None:
    env = started()
    env.send([0, 0])
    with pytest.raises(
        error.AlreadyPendingCallError, match="a batch to be received before actions"
    ):
        env.send([0, 0])
    env.recv()
    with pytest.raises(
        error.NoAsyncCallError, match=r"actions of 2 envs before recv\(\), got .* 1"
    ):
        env.recv()
    with pytest.raises(error.AlreadyPendingCallError):
        env.get_ram()
    with pytest.raises(ValueError, match=r"no options of reset with batch_size < num_envs, got"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ValueError, match="no player_b_actions with batch_size < num_envs"):
        env.step([0, 0], [0, 0])
    with pytest.raises(ValueError, match="an env that steps all envs in EpisodeStatistics"):
        cule.EpisodeStatistics(env)
    with pytest.raises(ValueError, match=r"actions"):
        env.step([0, 0, 0])
    fresh = cule.AtariEnv("pong", 3, "cpu", batch_size=2, num_threads=1, reset_pool_size=1)
    with pytest.raises(error.ResetNeeded):
        fresh.step([0, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 4}, r"batch_size to be at most num_envs \(3\), got 4"),
        ({"batch_size": 2, "output": "torch_shared"}, "output 'torch' or 'numpy' with batch_size"),
        ({"batch_size": 2, "render_mode": "human"}, "as envs are at different steps, got 'human'"),
    ],
)
def test_sizes_and_outputs_that_do_not_go_together_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        cule.AtariEnv("pong", 3, "cpu", **options)
