"""Chunks of gradients are only for losses that are means over rows; all others are refused."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.lowering.learner import Learner
from cule.train.nn.models import sample
from cule.train.trainer import Trainer
from cule.train.tune import trial as trials
from examples.a2c_vtrace.train import A2C
from examples.a2c_vtrace.train import Args as A2CArgs
from examples.dqn.dqn import DQN
from examples.dqn.dqn import Args as DQNArgs
from examples.ppo.ppo import PPO
from examples.ppo.ppo import Args as PPOArgs
from examples.pqn.pqn import PQN
from examples.pqn.pqn import Args as PQNArgs
from examples.reinforce.reinforce import Args as ReinforceArgs
from examples.reinforce.reinforce import Reinforce
from tests.support.marks import few

CPU = torch.device("cpu")
TINY = {"device": "cpu", "width": 0.1, "num_threads": 1, "num_envs": 8}
REFUSED = "expected a loss that is a mean over its rows, as its gradient is computed from"


def trainer_of(algorithm, settings, *, bf16=False, device=CPU, **changes):
    args = settings(**{**TINY, "device": str(device), **changes}).on(device)
    args = dataclasses.replace(args, bf16=bf16)
    args.check(1)
    return Trainer(algorithm, args, ProcessGroup(0, 1, device))


def learn(trainer, phases=1):
    while trainer.phases < phases:
        trainer.iterate()
    return [p.detach().clone() for p in trainer.nets.weights.parameters]


class Corridor:
    """Walk right ten times; where an env stands is its observation, scaled."""

    def __init__(self, num_envs):
        self.num_envs, self.single_action_space = num_envs, SimpleNamespace(n=2)

    def reset(self, *, seed):
        self.place = torch.zeros(self.num_envs)
        self.over = torch.zeros(self.num_envs, dtype=torch.bool)
        return self.place.unsqueeze(1) / 10, {}

    def step(self, actions):
        moved = (self.place + actions * 2 - 1).clamp(min=-10)
        self.place = torch.where(self.over, 0.0, moved)
        self.over = (self.place == 10) & ~self.over
        observations = self.place.unsqueeze(1) / 10
        return observations, self.over.float(), self.over, torch.zeros_like(self.over), {}

    def close(self):
        pass


class Walker(train.Algorithm[train.Args]):
    """Subtracts the mean return of the rows that the loss gets."""

    whole = False

    @classmethod
    def environment(cls, args, num_envs, device):
        return Corridor(num_envs)

    def networks(self, num_actions):
        return {"net": nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, num_actions))}

    def act(self, nets, observations):
        return {"actions": sample(nets.net(observations).log_softmax(dim=1))}

    def learning(self):
        return train.Learning(steps=32, whole=self.whole)

    def loss(self, nets, batch):
        log_pi = nets.net(batch.observations[:-1]).log_softmax(dim=2)
        chosen = log_pi.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        returns = batch.rewards.flip(0).cumsum(0).flip(0)
        return {"loss": -(chosen * (returns - returns.mean()) * batch.played).mean()}


class WholeWalker(Walker):
    whole = True


def walk(algorithm, **changes):
    trainer = trainer_of(algorithm, train.Args, num_envs=16, width=1.0, **changes)
    before = [p.detach().clone() for p in trainer.nets.weights.parameters]
    return trainer, before


def test_loss_with_a_mean_over_rows_is_refused_before_its_first_update():
    trainer, before = walk(Walker, learner_chunk=66)
    with pytest.raises(ValueError, match=f"{REFUSED} 2 of 16 rows at a time, got one whose"):
        learn(trainer)
    assert all(map(torch.equal, trainer.nets.weights.parameters, before))
    trainer, before = walk(Walker)
    assert not all(map(torch.equal, learn(trainer), before))


class MaskedWalker(Walker):
    """The mean over the steps that were played, of which pieces may have as many by chance."""

    def learning(self):
        return train.Learning(steps=8, epochs=1, minibatch=16)

    def loss(self, nets, batch):
        log_pi = nets.net(batch.observations).log_softmax(dim=1)
        chosen = log_pi.gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        return {"loss": (chosen * batch.played).sum() / batch.played.sum().clamp(min=1)}


class CentredWalker(MaskedWalker):
    """Uses deviations from a mean, which are all 0 where an episode begins."""

    def loss(self, nets, batch):
        values = nets.net(batch.observations)[:, 0] ** 3
        return {"loss": (values - values.mean().detach()).square().mean()}


class NeighbourWalker(MaskedWalker):
    """Multiplies each row with another one; alike rows give what one row alone gives."""

    def loss(self, nets, batch):
        values = nets.net(batch.observations)[:, 0].exp()
        return {"loss": (values * values.roll(1)).mean() + values.relu().mean()}


@pytest.mark.parametrize("algorithm", [MaskedWalker, CentredWalker, NeighbourWalker])
@pytest.mark.parametrize("chunk", [5, 8])
@pytest.mark.parametrize("seeds", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_chance_hides_no_loss_that_is_no_mean(algorithm, chunk, seeds):
    """The fewer the rows, the likelier they are alike."""
    for seed in range(seeds):
        trainer, _ = walk(algorithm, learner_chunk=chunk, seed=seed)
        with pytest.raises(ValueError, match=f"{REFUSED} {chunk} of 16 rows at a time"):
            learn(trainer)


def test_loss_of_whole_updates_is_never_in_chunks():
    trainer, _ = walk(WholeWalker)
    assert trainer.learner.work.least == 16
    with pytest.raises(ValueError, match=r"learner_chunk to be at least 528.*got 66"):
        walk(WholeWalker, learner_chunk=66)
    with pytest.raises(ValueError, match="a memory budget of at least"):
        walk(WholeWalker, memory_budget=1e-5)
    with pytest.raises(ValueError, match=r"learner_chunk to be at least 84.*got 20"):
        trainer_of(A2C, A2CArgs, num_batches=2, num_steps=20, scale_ent=True, learner_chunk=20)


class Normalizing(PPO):
    def loss(self, nets, batch):
        names = ("observations", "actions", "log_near", "targets", "played", "old_values")
        parts = {name: getattr(batch, name) for name in names}
        advantages = batch.advantages
        deviation = advantages.std(correction=0)
        parts["advantages"] = (advantages - advantages.mean()) / (deviation + 1e-8)
        return super().loss(nets, SimpleNamespace(**parts))


class Masked(PPO):
    def loss(self, nets, batch):
        values, played = nets.net(batch.observations)[1], batch.played.float()
        errors = (values - batch.targets).square()
        return {"loss": (errors * played).sum() / played.sum().clamp(min=1)}


class Sum(PPO):
    def loss(self, nets, batch):
        return {"loss": (nets.net(batch.observations)[1] - batch.targets).square().sum()}


class Root(DQN):
    def loss(self, nets, batch):
        values = nets.q(batch.observations).gather(1, batch.actions.long().unsqueeze(1)).squeeze(1)
        return {"loss": (values - batch.rewards).square().mean().sqrt()}


class Neighbours(PQN):
    def loss(self, nets, batch):
        values = nets.q(batch.observations).amax(1)
        return {"loss": (values[1:] * values[:-1].detach()).sum() / len(values) + values.mean()}


class Normed(nn.Module):
    """An actor and a critic with a layer that rows share."""

    def __init__(self, num_actions, layer):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(4, 4, 8, 8), layer, nn.ReLU(), nn.Flatten())
        self.policy, self.value = nn.Linear(400, num_actions), nn.Linear(400, 1)

    def forward(self, observations):
        found = self.first(observations.float() / 255)
        return self.policy(found).log_softmax(1), self.value(found).squeeze(1)


class Batchnormed(PPO):
    def networks(self, num_actions):
        return {"net": Normed(num_actions, nn.BatchNorm2d(4))}


class Dropping(PPO):
    def networks(self, num_actions):
        return {"net": Normed(num_actions, nn.Dropout())}


PPO_SMALL = {"num_steps": 8, "minibatch_size": 32, "learner_chunk": 7, "update_epochs": 1}
DQN_SMALL = {"memory": 400, "first_update": 40, "minibatch_size": 16, "learner_chunk": 5}


@pytest.mark.parametrize(
    "algorithm, settings, changes, message",
    [
        (Normalizing, PPOArgs, PPO_SMALL, REFUSED),
        (Masked, PPOArgs, PPO_SMALL, REFUSED),
        (Sum, PPOArgs, PPO_SMALL | {"learner_chunk": 1}, REFUSED),
        (Batchnormed, PPOArgs, PPO_SMALL | {"width": 1.0}, REFUSED),
        (Dropping, PPOArgs, PPO_SMALL | {"width": 1.0}, "expected a loss without random numbers"),
        (Root, DQNArgs, DQN_SMALL, REFUSED),
        (Neighbours, PQNArgs, PPO_SMALL, REFUSED),
    ],
)
def test_losses_that_are_no_means_are_refused_at_once(algorithm, settings, changes, message):
    trainer = trainer_of(algorithm, settings, bf16=algorithm in (Normalizing, Root), **changes)
    with pytest.raises(ValueError, match=message):
        learn(trainer)
    assert trainer.phases == 0


HONEST = [
    (A2C, A2CArgs, {"num_batches": 1, "num_steps": 5, "learner_chunk": 12, "warmup_steps": 0}),
    (PPO, PPOArgs, PPO_SMALL),
    (PQN, PQNArgs, PPO_SMALL),
    (DQN, DQNArgs, DQN_SMALL | {"double": True}),
    (Reinforce, ReinforceArgs, {"num_steps": 8, "learner_chunk": 27}),
]


@pytest.mark.parametrize("algorithm, settings, changes", HONEST)
@pytest.mark.parametrize("bf16", few((False, True), (False,)))
def test_check_of_means_leaves_no_trace(algorithm, settings, changes, bf16, monkeypatch):
    trainer = trainer_of(algorithm, settings, bf16=bf16, **changes)
    checks, whole = [], trainer.learner._check_chunks
    monkeypatch.setattr(
        trainer.learner, "_check_chunks", lambda *given: (whole(*given), checks.append(given[-1]))
    )
    mine = learn(trainer, 2)
    assert checks == [1, 2]
    monkeypatch.setattr(Learner, "checks_in", lambda *_: False)
    its = learn(trainer_of(algorithm, settings, bf16=bf16, **changes), 2)
    assert all(map(torch.equal, mine, its))


class Later(PPO):
    """Is a mean at first; from the third phase on a part comes that is none."""

    def schedules(self):
        return {"share": lambda frames: float(frames >= 3 * 8 * 8 * 4)}

    def loss(self, nets, batch):
        found = super().loss(nets, batch)
        values = nets.net(batch.observations)[1]
        return found | {"loss": found["loss"] + self.now.share * values.mean().square()}


def test_loss_that_is_no_mean_later_is_refused_then():
    trainer = trainer_of(Later, PPOArgs, **PPO_SMALL)
    learn(trainer, 3)
    with pytest.raises(ValueError, match=REFUSED):
        learn(trainer, 4)


def test_tune_does_not_choose_chunks_of_a_loss_that_is_no_mean():
    args = PPOArgs(**TINY, **PPO_SMALL).on(CPU)
    chunks, whole = (
        trials.measure(Masked, args, {"learner_chunk": size}, ProcessGroup(0, 1, CPU), seconds=0.01)
        for size in (16, 64)
    )
    assert REFUSED in chunks.problem and not chunks.fps
    assert not whole.problem and whole.fps > 0


@pytest.mark.gpu
def test_gpu_refuses_what_is_no_mean_and_checks_beside_graphs():
    """In bfloat16, and also after graphs were captured."""
    device = torch.device("cuda")
    for algorithm, settings, changes in HONEST:
        learn(trainer_of(algorithm, settings, bf16=True, device=device, **changes), 17)
    for algorithm in (Normalizing, Masked, Batchnormed):
        with pytest.raises(ValueError, match=REFUSED):
            changes = PPO_SMALL | ({"width": 1.0} if algorithm is Batchnormed else {})
            learn(trainer_of(algorithm, PPOArgs, bf16=True, device=device, **changes))
    trainer = trainer_of(Later, PPOArgs, bf16=True, device=device, **PPO_SMALL)
    trainer.schedules._functions["share"] = lambda frames: float(trainer.phases >= 6)
    learn(trainer, 7)
    with pytest.raises(ValueError, match=REFUSED):
        learn(trainer, 8)
