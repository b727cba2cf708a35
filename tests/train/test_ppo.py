"""PPO: its advantages, and that it learns."""

from __future__ import annotations

import json

import pytest
import torch
from scripted import SignalEnv

from examples.common.presets import filled
from examples.ppo import ppo


def settings(**changes):
    options = {
        "device": "cpu",
        "num_envs": 16,
        "n_steps": 8,
        "minibatch": 32,
        "width": 0.1,
        "num_threads": 1,
        "progress": False,
        **changes,
    }
    return filled(ppo.Args(**options), torch.device("cpu"))


def test_gae_is_the_sum_it_is_defined_as():
    random = torch.Generator().manual_seed(0)
    rewards, values = (
        torch.randn(9, 4, generator=random).double(),
        torch.randn(10, 4, generator=random).double(),
    )
    discounts = 0.9 * (torch.rand(9, 4, generator=random) > 0.2).double()
    played = (torch.rand(9, 4, generator=random) > 0.2).double()
    got = ppo.gae(rewards, discounts, played, values, 0.8)
    assert (discounts == 0).any() and (played == 0).any()
    for env in range(4):
        for start in range(9):
            total, weight = 0.0, 1.0
            for t in range(start, 9):
                if not played[t, env]:
                    break
                total += weight * (
                    rewards[t, env] + discounts[t, env] * values[t + 1, env] - values[t, env]
                )
                weight *= 0.8 * discounts[t, env]
            torch.testing.assert_close(got[start, env], torch.as_tensor(total).double())


def test_ppo_minibatches_hold_every_step_once(monkeypatch):
    monkeypatch.setattr(ppo, "make_env", lambda *args, **_: SignalEnv(args[2]))
    learner = ppo.Ppo(settings(), torch.device("cpu"))
    places = torch.cat([step * 16 + env for step, env in learner.minibatches(8)])
    assert not torch.equal(places, torch.arange(128)) and torch.equal(
        places.sort().values, torch.arange(128)
    )


def test_ppo_learns_what_pays(monkeypatch):
    monkeypatch.setattr(ppo, "make_env", lambda *args, **_: SignalEnv(args[2]))
    args = settings(learning_rate=3e-3)
    learner = ppo.Ppo(args, torch.device("cpu"))
    for _ in range(14):
        learner.play()
        learner.learn()
    learner.player.episodes.take_scores()
    for _ in range(4):
        learner.play()
    total, episodes = learner.player.episodes.take_scores().tolist()
    # 8 is the most there is; chance gives -2.7.
    assert episodes > 30 and total / episodes > 4


@pytest.mark.parametrize("emulator", ["cule", "ale-py"])
def test_ppo_runs_and_writes_a_row(tmp_path, emulator):
    path = tmp_path / "results.jsonl"
    row = ppo.train(
        settings(num_envs=4, minibatch=16, total_frames=250, emulator=emulator, results=path)
    )
    assert json.loads(path.read_text()) == row
    assert (row["system"], row["algorithm"], row["frames"], row["updates"]) == (
        emulator,
        "PPO",
        256,
        12,
    )


@pytest.mark.parametrize("changes, message", [
    ({"minibatch": 33}, r"minibatch to divide num_envs times n_steps \(128\), got 33"),
    ({"minibatch": 1}, "minibatch to be at least 2, got 1"),
    ({"gamma": -0.1}, "gamma to be from 0 to 1, got -0.1"),
])  # fmt: skip
def test_ppo_refuses_settings_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        ppo.train(settings(**changes))
