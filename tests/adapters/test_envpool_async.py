"""EnvPool's asynchronous mode, `batch_size` below `num_envs`, and where EnvPool is installed its
own."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cule.adapters import envpool, envpool_v0

OPTIONS: dict[str, Any] = {"num_threads": 2, "reset_pool_size": 2, "max_episode_steps": 25}
STEPS = 60


def actions_of(num_envs: int, count: int) -> np.ndarray:
    """The action of each step of each env, [env][step]."""
    return np.random.default_rng(0).integers(count, size=(num_envs, STEPS))


def rows(result: tuple[Any, ...]) -> dict[int, dict[str, Any]]:
    """What a call returned of each env, by its number."""
    *values, info = result
    named = dict(zip(("obs", "reward", "terminated", "truncated"), values, strict=False))
    named |= {key: value for key, value in info.items() if key != "players"}
    ids = info["env_id"]
    assert len(set(ids.tolist())) == len(ids)
    np.testing.assert_array_equal(info["players"]["env_id"], ids)
    return {
        int(env): {key: value[i].copy() for key, value in named.items()}
        for i, env in enumerate(ids)
    }


def played_together(env: Any, actions: np.ndarray) -> list[list[dict[str, Any]]]:
    """Each env's rows: first the reset's, then the steps'. All envs step together."""
    env.async_reset()
    found = [rows(env.recv())]
    for step in range(STEPS):
        found.append(rows(env.step(actions[:, step])))
    return [[row[env] for row in found] for env in range(len(actions))]


def played_apart(env: Any, actions: np.ndarray, batch_size: int) -> list[list[dict[str, Any]]]:
    """The same, each env as soon as it is received, until one has played all of its actions."""
    found: list[list[dict[str, Any]]] = [[] for _ in actions]
    env.async_reset()
    while True:
        received = rows(env.recv())
        assert len(received) == batch_size
        for number, row in received.items():
            found[number].append(row)
        if max(map(len, found)) > STEPS:
            return found
        ids = np.array(list(received))
        env.send(np.array([actions[i, len(found[i]) - 1] for i in ids]), ids)


def assert_equal_rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    for a, b in zip(found, expected, strict=False):
        assert a.keys() == b.keys()
        for key in a:
            assert a[key].dtype == b[key].dtype
            np.testing.assert_array_equal(a[key], b[key], err_msg=key)


@pytest.mark.parametrize("episodic_life", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_each_env_plays_as_in_the_synchronous_mode(batch_size: int, episodic_life: bool) -> None:
    options = {"num_envs": 4, "seed": 5, "episodic_life": episodic_life} | OPTIONS
    actions = actions_of(4, 4)
    expected = played_together(envpool.make("Breakout-v5", device="cpu", **options), actions)
    env = envpool.make("Breakout-v5", batch_size=batch_size, **options)
    assert env.is_async is True and env.config["batch_size"] == batch_size
    found = played_apart(env, actions, batch_size)
    assert all(found), "each env was received"
    for mine, theirs in zip(found, expected, strict=True):
        assert_equal_rows(mine, theirs)
    env.close()  # while envs play


@pytest.mark.parametrize("task", ["Pong-v5", "SpaceInvaders-v5"])
def test_envpool_itself_gives_each_env_the_same(task: str) -> None:
    """Bit for bit, up to the first end of an episode, whose last observation is another one."""
    real = pytest.importorskip("envpool")
    options = {
        "num_envs": 4, "batch_size": 2, "num_threads": 2, "seed": 3, "max_episode_steps": 50,
    }  # fmt: skip
    theirs = real.make_gymnasium(task, **options)
    ours = envpool.make_gymnasium(task, **options, reset_pool_size=0)
    assert (theirs.is_async, theirs.config["batch_size"]) == (ours.is_async, 2)
    actions = actions_of(4, ours.action_space.n)
    for found, expected in zip(
        played_apart(ours, actions, 2), played_apart(theirs, actions, 2), strict=True
    ):
        count = min(50, len(found), len(expected))
        assert count > 1
        assert_equal_rows(found[:count], expected[:count])


def test_step_and_dicts_and_the_old_interface_are_for_some_envs_too() -> None:
    env = envpool_v0.make("Pong-v5", num_envs=3, batch_size=2, **OPTIONS)
    env.async_reset()
    observations, rewards, done, info = env.recv()
    assert observations.shape == (2, 4, 84, 84) and not done.any() and not rewards.any()
    assert info["elapsed_step"].tolist() == [0, 0] and "ram" not in info
    ids = info["env_id"]
    *_, info = env.step({"action": np.zeros(2, np.int32), "env_id": ids})
    late = {0, 1, 2} - set(ids.tolist())
    assert len(info["env_id"]) == 2 and late <= {0, 1, 2}
    assert set(info["elapsed_step"].tolist()) <= {0, 1}


def test_some_envs_are_reset_while_others_play() -> None:
    env = envpool.make("Breakout-v5", num_envs=4, batch_size=2, **OPTIONS)
    observations, info = env.reset()
    assert observations.shape == (2, 4, 84, 84) and set(info["elapsed_step"].tolist()) == {0}
    env.recv()
    env.send(np.ones(4, int))
    env.recv(), env.recv()
    env.send([2, 3], [3, 1])
    seen = rows(env.reset([0, 2])) | rows(env.recv())
    assert {number: row["elapsed_step"] for number, row in sorted(seen.items())} == {
        0: 0, 1: 2, 2: 0, 3: 2,
    }  # fmt: skip


def test_wrong_calls_are_refused() -> None:
    env = envpool.make("Pong-v5", num_envs=3, batch_size=2, **OPTIONS)
    with pytest.raises(gym.error.NoAsyncCallError, match=r"at least batch_size \(2\) envs with"):
        env.recv()
    with pytest.raises(gym.error.ResetNeeded):
        env.send([0], [1])
    env.async_reset()
    with pytest.raises(gym.error.AlreadyPendingCallError, match="envs that are not in flight"):
        env.send([0, 0, 0])
    ids = env.recv()[-1]["env_id"]
    for actions, names, sentence in (
        ([0], ids, "an action for each of the 2 envs, got shape"),
        ([0, 99], ids, "actions from 0 to 5"),
        ([0], [7], "env_ids from 0 to 2, got"),
        ([0, 0], [ids[0], ids[0]], "each env once, got"),
    ):
        with pytest.raises(ValueError, match=sentence):
            env.send(actions, names)
    with pytest.raises(gym.error.NoAsyncCallError, match="got 1"):
        env.recv()
    env.send([0, 0], ids)
    assert len(env.recv()[0]) == 2


@pytest.mark.gpu
def test_gpu_has_no_asynchronous_mode() -> None:
    with pytest.raises(ValueError, match=r"env with device='cpu' to step some .* got device cuda"):
        envpool.make("Pong-v5", num_envs=3, batch_size=2, device="cuda")
    assert envpool.make("Pong-v5", num_envs=3, batch_size=2).env.device.type == "cpu"
