"""EnvPool 0.x's interface, driven as CleanRL's ppo_atari_envpool.py drives EnvPool."""

from __future__ import annotations

import sys
import types
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from cule.adapters import envpool_v0 as envpool

OPTIONS: dict[str, Any] = {"device": "cpu", "num_threads": 1, "reset_pool_size": 2}


class ReturnsOfGames(gym.Wrapper):
    """Adds up unclipped rewards until a game is over, as CleanRL's wrapper for EnvPool does."""

    def __getattr__(self, name: str) -> Any:
        """Passes on all attributes, as wrappers of gym 0.23 do, which CleanRL uses."""
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
    """Makes the calls of CleanRL's script: rollouts, advantages, a gradient step for each."""
    torch.manual_seed(0)
    envs = envpool.make(
        "Breakout-v5",
        env_type="gym",
        num_envs=4,
        episodic_life=True,
        reward_clip=True,
        seed=1,
        **OPTIONS,
    )
    envs.num_envs = 4
    envs.single_action_space = envs.action_space
    envs.single_observation_space = envs.observation_space
    envs = ReturnsOfGames(envs)
    assert isinstance(envs.action_space, gym.spaces.Discrete)
    agent = nn.Sequential(
        nn.Flatten(), nn.Linear(4 * 84 * 84, 16), nn.ReLU(), nn.Linear(16, envs.action_space.n + 1)
    )
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


def test_gym_gives_four_values() -> None:
    env = envpool.make("Pong-v5", num_envs=2, max_episode_steps=8, **OPTIONS)
    observations = env.reset()
    assert isinstance(observations, np.ndarray) and observations.shape == (2, 4, 84, 84)
    for step in range(1, 12):
        observations, rewards, dones, info = env.step(np.zeros(2, int))
        assert rewards.dtype == np.float32 and dones.dtype == np.bool_
        assert dones.tolist() == info["TimeLimit.truncated"].tolist() == [step == 8] * 2
        assert info["elapsed_step"].tolist() == [step if step <= 8 else step - 9] * 2
        assert set(info) == {
            "env_id", "players", "lives", "reward", "terminated", "elapsed_step",
            "TimeLimit.truncated",
        }  # fmt: skip
    env.close()


def test_gym_returns_info_of_a_reset_where_it_is_asked_for() -> None:
    env = envpool.make_gym("Pong-v5", num_envs=2, gym_reset_return_info=True, **OPTIONS)
    observations, info = env.reset()
    assert observations.shape == (2, 4, 84, 84)
    assert info["elapsed_step"].tolist() == [0, 0] and "ram" not in info
    assert len(env.step([0, 0])) == 4


def test_gymnasium_gives_what_envpool_1_gives() -> None:
    env = envpool.make_gymnasium("Pong-v5", num_envs=2, **OPTIONS)
    assert env.reset()[1]["ram"].shape == (2, 128)
    assert len(env.step([0, 0])) == 5
    with pytest.raises(ValueError, match="env_type to be 'gym' or 'gymnasium', got 'dm'"):
        envpool.make("Pong-v5", "dm")


def test_asynchronous_calls_give_what_steps_give() -> None:
    options = {"num_envs": 3, "seed": 9} | OPTIONS
    waits, steps = envpool.make("Pong-v5", **options), envpool.make("Pong-v5", **options)
    waits.async_reset()
    observations, rewards, dones, _ = waits.recv()
    np.testing.assert_array_equal(observations, steps.reset())
    assert not rewards.any() and not dones.any()
    waits.send(np.array([2, 3, 4]))
    for a, b in zip(waits.recv()[:3], steps.step([2, 3, 4])[:3], strict=True):
        np.testing.assert_array_equal(a, b)


def test_spaces_are_those_of_gym_where_a_script_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """CleanRL's script checks `isinstance(envs.action_space, gym.spaces.Discrete)`, of the old
    gym."""

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
    assert not isinstance(env.action_space, GymDiscrete) and not isinstance(
        env.observation_space, GymBox
    )
