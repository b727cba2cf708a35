"""Vectors of actions: soft actor-critic learns, goes on exactly, and its targets move softly."""

from __future__ import annotations

import math
import types

import gymnasium
import numpy as np
import pytest
import torch
from continuous import SAC, Args
from torch import nn
from training_runs import assert_same, saved, without_times
from walker import Corridor, Walker

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.lowering.networks import _copied
from cule.train.nn import draws
from cule.train.nn.weights import Weights, move_weights
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
SMALL = {"device": "cpu", "num_envs": 8, "num_threads": 1, "gamma": 0.98, "max_grad_norm": None}


def trainer_of(algorithm, args):
    return Trainer(algorithm, args.on(CPU), ProcessGroup(0, 1, CPU))


@pytest.mark.slow
def test_soft_actor_critic_learns_pendulum():
    """It hangs down at first (-1,200); upright all the time is 0, with the swing about -150."""
    trainer = trainer_of(SAC, Args(**SMALL, n_step=3, prioritized=True))
    scores = []
    while trainer.steps < 201 * 6:
        trainer.iterate()
        if trainer.steps % 201 == 0:
            total, count, *_ = trainer.collector.episodes.take_scores().tolist()
            scores.append(8 * total / count)
    trainer.close()
    assert scores[0] < -900 and sum(scores[-3:]) / 3 > -400


@pytest.mark.parametrize(
    "more, steps",
    [({}, 70), ({"n_step": 3, "prioritized": True}, 220)],  # episodes have 200
)
def test_training_that_was_stopped_goes_on_exactly(tmp_path, more, steps):
    def run(name, frames, **changes):
        args = Args(
            **SMALL, **more, folder=tmp_path / name, total_frames=frames, eval_episodes=0,
            progress=False, plot=False, logger="none", log_every=10, **changes,
        )  # fmt: skip
        return train.train(SAC, args)

    run("whole", 8 * 4 * steps)
    run("parts", 8 * 4 * (steps // 2 + 20))
    run("parts", 8 * 4 * steps, resume=True)
    assert_same(saved(tmp_path / "whole"), saved(tmp_path / "parts"))
    assert without_times(tmp_path / "whole")[-1] == without_times(tmp_path / "parts")[-1]


class Followed(Walker):
    """REINFORCE with a copy that moves towards its network."""

    tau, every = 0.25, 1

    def networks(self, num_actions):
        return {
            **super().networks(num_actions),
            "slow": train.Copy(of="net", every=self.every, tau=self.tau),
        }

    def loss(self, nets, batch):
        given = super().loss(nets, batch)
        return given | {"slow": nets.slow(batch.observations).mean().detach()}


@pytest.mark.parametrize("every", [1, 3])
def test_copies_move_by_tau(every):
    kind = type("Followed", (Followed,), {"every": every})
    trainer = trainer_of(kind, train.Args(device="cpu", num_envs=4, num_threads=1))
    net, (slow, _) = trainer.nets.trained["net"], trainer.nets.copies["slow"]
    wanted = [p.detach().double().clone() for p in slow.parameters()]
    moved = 0.0
    for _ in range(12):
        trainer.iterate()
        if trainer.updates % every == 0:
            for mine, its in zip(wanted, net.parameters(), strict=True):
                mine.lerp_(its.detach().double(), 0.25)
        both = zip(net.parameters(), wanted, strict=True)
        moved += sum(float((p.detach() - q).abs().sum()) for p, q in both)
        for mine, its in zip(wanted, slow.parameters(), strict=True):
            torch.testing.assert_close(its.detach().double(), mine, rtol=1e-5, atol=1e-7)
    assert trainer.updates >= 10 and moved > 0
    trainer.close()


@pytest.mark.parametrize("tau", [0.001, 0.01])
def test_copies_move_as_far_if_networks_compute_in_bfloat16(tau):
    """Small steps would be rounded away there."""
    torch.manual_seed(0)
    source = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    weights = Weights([source], CPU, rounded=True)
    assert source[0].weight.dtype == torch.bfloat16
    slow = _copied(source, weights, train.Copy(of="net", tau=tau))
    wanted = [p.double().clone() for p in weights.precise_parameters(source)]
    for mine, its in zip(wanted, slow.parameters(), strict=True):
        assert its.dtype == torch.float32 and torch.equal(mine.float(), its)
    for step in range(500):
        for p in weights.parameters:
            p.data += 0.001 * math.cos(step)
        weights.round()
        move_weights(source, weights.precise_parameters(source), slow, tau)
        for mine, its in zip(wanted, weights.precise_parameters(source), strict=True):
            mine.lerp_(its.double(), tau)
    for mine, its in zip(wanted, slow.parameters(), strict=True):
        torch.testing.assert_close(its.double(), mine, rtol=1e-4, atol=1e-6)


class Arrays(Walker):
    """Stores arrays of each step, and looks at them."""

    keeps = {"pair": (torch.float32, 2), "grid": (torch.int32, 2, 3)}

    def act(self, nets, observations):
        place = 10 * observations[:, :1]
        return {
            **super().act(nets, observations),
            "pair": torch.cat([place, -place], dim=1),
            "grid": place.int().unsqueeze(2).expand(-1, 2, 3),
        }

    def loss(self, nets, batch):
        place = 10 * batch.observations[:-1]
        assert batch.pair.shape == (*place.shape[:2], 2)
        assert batch.grid.shape == (*place.shape[:2], 2, 3)
        torch.testing.assert_close(batch.pair, torch.cat([place, -place], dim=2))
        assert bool((batch.grid == place.int().unsqueeze(3)).all())
        return super().loss(nets, batch)


def test_arrays_are_kept_of_each_step():
    trainer = trainer_of(Arrays, train.Args(device="cpu", num_envs=4, num_threads=1))
    for _ in range(5):
        trainer.iterate()
    assert trainer.updates > 0
    trainer.close()


def with_space(space):
    def environment(cls, args, num_envs, device):
        envs = Corridor(num_envs)
        envs.single_action_space = space
        return envs

    return type("Spaced", (Walker,), {"environment": classmethod(environment)})


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (with_space(gymnasium.spaces.MultiDiscrete([2, 3])), "or with a Box of vectors of real"),
        (with_space(gymnasium.spaces.Box(0, 9, (2,), np.int64)), "a Box of vectors of real"),
        (with_space(gymnasium.spaces.Box(0, 1, (2, 2))), "a Box of vectors of real"),
        (with_space(types.SimpleNamespace(n=0)), "envs with a number of actions"),
        (type("Kept", (Walker,), {"keeps": {"mu": (torch.float32,)}}),
         r"such as \(torch.float32, 6\), as mu of keeps, got \(torch.float32,\)"),
        (type("Kept", (Walker,), {"keeps": {"mu": (torch.float32, 0)}}), "as mu of keeps"),
        (type("Kept", (Walker,), {"keeps": {"mu": (2, torch.float32)}}), "as mu of keeps"),
        (type("Kept", (Walker,), {"evaluates": {"mu": (torch.float32, 2.0)}}),
         r"such as \(torch.float32, 6\), as mu of evaluates, got"),
        (with_space(gymnasium.spaces.Box(0, 1, (3,))),
         r'keeps to have "actions": \(torch.float32, 3\), as the envs have vectors of 3 numbers'),
        (type("Wrong", (Arrays,), {"keeps": {**Arrays.keeps, "pair": (torch.float32, 3)}}),
         r"act to return pair with a value for each of 4 envs, \(4, 3\), got \(4, 2\)"),
    ],
)  # fmt: skip
def test_other_spaces_and_shapes_are_refused(kind, message):
    with pytest.raises(ValueError, match=message) as raised:
        trainer = trainer_of(kind, train.Args(device="cpu", num_envs=4, num_threads=1))
        trainer.iterate()
    assert isinstance(raised.value, Refusal)


@pytest.mark.parametrize(
    ("tau", "message"), [(0.0, "tau to be above 0"), (1.5, "tau to be from 0 to 1"), ("a", "tau")]
)
def test_shares_that_are_none_are_refused(tau, message):
    with pytest.raises(ValueError, match=message):
        train.Copy(of="net", tau=tau)
    assert train.Copy(of="net", tau=np.float64(0.5)).tau == 0.5


def test_normal_draws_are_normal_and_depend_on_env_and_step_alone():
    like, step = torch.zeros(4000, 5), torch.zeros(1, dtype=torch.int64)
    with draws.keyed(3, 0, step):
        drawn, others = draws.normal(like), draws.normal(like)
    with draws.keyed(3, 1000, step):
        part = draws.normal(like[:50])
    assert torch.equal(part, drawn[1000:1050]) and not torch.equal(drawn, others)
    below = torch.special.ndtr(drawn.double().flatten().sort().values)
    ranks = (torch.arange(len(below)) + 0.5) / len(below)
    # Kolmogorov's bound, which one in a hundred such samples exceeds.
    assert float((below - ranks).abs().max()) < 1.63 / math.sqrt(len(below))
    assert abs(float(drawn.mean())) < 0.03 and abs(float(drawn.std()) - 1) < 0.02
    together = np.corrcoef(drawn.T.numpy())
    assert np.abs(together - np.eye(5)).max() < 4 / math.sqrt(4000)
    with draws.keyed(3, 0, step):
        assert draws.normal(like[:, 0]).shape == (4000,)
    assert draws.normal(nn.Linear(2, 3).weight).shape == (3, 2)
    for like in (torch.zeros(2, 3, 4), torch.zeros(())):
        with pytest.raises(ValueError, match=r"a tensor like \(envs,\) or \(envs, each\)"):
            draws.normal(like)
