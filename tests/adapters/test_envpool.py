"""The EnvPool surface, driven as CleanRL's ppo_atari_envpool.py drives EnvPool."""

from __future__ import annotations

import sys
import types
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

import cule
from cule.adapters import envpool

OPTIONS: dict[str, Any] = {"device": "cpu", "num_threads": 1, "reset_pool_size": 2}


class ReturnsOfGames(gym.Wrapper):
    """Adds up unclipped rewards until a game is over, as CleanRL's wrapper for EnvPool does."""

    def __getattr__(self, name: str) -> Any:
        """As wrappers of gym 0.23, which CleanRL uses, have it."""
        return getattr(self.env, name)

    def reset(self, **options: Any) -> Any:
        self.returns = np.zeros(self.env.num_envs, np.float32)
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        observations, rewards, dones, infos = self.env.step(action)
        self.returns += infos["reward"]
        infos["r"] = self.returns.copy()
        self.returns *= 1 - infos["terminated"]
        return observations, rewards, dones, infos


def test_cleanrl_loop_learns() -> None:
    """Rollouts, advantages, one gradient step each: the calls and attributes that CleanRL's script makes."""
    torch.manual_seed(0)
    envs = envpool.make(
        "Breakout-v5", env_type="gym", num_envs=4, episodic_life=True, reward_clip=True, seed=1, **OPTIONS
    )
    envs.num_envs = 4
    envs.single_action_space = envs.action_space
    envs.single_observation_space = envs.observation_space
    envs = ReturnsOfGames(envs)
    assert isinstance(envs.action_space, gym.spaces.Discrete)
    agent = nn.Sequential(nn.Flatten(), nn.Linear(4 * 84 * 84, 16), nn.ReLU(), nn.Linear(16, envs.action_space.n + 1))
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-4)
    next_obs = torch.Tensor(envs.reset())
    assert next_obs.shape == (4, *envs.single_observation_space.shape)
    lost_lives, games = 0, []
    for _ in range(12):
        log_chances, values, rewards, dones = [], [], [], []
        for _ in range(24):
            out = agent(next_obs / 255.0)
            chances = torch.distributions.Categorical(logits=out[:, 1:])
            action = chances.sample()
            log_chances.append(chances.log_prob(action))
            values.append(out[:, 0])
            next_obs, reward, next_done, info = envs.step(action.cpu().numpy())
            rewards.append(torch.tensor(reward).view(-1))
            next_obs, next_done = torch.Tensor(next_obs), torch.Tensor(next_done)
            dones.append(next_done)
            for idx, d in enumerate(next_done):
                lost_lives += int(d)
                if d and info["lives"][idx] == 0:
                    games.append(info["r"][idx])
        gains, gain = [], torch.zeros(4)
        for reward, done in zip(reversed(rewards), reversed(dones), strict=True):
            gain = reward + 0.99 * gain * (1 - done)
            gains.insert(0, gain)
        advantages = torch.stack(gains) - torch.stack(values)
        loss = (advantages.detach() * -torch.stack(log_chances)).mean() + advantages.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len(games) >= 3
    assert lost_lives >= 5 * len(games), "an episode is a life, a game goes on through five"
    assert max(games) >= 1


@pytest.mark.parametrize("env_type", ["gym", "gymnasium"])
def test_both_apis_return_what_they_should(env_type: str) -> None:
    env = getattr(envpool, f"make_{env_type}")("Pong-v5", num_envs=2, max_episode_steps=8, **OPTIONS)
    first = env.reset()
    if env_type == "gymnasium":
        observations, info = first
        assert info["reward"].tolist() == [0, 0]
    else:
        observations = first
    assert isinstance(observations, np.ndarray) and observations.shape == (2, 4, 84, 84)
    assert len(env) == 2
    assert env.observation_space.shape == (4, 84, 84)
    steps = []
    for _ in range(12):
        result = env.step(np.zeros(2, int))
        assert len(result) == (5 if env_type == "gymnasium" else 4)
        assert result[1].dtype == np.float32
        done = result[2] | result[3] if env_type == "gymnasium" else result[2]
        assert done.dtype == np.bool_
        steps.append((result[-1]["elapsed_step"].tolist(), done.tolist()))
    assert ([0, 0], [False, False]) in steps[1:], "the step after an end resets"
    assert any(done == [True, True] for _, done in steps)
    env.close()


@pytest.mark.parametrize("env_type", ["gym", "gymnasium"])
def test_asynchronous_calls_give_what_steps_give(env_type: str) -> None:
    options = {"num_envs": 3, "env_type": env_type, "seed": 9} | OPTIONS
    waits, steps = envpool.make("Pong-v5", **options), envpool.make("Pong-v5", **options)
    waits.async_reset()
    result = waits.recv()
    first = steps.reset()
    np.testing.assert_array_equal(result[0], first[0] if env_type == "gymnasium" else first)
    assert len(result) == (5 if env_type == "gymnasium" else 4)
    np.testing.assert_array_equal(result[-1]["env_id"], [0, 1, 2])
    rng = np.random.default_rng(0)
    for _ in range(10):
        actions, order = rng.integers(6, size=3), rng.permutation(3)
        waits.send(actions[order], order)
        for a, b in zip(waits.recv()[:-1], steps.step(actions)[:-1], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("env_type", ["gym", "gymnasium"])
@pytest.mark.parametrize("ids", [[0, 2], np.array([2, 0]), np.array([True, False, True])], ids=str)
def test_reset_of_some_envs_lets_the_others_go_on(env_type: str, ids: Any) -> None:
    """Their rows only are returned, in the order of the ids."""
    env = envpool.make("Breakout-v5", env_type, num_envs=3, **OPTIONS)
    env.reset()
    for _ in range(5):
        info = env.step([1, 2, 3])[-1]
    before = info["frame_number"].copy()
    masked = np.asarray(ids).dtype == np.bool_
    result = env.reset(options={"reset_mask": ids}) if masked else env.reset(ids)
    order = [0, 2] if masked else list(ids)
    observations = result[0] if env_type == "gymnasium" else result
    assert observations.shape == (2, 4, 84, 84)
    if env_type == "gymnasium":
        assert result[1]["env_id"].tolist() == order
        assert result[1]["elapsed_step"].tolist() == [0, 0]
        assert result[1]["lives"].tolist() == [5, 5]
    info = env.step([0, 0, 0])[-1]
    assert info["elapsed_step"].tolist() == [1, 6, 1]
    assert info["frame_number"][1] == before[1] + 4
    assert info["episode_frame_number"][0] < info["episode_frame_number"][1]


def test_reset_takes_seeds() -> None:
    options = OPTIONS | {"num_envs": 3, "env_type": "gymnasium", "noop_max": 30, "reset_pool_size": 0}
    env, plain = (
        envpool.make("Pong-v5", **options),
        cule.AtariEnv("pong", 3, device="cpu", num_threads=1, reset_pool_size=0, output="numpy"),
    )
    np.testing.assert_array_equal(env.reset(seed=7)[0], plain.reset(seed=7)[0])
    # Env 2 gets the seed 20, env 0 the seed 10.
    ours = env.reset(np.array([2, 0]), seed=[20, 10])
    theirs = plain.reset(seed=[10, 20], options={"reset_mask": np.array([True, False, True])})
    np.testing.assert_array_equal(ours[0], theirs[0][[2, 0]])
    np.testing.assert_array_equal(ours[1]["frame_number"], theirs[1]["frame_number"][[2, 0]])
    assert len(set(ours[1]["frame_number"].tolist())) == 2, "these seeds can be told apart"
    first = envpool.make("Pong-v5", **options, seed=7)
    np.testing.assert_array_equal(first.reset()[1]["frame_number"], plain.reset(seed=7)[1]["frame_number"])


def test_attributes_are_there() -> None:
    env = envpool.make("Pong-v5", num_envs=3, frame_skip=2, seed=5, **OPTIONS)
    assert env.all_env_ids.tolist() == [0, 1, 2] and env.all_env_ids.dtype == np.int32
    assert env.is_async is False
    assert env.single_observation_space == env.observation_space
    assert env.single_action_space == env.action_space
    config = env.config
    assert (config["task"], config["num_envs"], config["batch_size"], config["seed"]) == ("Pong-v5", 3, 3, 5)
    assert (config["frame_skip"], config["gray_scale"], config["stack_num"]) == (2, True, 4)
    assert (config["num_threads"], config["max_episode_steps"]) == (1, 27_000)
    assert {"Pong-v5", "MsPacman-v5"} < set(envpool.list_all_envs())
    assert len(envpool.list_all_envs()) == len(cule.games())


def test_spaces_are_those_of_gym_where_a_script_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """CleanRL's script asks for `isinstance(envs.action_space, gym.spaces.Discrete)` of the old gym."""

    class GymBox(gym.spaces.Box):
        pass

    class GymDiscrete(gym.spaces.Discrete):
        pass

    old_gym = types.SimpleNamespace(spaces=types.SimpleNamespace(Box=GymBox, Discrete=GymDiscrete))
    monkeypatch.setitem(sys.modules, "gym", old_gym)
    env = envpool.make("Pong-v5", env_type="gym", num_envs=2, **OPTIONS)
    assert isinstance(env.action_space, GymDiscrete) and env.action_space.n == 6
    assert isinstance(env.observation_space, GymBox) and env.observation_space.shape == (4, 84, 84)
    env = envpool.make("Pong-v5", env_type="gymnasium", num_envs=2, **OPTIONS)
    assert not isinstance(env.action_space, GymDiscrete) and not isinstance(env.observation_space, GymBox)


def test_keywords_mean_what_envpools_mean() -> None:
    env = envpool.make(
        "MsPacman-v5", gray_scale=False, frame_skip=3, stack_num=2, img_height=60, img_width=50, **OPTIONS
    )
    plain = env.env
    assert env.observation_space.shape == (2, 60, 50, 3)
    assert plain.engine.options.frameskip == 3
    assert plain.engine.options.max_frames == 3 * 27_000
    assert not plain.engine.options.reward_clipping
    assert plain.games[0].name == "ms_pacman"
    assert isinstance(plain, cule.AtariEnv)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="env_type to be 'gym' or 'gymnasium', got 'dm'"):
        envpool.make("Pong-v5", "dm")
    with pytest.raises(TypeError, match=r"expected keywords of EnvPool's that cule has .* got 'max_num_players'"):
        envpool.make("Pong-v5", max_num_players=2)
    with pytest.raises(ValueError, match=r"batch_size to be 0 or num_envs \(4\)"):
        envpool.make("Pong-v5", num_envs=4, batch_size=2, **OPTIONS)
    env = envpool.make("Pong-v5", num_envs=2, **OPTIONS)
    env.reset()
    for ids in ([0], [0, 0], [1, 2]):
        with pytest.raises(ValueError, match="env_id to name each of the 2 envs once, got"):
            env.send(np.zeros(len(ids), int), ids)
    for actions in (0, [0], np.arange(4)):
        with pytest.raises(ValueError, match=r"expected an action for each of the 2 envs, got shape \("):
            env.step(actions, [1, 0])
    with pytest.raises(ValueError, match=r"expected actions to have shape \(2,\), got \(4,\)"):
        env.step([0, 1, 0, 1])


def test_wrong_resets_are_refused() -> None:
    env = envpool.make("Pong-v5", num_envs=2, **OPTIONS)
    with pytest.raises(gym.error.ResetNeeded, match="the first reset to reset every env"):
        env.reset([0])
    env.reset()
    for ids, sentence in (([2], "from 0 to 1, got"), ([0, 0], r"env_id to name an env once, got \[0, 0\]")):
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
