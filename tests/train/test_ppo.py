"""PPO's preparation: advantages of steps that the policy of now played, and of older ones."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from cule.train.algorithm import Context
from examples.ppo import ppo

STEPS, ENVS, ACTIONS = 6, 5, 3


class Tabular(torch.nn.Module):
    """A policy and a value for each observation, which is a number."""

    def __init__(self, seed):
        super().__init__()
        made = torch.Generator().manual_seed(seed)
        self.logits = torch.randn(10, ACTIONS, generator=made)
        self.values = torch.randn(10, generator=made)

    def forward(self, observations):
        return self.logits[observations].log_softmax(1), self.values[observations]


def a_batch(net):
    """Steps that a network played."""
    made = torch.Generator().manual_seed(1)
    observations = torch.randint(10, (STEPS + 1, ENVS), generator=made)
    actions = torch.randint(ACTIONS, (STEPS, ENVS), generator=made)
    played = torch.rand(STEPS, ENVS, generator=made) > 0.2
    ended = torch.rand(STEPS, ENVS, generator=made) < 0.2
    log_mu = torch.stack([
        net(o)[0].gather(1, a.unsqueeze(1)).squeeze(1)
        for o, a in zip(observations, actions, strict=False)
    ])  # fmt: skip
    return SimpleNamespace(
        observations=observations, actions=actions, played=played, log_mu=log_mu,
        rewards=torch.randint(-1, 2, (STEPS, ENVS), generator=made).float(),
        discounts=0.9 * ~ended,
        values=torch.stack([net(o)[1] for o in observations]),
    )  # fmt: skip


def prepared(lag, net, batch):
    """What PPO prepares."""
    context = Context(torch.device("cpu"), ACTIONS)
    algorithm = ppo.PPO(ppo.Args(lag=lag, gae_lambda=0.8), context)
    assert algorithm.evaluates.keys() == ({"values", "log_pi"} if lag else {"values"})
    evaluated = [algorithm.evaluate(SimpleNamespace(net=net), o) for o in batch.observations]
    for name in algorithm.evaluates:
        setattr(batch, name, torch.stack([values[name] for values in evaluated]))
    return algorithm.prepare(SimpleNamespace(net=net), batch)


def test_steps_of_the_newest_policy_have_the_same_advantages_in_both_ways():
    net = Tabular(0)
    batch = a_batch(net)
    now, older = (prepared(lag, net, batch) for lag in (0, 1))
    assert now.keys() == older.keys()
    for name in now:
        wanted = now[name]
        if name in ("advantages", "targets"):  # GAE has 0 for what was not played; neither counts
            wanted = torch.where(batch.played, wanted, batch.values[:-1] * (name == "targets"))
        torch.testing.assert_close(older[name], wanted)


def test_steps_of_an_older_policy_are_corrected():
    """Beside the definition: sums over later steps, weighted by the product of clipped ratios."""
    net, batch = Tabular(2), a_batch(Tabular(3))
    found = prepared(1, net, batch)
    for env in range(ENVS):
        values = [float(net.values[o]) for o in batch.observations[:, env]]
        ratios = []
        for step in range(STEPS):
            log_pi = net.logits[batch.observations[step, env]].log_softmax(0)
            chosen = float(log_pi[batch.actions[step, env]])
            assert found["log_near"][step, env] == pytest.approx(chosen, rel=1e-5)
            ratio = math.exp(chosen - float(batch.log_mu[step, env]))
            ratios.append(ratio if batch.played[step, env] else 0.0)
        for step in range(STEPS):
            advantage, weight = 0.0, 1.0
            for later in range(step, STEPS):
                discount = float(batch.discounts[later, env])
                delta = float(batch.rewards[later, env]) + discount * values[later + 1]
                delta = min(1.0, ratios[later]) * (delta - values[later])
                advantage += weight * delta
                weight *= discount * 0.8 * min(1.0, ratios[later])
            assert found["advantages"][step, env] == pytest.approx(advantage, rel=1e-4, abs=1e-5)
            target = values[step] + advantage
            assert found["targets"][step, env] == pytest.approx(target, rel=1e-4, abs=1e-5)
    assert any(r > 1.2 for r in ratios) or any(0 < r < 0.8 for r in ratios)
