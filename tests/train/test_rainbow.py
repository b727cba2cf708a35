"""Rainbow and BTR: targets and losses beside loops, each part switched, and exact resume."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scripted import SignalEnv
from test_algorithms import Thirds
from test_distributions import projection_by_loops
from torch import nn
from training_runs import assert_same, scores_after, state_after

from cule.train.algorithm import Context, Nets
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn import draws
from cule.train.nn.value_networks import ValueNetwork
from cule.train.trainer import Trainer
from examples.rainbow import btr, rainbow
from tests.support.marks import few

CPU = torch.device("cpu")
TINY = {"device": "cpu", "width": 0.1, "num_threads": 1}
FEW = {"num_envs": 4, "memory": 240, "first_update": 40, "minibatch_size": 8, "updates_at_once": 2,
       "target_every": 7, "game": "breakout", "max_episode_frames": 150}  # fmt: skip
IQN, PLAIN = {"quantiles": "iqn"}, {"quantiles": "none"}
SOFT = {"munchausen": True, "double": False}
IMPALA = {"model": "impala", "spectral_norm": True}
# Each switch alone, and both presets.
SWITCHED = {
    "Rainbow": (rainbow, {}),
    "without double": (rainbow, {"double": False}),
    "without dueling": (rainbow, {"dueling": False}),
    "without priorities": (rainbow, {"prioritized": False}),
    "one step": (rainbow, {"n_step": 1}),
    "without noise": (rainbow, {"noisy": False, "epsilon_frames": 800}),
    "values": (rainbow, PLAIN),
    "IQN": (rainbow, IQN),
    "Munchausen": (rainbow, PLAIN | SOFT),
    "Munchausen IQN": (rainbow, IQN | SOFT),
    "IMPALA": (rainbow, IMPALA),
    "without pooling": (rainbow, {"model": "impala", "pool": 0}),
    "beside": (rainbow, {"lag": 1, **IMPALA}),
    "BTR": (btr, {"noise_alone_from": 500, "epsilon_frames": 400}),
    "BTR without its parts": (
        btr, {"munchausen": False, "quantiles": "c51", "spectral_norm": False, "noisy": False},
    ),
}  # fmt: skip
KINDS = {rainbow: rainbow.Rainbow, btr: btr.BTR}


def trainer_of(name, kind=None, **changes):
    program, own = SWITCHED[name]
    args = program.Args(**{**TINY, **FEW, "total_frames": 2000, **own, **changes}).on(CPU)
    args.check(1)
    return Trainer(kind or KINDS[program], args, ProcessGroup(0, 1, CPU))


QUICK = ("Rainbow", "without priorities", "without noise", "Munchausen", "beside", "BTR")


@pytest.mark.parametrize("name", few(SWITCHED, ("Rainbow", "without priorities", "beside", "BTR")))
def test_training_stopped_with_any_part_goes_on_exactly(name):
    """Networks, noise, priorities and the vectors of spectral norms are as without the stop."""
    make = functools.partial(trainer_of, name)
    whole, parts = state_after(make, 30), state_after(make, 30, 21)
    assert whole["updates"] > 30
    assert_same(parts, whole)


class Noted(ValueNetwork):
    """A network that notes the arguments and the results of its calls."""

    def outputs(self, observations, noise=None, taus=None):
        found = super().outputs(observations, noise, taus)
        self.noted.append(
            SimpleNamespace(seen=observations, noise=noise, taus=taus, found=found.detach())
        )
        return found


def case(monkeypatch, rows=6, **changes):
    """An algorithm with small settings, its networks, and a batch of transitions."""
    monkeypatch.setattr(rainbow, "ValueNetwork", Noted)
    args = rainbow.Args(**TINY, **changes).on(CPU)
    args.check(1)
    torch.manual_seed(2)
    algorithm = rainbow.Rainbow(args, Context(CPU, num_actions=3))
    nets = Nets(q=algorithm.networks(3)["q"], target=algorithm.networks(3)["q"])
    for net in (nets.q, nets.target):
        net.noted = []
        with torch.no_grad():
            for bias in (net.advantage.output, net.value.output):
                layer = bias.mean if args.noisy else bias
                layer.bias.add_(torch.randn(layer.bias.shape))
    images = torch.randint(256, (2, rows, 4, 84, 84), dtype=torch.uint8)
    batch = SimpleNamespace(
        observations=images[0], next_observations=images[1],
        actions=torch.randint(3, (rows,), dtype=torch.uint8),
        rewards=torch.randn(rows), discounts=torch.where(torch.arange(rows) == 1, 0, 0.9),
        played=torch.arange(rows) != 2, weights=torch.rand(rows),
    )  # fmt: skip
    return algorithm, nets, batch


def by_row(tensor):
    return tensor.double().tolist()


@pytest.mark.parametrize("double", [False, True])
def test_c51_learns_from_the_projected_distribution(double, monkeypatch):
    algorithm, nets, batch = case(monkeypatch, double=double)
    losses = algorithm.loss(nets, batch)
    online, (after, *_) = nets.q.noted[-1], nets.target.noted
    assert after.seen is batch.next_observations and online.seen is batch.observations
    chooser = nets.q.noted[0] if double else after
    assert len(nets.q.noted) == 1 + double and len(nets.target.noted) == 1
    total, support = 0.0, np.linspace(-10, 10, 51)
    for row in range(6):
        best = max(range(3), key=lambda action, row=row: np.dot(
            chooser.found[row, action].softmax(0).numpy(), support))  # fmt: skip
        chances = by_row(after.found[row, best].softmax(0))
        reward, discount = float(batch.rewards[row]), float(batch.discounts[row])
        wanted = projection_by_loops(chances, [reward + discount * z for z in support], -10, 10, 51)
        logs = by_row(online.found[row, int(batch.actions[row])].log_softmax(0))
        loss = -np.dot(wanted, logs)
        total += loss * float(batch.weights[row]) / 6
        divergence = loss + sum(p * np.log(p) for p in wanted if p)
        assert float(losses["priorities"][row]) == pytest.approx(divergence, abs=1e-4)
    assert float(losses["loss"].detach()) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("double", [False, True])
def test_iqn_learns_from_the_quantiles_of_the_best_action(double, monkeypatch):
    algorithm, nets, batch = case(
        monkeypatch, **IQN, double=double, taus=3, target_taus=5, acting_taus=7, prioritized=False
    )
    loss = float(algorithm.loss(nets, batch)["loss"].detach())
    online, after = nets.q.noted[-1], nets.target.noted[0]
    chooser = (nets.q if double else nets.target).noted[-2 if double else -1]
    assert [c.taus.shape[1] for c in (online, after, chooser)] == [3, 5, 7]
    total = 0.0
    for row in range(6):
        best = int(chooser.found[row].mean(dim=1).argmax())
        for i in range(3):
            for j in range(5):
                target = batch.rewards[row] + batch.discounts[row] * after.found[row, best, j]
                error = float(target - online.found[row, int(batch.actions[row]), i])
                huber = error**2 / 2 if abs(error) <= 1 else abs(error) - 0.5
                weight = abs(float(online.taus[row, i]) - (error < 0))
                total += weight * huber / 5 * float(batch.played[row]) / 6
    assert loss == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("quantiles", ["none", "iqn"])
def test_munchausens_target_is_its_formula(quantiles, monkeypatch):
    algorithm, nets, batch = case(monkeypatch, quantiles=quantiles, **SOFT, temperature=0.5)
    with torch.no_grad():
        found, _ = algorithm.target(nets, batch)
    after, before = nets.target.noted
    assert after.seen is batch.next_observations and before.seen is batch.observations
    assert not nets.q.noted
    each = 8 if quantiles == "iqn" else 1
    clipped = 0
    for row in range(6):
        now, then = (one.found[row].double().reshape(3, each).numpy() for one in (before, after))
        logs = [v / 0.5 - np.log(sum(np.exp(u / 0.5) for u in now.mean(1))) for v in now.mean(1)]
        bonus = 0.5 * logs[int(batch.actions[row])]
        clipped += bonus < -1
        chances = np.exp(then.mean(1) / 0.5) / sum(np.exp(then.mean(1) / 0.5))
        for one in range(each):
            soft = sum(chances[b] * (then[b, one] - 0.5 * np.log(chances[b])) for b in range(3))
            wanted = float(batch.rewards[row]) + 0.9 * min(max(bonus, -1), 0)
            wanted += float(batch.discounts[row]) * soft
            assert float(found[row, one]) == pytest.approx(wanted, abs=1e-4)
    assert found.shape == (6, each) and 0 < clipped < 6


def test_values_learn_from_the_best_one(monkeypatch):
    algorithm, nets, batch = case(monkeypatch, **PLAIN)
    losses, total = algorithm.loss(nets, batch), 0.0
    chooser, online = nets.q.noted
    for row in range(6):
        best = int(chooser.found[row].argmax())
        target = batch.rewards[row] + batch.discounts[row] * nets.target.noted[0].found[row, best]
        error = float((target - online.found[row, int(batch.actions[row])]).abs())
        assert float(losses["priorities"][row]) == pytest.approx(error, rel=1e-4)
        huber = error**2 / 2 if error <= 1 else error - 0.5
        total += huber * float(batch.weights[row]) / 6
    assert float(losses["loss"].detach()) == pytest.approx(total, rel=1e-4)


def test_noise_is_one_for_a_batch_and_another_for_each_network(monkeypatch):
    algorithm, nets, batch = case(monkeypatch)
    algorithm.loss(nets, batch)
    algorithm.loss(nets, batch)
    noise = [call.noise for net in (nets.q, nets.target) for call in net.noted]
    assert [one.shape for one in noise] == [(1, nets.q.noise_size)] * 6
    assert len({tuple(one[0, :9].tolist()) for one in noise}) == 6


def test_acting_draws_noise_for_each_env_and_step(monkeypatch):
    algorithm, nets, batch = case(monkeypatch, **IQN)
    for step in (5, 6, 5):
        with draws.keyed(1, 0, torch.tensor([step])):
            algorithm.act(nets, batch.observations)
    with draws.keyed(1, 2, torch.tensor([5])):
        algorithm.act(nets, batch.observations[2:4])
    first, other, again, part = nets.q.noted
    assert first.noise.shape == (6, nets.q.noise_size) and first.taus.shape == (6, 32)
    for name in ("noise", "taus"):
        one, two = getattr(first, name), getattr(other, name)
        assert len(torch.cat([one, two])[:, 0].unique()) == 12
        assert torch.equal(one, getattr(again, name)) and torch.equal(one[2:4], getattr(part, name))
    nets.q.noted.clear()
    algorithm.scores(nets, batch.observations)
    assert nets.q.noted[0].noise is None and nets.q.noted[0].taus is None


def test_spectral_norms_improve_once_in_an_update():
    trainer = trainer_of("BTR")
    net = trainer.nets.trained["q"]
    calls, improve = [], net.power_iteration
    net.power_iteration = lambda: calls.append(1) or improve()
    before = {name: b.clone() for name, b in net.named_buffers() if name.endswith("left")}
    while trainer.updates < 12:
        trainer.iterate()
    assert len(calls) == trainer.updates
    now = dict(net.named_buffers())
    assert len(before) == 12
    assert not any(torch.equal(was, now[name]) for name, was in before.items())
    del net.power_iteration
    trainer.close()


def test_epsilon_ends_where_noise_is_left_alone():
    def epsilons(program, **changes):
        args = program.Args(**TINY, **changes).on(CPU)
        args.check(1)
        schedules = rainbow.Rainbow(args, Context(CPU, num_actions=3)).schedules()
        assert "beta" in schedules and schedules["beta"](0) == 0.4
        epsilon = schedules.get("epsilon")
        return epsilon and [epsilon(f) for f in (0, 4_000_000, 99_999_999, 100_000_000)]

    assert epsilons(rainbow) is None
    assert epsilons(rainbow, noisy=False) == pytest.approx([1, 0.01, 0.01, 0.01])
    assert epsilons(btr) == pytest.approx([1, 0.505, 0.01, 0])
    assert epsilons(btr, noisy=False) == pytest.approx([1, 0.505, 0.01, 0.01])


def on_thirds(kind):
    """The same on envs whose frames say what pays, with networks that see thirds of them."""

    class OnThirds(kind):
        @classmethod
        def environment(cls, args, num_envs, device):
            return SignalEnv(num_envs)

        def networks(self, num_actions):
            given = super().networks(num_actions)
            size = given["q"].trunk(torch.zeros(1, 4, 84, 84).byte()).shape[1]
            given["q"].trunk = nn.Sequential(Thirds(), nn.Linear(36, size), nn.ReLU())
            return given

    return OnThirds


LEARNS = {
    "Rainbow": {},
    "without noise": {"epsilon_frames": 32 * 4 * 60, "last_epsilon": 0.0},
    "Munchausen": {},
    "IQN": {},
    "Munchausen IQN": {},
}


@pytest.mark.parametrize("name", few(LEARNS, ("Rainbow", "Munchausen IQN")))
def test_algorithm_learns_what_pays(name):
    more = {"num_envs": 32, "memory": 3200, "first_update": 320, "minibatch_size": 64,
            "learning_rate": 2e-3, "gamma": 0.5, "target_every": 25, "updates_at_once": 1,
            "total_frames": 10**6}  # fmt: skip
    trainer = trainer_of(name, on_thirds(rainbow.Rainbow), **more, **LEARNS[name])
    total, episodes = scores_after(trainer, 80, 40)
    # 8 is the most there is; chance gives -2.7.
    assert episodes > 30 and total / episodes > 4


@pytest.mark.parametrize(("program", "changes", "message"), [
    (rainbow, {"prioritized": False, "alpha": 0.6}, "alpha with prioritized, got it without"),
    (rainbow, {"quantiles": "iqn", "atoms": 11}, "atoms with quantiles c51, got it without"),
    (rainbow, {"taus": 4}, "taus with quantiles iqn, got it without"),
    (rainbow, {"temperature": 0.1}, "temperature with munchausen, got it without"),
    (rainbow, {"noisy": False, "sigma": 0.1}, "sigma with noisy, got it without"),
    (rainbow, {"last_epsilon": 0.1}, "last_epsilon with noise_alone_from or without noisy"),
    (rainbow, {"spectral_norm": True}, "spectral_norm with model impala, got it without"),
    (rainbow, {"pool": 4}, "pool with model impala, got it without"),
    (rainbow, {"model": "lstm"}, "model to be nature or impala, got lstm"),
    (rainbow, {"munchausen": True, "quantiles": "iqn"}, "munchausen without double"),
    (btr, {"quantiles": "c51"}, "munchausen with quantiles iqn or none, got c51"),
    (btr, {"memory": 95}, r"memory and first_update to be at least 6 steps of all envs \(96\), "
     "got 95 and 160"),
    (rainbow, {"lowest_atom": 11.0}, "lowest_atom to be below highest_atom, got 11.0 and 10.0"),
    (rainbow, {"atoms": 1}, "atoms to be at least 2, got 1"),
])  # fmt: skip
def test_settings_without_effect_are_refused(program, changes, message):
    asked = {**TINY, "num_envs": 16, "first_update": 160, "memory": 1600, **changes}
    with pytest.raises(ValueError, match=message):
        program.Args(**asked).on(CPU).check(1)


def test_a_part_that_is_switched_is_in_the_name():
    args = rainbow.Args(quantiles="iqn", noisy=False)
    kind = Context(CPU, num_actions=3)
    assert rainbow.Rainbow(args, kind).name == "Rainbow, quantiles iqn, noisy False"
    assert btr.BTR(btr.Args(), kind).name == "BTR"
