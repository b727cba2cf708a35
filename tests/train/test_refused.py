"""What an algorithm says that means nothing, or not what it seems to, is refused in words."""

from __future__ import annotations

import collections
import dataclasses
import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import cule
from cule import train
from cule.errors import Refusal
from cule.train.lowering.method_checks import LOGGED
from cule.train.lowering.settings_read import instantiate
from cule.train.plan.index import T, U, cases, minimum
from cule.train.plan.program import Program
from tests.train.walker import Corridor, Walker, trainer_of, weights


def walker(**methods):
    return type("Walker", (Walker,), methods)


def learning(**fields):
    return walker(learning=lambda self: train.Learning(**fields))


def net(num_actions):
    return nn.Sequential(nn.Linear(1, 8), nn.Linear(8, num_actions))


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
     r"a second declaration of learning with a name"),
    (learning(steps=8, lag=True), "expected lag of Learning to be a whole number, got True"),
    (learning(steps=8, whole="no"), "expected whole to be True or False, got 'no'"),
    (learning(steps=8, normalize="advantages"), r"normalize to be tuple\[str, ...\], got 'adv"),
    (of_memory(None, 8), "expected memory to be an integer, got None"),
    (walker(learning=lambda self: {"steps": 8}), r"learning\(\) to return a train.Learning, got"),
    (walker(learning=lambda self: train.Learning(replay=(1000, 8))), "expected replay to be"),
    (walker(declare=lambda self, d: d.learning(train.Learning(steps=4))),
     r"declare\(\) to declare what learning\(\) returns, .*steps=8.* got .*steps=4"),
    (walker(networks=lambda self, n: {"net": net(n), "old": train.Copy("net", 1.5)}),
     "expected every of Copy to be a whole number, got 1.5"),
    (walker(networks=lambda self, n: {"net": net(n), "lambda": net(n)}), "got 'lambda'"),
    (walker(networks=lambda self, n: {"net": net(n), "critic": net(n)}),
     "depend on each network's weights, but it does not on those of critic"),
    (walker(networks=lambda self, n: dict.fromkeys(["net", "other"], net(n))),
     r"got other\.0\.weight, which is also of net"),
    (walker(networks=lambda self, n: {"net": net(n).double()}), "which is in torch.float64"),
    (walker(networks=lambda self, n: {"net": net(n).requires_grad_(False)}), "which is frozen"),
    (walker(networks=lambda self, n: {"net": nn.LazyLinear(n)}), "which has no shape yet"),
    (walker(networks=lambda self, n: {"net": nn.Flatten()}), "a network that is trained, got none"),
    (walker(keeps={"rewards": torch.float32}),
     "keeps to have names of its own .* got rewards, which is a part of every batch"),
    (walker(keeps={"mu": torch.float32}, evaluates={"mu": torch.float32}), "mu, which is one of k"),
    (walker(prepare=lambda self, nets, batch: {"actions": batch.rewards}), "prepare to have names"),
    (walker(keeps=["mu"]), "expected keeps to have dtypes by name, .* got one of list"),
    (walker(keeps={"mu": float}), "a torch.dtype, or .* as mu of keeps, got <class 'float'>"),
    (walker(act=lambda self, nets, observations: {"actions": torch.full((8,), 0.7)}),
     "act to return actions as torch.int64, which is kept, got torch.float32"),
    (walker(loss=lambda self, nets, batch: {
        "loss": nets.net(batch.observations).mean(), "score": batch.rewards.mean()}),
     "name what is logged otherwise than the log itself does, got 'score'"),
    (walker(loss=lambda self, nets, batch: {
        "loss": nets.net(batch.observations).mean() + batch.rewards.mul_(2).mean()}),
     "expected loss not to change in place .* got rewards changed"),
    (walker(loss=lambda self, nets, batch: {
        "loss": nets.net(batch.observations).mean() + torch.zeros((3, 4), requires_grad=True).sum()
     }), r"weights of networks\(\) only, .* of a tensor of shape \(3, 4\), which nothing"),
    (walker(loss=lambda self, nets, batch: nets.net[0].weight.data.mul_(2) is None or {
        "loss": nets.net(batch.observations).mean()}),
     r"leave weights to the optimizer, got net\.0\.weight changed"),
    (walker(schedules=lambda self: {"epsilon": 0.5}),
     "a function of the frames as epsilon, got 0.5"),
    (walker(schedules=lambda self: {"epsilon": lambda frames: float("nan")}),
     "expected schedule epsilon to be a finite number after 0 frames, got nan"),
    (walker(optimizer=lambda self, parameters: torch.optim.SGD(parameters[:1])),
     "one of all 4 parameters that it gets, .* got one of 1 of them and of 0 others"),
    (walker(optimizer=lambda self, parameters: None), "return a torch.optim.Optimizer, got None"),
    (walker(norm=lambda self, gradient, gradients: 1.0), "norm to return a tensor of one number"),
    (walker(declare=lambda self, d: [d.recurrent("a", initial="zero")]), "initial value of a to"),
    (walker(environment=classmethod(lambda cls, args, n, device: Corridor(4))),
     "8 envs that .* asked for, got 4"),
    (walker(environment=classmethod(lambda cls, args, n, device: cule.AtariEnv(
        "pong", n, num_threads=1, autoreset_mode="SameStep"))), "NEXT_STEP, got .*SAME_STEP"),
    (walker(environment=lambda self, n, device: Corridor(n)),
     "environment.. of Walker to be a class method that gets the settings"),
    (lambda args, context: Walker(args, context), "expected the class Walker, which has an env"),
    (lambda args: Walker(args), r"the settings and the context, .* got one that takes \(args\)"),
    (walker(schedules=lambda self: setattr(self, "a", iter([])) or {}),
     "attributes of an algorithm that a checkpoint can hold, got a, a list_iterator"),
]  # fmt: skip


@pytest.mark.parametrize("algorithm, message", SLIPS, ids=range(len(SLIPS)))
def test_what_means_nothing_is_refused_before_the_first_step(algorithm, message):
    with pytest.raises((ValueError, TypeError), match=message):
        trainer_of(algorithm)


def stepping(change):
    """A Walker whose envs return something else."""

    class Changed(Corridor):
        def step(self, actions):
            return change(*super().step(actions))

    return walker(environment=classmethod(lambda cls, args, num_envs, device: Changed(num_envs)))


@pytest.mark.parametrize("change, message", [
    (lambda obs, r, end, cut, infos: (obs, r, end, infos), "truncated and infos, got one of tuple"),
    (lambda obs, r, end, cut, infos: (obs, r.unsqueeze(1), end, cut, infos),
     r"rewards as a tensor of shape \(8,\), .* got a tensor of shape \(8, 1\)"),
    (lambda obs, r, end, cut, infos: (obs, r, end.float(), cut, infos),
     r"terminated as a tensor of shape \(8,\), torch.bool, got .* torch.float32"),
    (lambda obs, r, end, cut, infos: (obs.numpy(), r, end, cut, infos), "got one of ndarray"),
    (lambda obs, r, end, cut, infos: (obs.expand(8, 3), r, end, cut, infos), r"got .* \(8, 3\)"),
])  # fmt: skip
def test_envs_that_return_something_else_are_refused_at_once(change, message):
    trainer = trainer_of(stepping(change))
    with pytest.raises(ValueError, match=f"expected step.. of envs to return .*{message}"):
        trainer.iterate()


class Later(Walker):
    """Its loss returns and reads something else where there is a reward."""

    keeps = {"mu": torch.float32}

    def act(self, nets, observations):
        return {"actions": torch.ones(8, dtype=torch.int64), "mu": observations[:, 0]}

    def loss(self, nets, batch):
        found = {"loss": nets.net(batch.observations).mean()}
        return found | self.more(batch) if batch.rewards.any() else found


@pytest.mark.parametrize("more, message", [
    (lambda self, batch: {"mean": batch.rewards.mean()}, "same in each call, loss, got loss, m"),
    (lambda self, batch: {"loss": batch.mu.mean()}, "also read when it was tried .*, got mu"),
])  # fmt: skip
def test_loss_that_returns_or_reads_something_else_later_is_refused(more, message):
    trainer = trainer_of(type("Later", (Later,), {"more": more}))
    with pytest.raises((ValueError, AttributeError), match=message):
        trainer.iterate()


def test_what_an_algorithm_keeps_in_its_class_is_refused():
    class Counting(Walker):
        mean = torch.zeros(())

        def advantages(self, returns):
            Counting.mean += 1
            return returns

    with pytest.raises(ValueError, match=r"got Counting\.mean changed, of its class"):
        trainer_of(Counting)


def changing(args, context):
    args.gamma = 0.5
    return Walker(args, context)


@pytest.mark.parametrize("make, message", [
    (changing, "leave its settings as they are, got gamma changed from 0.99 to 0.5"),
    (lambda args, context: Walker(dataclasses.replace(args, gamma=0.5), context),
     "keep the settings that it was"),
])  # fmt: skip
def test_algorithm_that_changes_its_settings_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        instantiate(make, train.Args(), train.Context(torch.device("cpu"), 2))


def test_names_that_a_checkpoint_would_mix_up_are_refused():
    class Twice(Walker):
        def declare(self, d):
            a, b = (d.recurrent("a", initial=0.0) for _ in range(2))

            def act(nets, observations, one, two):
                return self.act(nets, observations) | {"one": one + 1, "two": two + 2}

            d.acting(act, reads=[a[d.t], b[d.t]], writes={"one": a[d.t + 1], "two": b[d.t + 1]})
            d.emulating()
            d.learning(self.learning())

    with pytest.raises(ValueError, match="got a for two, of which a checkpoint would hold one"):
        trainer_of(Twice)


def test_log_has_the_names_that_a_loss_may_not_use(tmp_path):
    train.train(Walker, settings(tmp_path))
    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])
    own = {name for name in line if not name.startswith("ms_")}
    of_actors = {"staleness", "staleness_max", "actors_waited"}
    assert own <= LOGGED and LOGGED - own == {"multiprocessors", "ordered", *of_actors}


class Loads(Corridor):
    def load_state_dict(self, state):
        self.place = state["nothing"]


class LoadingWalker(Walker):
    @classmethod
    def environment(cls, args, num_envs, device):
        return Loads(num_envs)


def test_own_mistake_at_a_resume_keeps_its_traceback(tmp_path):
    args = settings(tmp_path)
    train.train(LoadingWalker, args)
    with pytest.raises(KeyError, match="nothing") as caught:
        train.train(LoadingWalker, dataclasses.replace(args, resume=True, total_frames=4096))
    assert caught.traceback[-1].name == "load_state_dict"


def settings(folder):
    return train.Args(
        device="cpu", num_envs=8, num_threads=1, total_frames=2048, folder=folder, plot=False,
        progress=False, logger="none", eval_episodes=0,
    )  # fmt: skip


@pytest.mark.parametrize("condition", [
    lambda t: bool(t == 0), lambda t: bool(t != 0), lambda t: 1 if t - 3 > U else 0,
    lambda t: 0 < t < 4, lambda t: t == 0 or t == 4, bool, lambda t: max(t, 3), lambda t: t / 2,
    lambda t: t in (1, 2), lambda t: t % 0, lambda t: t % 2.0, lambda t: t // U, lambda t: t * t,
    lambda t: cases((t, 3), 4), lambda t: cases((t == 3, 3.5), 4), lambda t: cases((t == 3, 3)),
    lambda t: cases(),
    lambda t: (t == 3) & True, lambda t: minimum(t, None), lambda t: t + True,
    lambda t: Program().operation("tell", print, role="effect", when=t),
])  # fmt: skip
def test_condition_or_number_without_a_meaning_is_refused(condition):
    with pytest.raises((TypeError, ValueError), match="expected") as raised:
        condition(T + 1)
    assert isinstance(raised.value, Refusal)


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

    def __init__(self, args, context):
        super().__init__(args, context)
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
