"""What an algorithm says that means nothing, or not what it seems to, is refused in words."""

from __future__ import annotations

import collections
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from cule import train
from cule.train.plan.index import T, U
from tests.train.walker import Walker, trainer_of, weights


def walker(**methods):
    return type("Walker", (Walker,), methods)


def learning(**fields):
    return walker(learning=lambda self: train.Learning(**fields))


class OfMemory(Walker):
    """Learns from a memory."""

    def loss(self, nets, batch):
        return {"loss": nets.net(batch.observations).square().mean()}


def of_memory(*memory, **fields):
    def said(self):
        return train.Learning(replay=train.Replay(*memory), every=1, start=8, **fields)

    return type("OfMemory", (OfMemory,), {"learning": said})


SLIPS = [
    (of_memory(1000, -3), "expected minibatch of Replay to be at least 1, got -3"),
    (of_memory(0, 8), "expected memory of Replay to be at least 1, got 0"),
    (of_memory(1000.5, 8), "expected memory of Replay to be a whole number, got 1000.5"),
    (of_memory(31, 8), r"to hold 4 steps of each of 8 envs \(32\) or more, got 31"),
    (of_memory(1000, 8, steps=8), "Learning with replay to have no steps, .* got 8"),
    (of_memory(1000, 8, minibatch=4), "Learning with replay to have no minibatch, .* got 4"),
    (of_memory(1000, 8, epochs=2), "Learning with replay to have no epochs, .* got 2"),
    (of_memory(1000, 8, groups=2), "Learning with replay to have no groups, .* got 2"),
    (of_memory(1000, 8, normalize=("a",)), "Learning with replay to have no normalize"),
    (learning(steps=8, start=-1), "expected start of Learning to be at least 0, got -1"),
    (learning(steps=8.0), "expected steps of Learning to be a whole number, got 8.0"),
    (learning(steps=True), "expected steps of Learning to be a whole number, got True"),
    (learning(steps=8, epochs=2), "expected epochs of Learning together with minibatch, got 2"),
    (learning(steps=8, normalize=("advantage",)), r"evaluate returns \(nothing\), got advantage"),
    (walker(networks=lambda self, n: nn.Linear(1, n)),
     r'expected networks\(\) to return networks by name, such as {"net": network}, got one of Lin'),
    (walker(networks=lambda self, n: {"net": nn.Linear(1, n), "old": "net"}),
     r"a torch\.nn\.Module or a train\.Copy as old, got 'net'"),
    (walker(networks=lambda self, n: {1: nn.Linear(1, n)}), "name networks as attributes, got 1"),
    (walker(loss=lambda self, nets, batch: {
        "loss": nets.net(batch.observations).mean(), "size": batch.rewards.mean().item()}),
     r"stay on the device \(without \.item\(\)\), got size as 0\.0"),
    (walker(loss=lambda self, nets, batch: {
        "loss": nets.net(batch.observations).mean(), "size": batch.rewards}),
     r"tensors of one number, .*, got size as a tensor of shape \(8, 2\)"),
    (walker(act=lambda self, nets, observations: torch.zeros(8)),
     r"expected act to return tensors by name, as a dict, got a tensor of shape \(8,\)"),
    (walker(act=lambda self, nets, observations: {"actions": 3}), "actions as a tensor, got 3"),
    (walker(keeps={"mu": torch.float32}, act=lambda self, nets, observations: {
        "actions": torch.zeros(8), "mu": torch.zeros(8, 2)}),
     r"act to return mu with a value for each of 8 envs, \(8,\), got \(8, 2\)"),
    (walker(prepare=lambda self, nets, batch: batch.rewards), "expected prepare to return tensors"),
    (walker(evaluates={"values": torch.float32}, evaluate=lambda self, nets, observations: {
        "value": observations[:, 0]}), "expected evaluate to return values, got value"),
    (walker(declare=lambda self, d: [d.learning(self.learning()), d.learning(self.learning())]),
     r"declare\(\) to declare learning once"),
    (walker(knobs=lambda self: setattr(self, "a", iter([])) or {}),
     "attributes of an algorithm that a checkpoint can hold, got a, a list_iterator"),
]  # fmt: skip


@pytest.mark.parametrize("algorithm, message", SLIPS, ids=range(len(SLIPS)))
def test_what_means_nothing_is_refused_before_the_first_step(algorithm, message):
    with pytest.raises((ValueError, TypeError), match=message):
        trainer_of(algorithm)


@pytest.mark.parametrize("condition", [
    lambda t: t == 0, lambda t: t != 0, lambda t: t - 3 > U, lambda t: t // 2 <= 1, bool,
    lambda t: t % 2, lambda t: t / 2,
])  # fmt: skip
def test_condition_on_an_index_is_refused(condition):
    with pytest.raises(TypeError, match="expected an index"):
        condition(T + 1)


@pytest.mark.parametrize("name", ["nett", "rewardz"])
def test_misspelt_name_says_what_there_is(name):
    def loss(self, nets, batch):
        return {
            "loss": nets.net(batch.observations).mean()
            + getattr(nets if name == "nett" else batch, name)
        }

    known = r"the networks \(net\)" if name == "nett" else r"a part of the batch \(actions, .*\)"
    with pytest.raises(
        AttributeError, match=f"expected one of {known}|expected {known}, got {name}"
    ):
        trainer_of(walker(loss=loss))


class Remembers(Walker):
    """Its advantages depend on all that its attributes hold."""

    def __init__(self, args):
        super().__init__(args)
        self.mean, self.count, self.recent = torch.zeros(()), 0, collections.deque(maxlen=3)
        self.own = SimpleNamespace(scale=np.ones(2), noise=torch.Generator())
        self.python, self.numpy = random.Random(3), np.random.default_rng(4)
        self.critic = nn.Linear(1, 1)
        self.seen = {"last": None, "all": []}

    def advantages(self, returns):
        mean = returns.mean()
        self.mean += 0.1 * (mean - self.mean)
        self.count += 1
        self.recent.append(float(mean))
        self.own.scale *= 1.01
        self.seen["last"] = mean
        self.seen["all"].append(mean.item())
        self.first = getattr(self, "first", mean)
        with torch.no_grad():
            self.critic.bias += 0.1 * mean
        drawn = (
            self.python.random() + self.numpy.random() + torch.rand((), generator=self.own.noise)
        )
        scale = self.own.scale[0] * drawn + self.count + sum(self.recent) + len(self.seen["all"])
        return (returns - self.mean) * float(scale) + self.critic.bias.detach() + self.first


def test_what_an_algorithm_remembers_is_resumed(tmp_path):
    """And trials before the first step leave no trace in it."""
    straight = trainer_of(Remembers)
    assert straight.algorithm.count == 0 and not hasattr(straight.algorithm, "first")
    for _ in range(2):
        straight.iterate()
    torch.save(straight.state_dict(), tmp_path / "state")
    for _ in range(3):
        straight.iterate()
    resumed = trainer_of(Remembers)
    resumed.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert resumed.algorithm.count == 2 and resumed.algorithm.recent.maxlen == 3
    for _ in range(3):
        resumed.iterate()
    assert torch.equal(weights(straight), weights(resumed))
    assert straight.algorithm.recent == resumed.algorithm.recent


def test_trials_leave_no_trace_in_buffers():
    def networks(self, num_actions):
        return {"net": nn.Sequential(nn.Linear(1, 8), nn.Flatten(0, -2), nn.BatchNorm1d(8))}

    def loss(self, nets, batch):
        return {"loss": nets.net(batch.observations).mean()}

    def act(self, nets, observations):
        return {"actions": nets.net(observations)[:, :2].argmax(dim=1)}

    trainer = trainer_of(walker(networks=networks, loss=loss, act=act))
    for nets in (trainer.nets.trained, trainer.nets.acting):
        assert nets["net"][2].num_batches_tracked == 0
