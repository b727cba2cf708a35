"""`batch_size` below num_envs: each env plays as it does with all others at once, as in ale-py."""

from __future__ import annotations

from typing import Any

import ale_py
import numpy as np
import pytest
import torch
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
    for step in range(120):
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
    while steps.min() < 26:  # each env ends an episode
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
    assert ends >= NUM_ENVS
    env.close()


def started(**options: Any) -> cule.AtariEnv:
    env = cule.AtariEnv("pong", 3, "cpu", batch_size=2, num_threads=1, reset_pool_size=1, **options)
    env.reset(seed=0)
    return env


def test_a_reset_ends_what_is_in_flight() -> None:
    env = started(repeat_action_probability=0.5)
    env.send([2, 2])
    Flights(env).settle()
    left = ("rewards", "raw_rewards", "terminated", "truncated", "repeated", "played")
    for name in left:  # as a step may leave them
        env.engine.tensors[name].fill_(1)
    observations, info = env.reset(seed=0)
    assert observations.shape == (2, 4, 84, 84) and "raw_reward" not in info
    seen: set[int] = set(info["env_id"].tolist())
    while len(seen) < 3:
        _, rewards, terminated, truncated, info = env.step([0, 0])
        new = [row for row, number in enumerate(info["env_id"].tolist()) if number not in seen]
        assert not any(rewards[row] or terminated[row] or truncated[row] for row in new)
        for name in ("raw_reward", "repeated_frames", "played_action"):
            assert not info[name][new].any()
        seen |= set(info["env_id"].tolist())


def test_calls_out_of_turn_are_refused() -> None:
    env = started()
    env.send([0, 0])
    with pytest.raises(
        error.AlreadyPendingCallError, match="a batch to be received before actions"
    ):
        env.send([0, 0])
    ids = env.recv()[4]["env_id"].tolist()
    with pytest.raises(
        error.NoAsyncCallError, match=r"actions for the batch .* before recv\(\), got none"
    ):
        env.recv()
    for call in (
        env.get_ram, env.render, lambda: env.set_ram(1, 1), lambda: env.set_patches(None),
    ):  # fmt: skip
        with pytest.raises(
            error.AlreadyPendingCallError,
            match=r"steps all envs for \w+\(\), got one with batch_size=2 and 3 envs, of which",
        ):
            call()
    with pytest.raises(ValueError, match=r"no options of reset with batch_size < num_envs, got"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ValueError, match="no player_b_actions with batch_size < num_envs"):
        env.step([0, 0], [0, 0])
    with pytest.raises(ValueError, match="an env that steps all envs in EpisodeStatistics"):
        cule.EpisodeStatistics(env)
    with pytest.raises(ValueError, match=r"actions"):
        env.step([0, 0, 0])
    with pytest.raises(TypeError, match="expected seed to be an integer or one for each env"):
        env.reset(seed="x")
    for _ in range(4):  # the third is in flight as it was
        ids += env.step([0, 0])[4]["env_id"].tolist()
    assert set(ids) == {0, 1, 2}
    fresh = cule.AtariEnv("pong", 3, "cpu", batch_size=2, num_threads=1, reset_pool_size=1)
    with pytest.raises(
        error.NoAsyncCallError, match=r"actions of 2 envs before recv\(\), got .* 0"
    ):
        fresh.recv()
    with pytest.raises(error.ResetNeeded):
        fresh.step([0, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 4}, r"batch_size to be at most num_envs \(3\), got 4"),
        ({"batch_size": 2, "output": "torch_shared"}, "output 'torch' or 'numpy' with batch_size"),
        ({"batch_size": 2, "autoreset_mode": "disabled"}, "NEXT_STEP or SAME_STEP with batch_size"),
        ({"batch_size": 2, "render_mode": "human"}, "as envs are at different steps, got 'human'"),
    ],
)
def test_sizes_and_outputs_that_do_not_go_together_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        cule.AtariEnv("pong", 3, "cpu", **options)


def test_a_compiled_step_is_refused() -> None:
    env = started()
    graph = torch.compile(lambda actions: env.step(actions), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match=r"all envs under torch.compile, got one with batch_size=2"):
        graph(torch.zeros(2, dtype=torch.int64))
