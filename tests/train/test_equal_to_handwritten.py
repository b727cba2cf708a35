"""Planned A2C, PPO and DQN compute what programs written by hand do, bit for bit."""

from __future__ import annotations

import itertools

import pytest
import torch
from handwritten import a2c as a2c_by_hand
from handwritten import dqn as dqn_by_hand
from handwritten import ppo as ppo_by_hand
from handwritten.arguments import Args as A2CArgs

from cule.train.distributed.process_group import World
from cule.train.plan.passes import Passes
from cule.train.presets import filled
from cule.train.trainer import SEED_STRIDE, Trainer
from examples.a2c_vtrace import train as a2c
from examples.dqn import dqn
from examples.ppo import ppo

CPU = torch.device("cpu")
ALL = [Passes(*on) for on in itertools.product([True, False], repeat=4)]
ONE_OFF = [p for p in ALL if [p.alias, p.merge, p.prune, p.batch].count(False) <= 1]
COMMON = {"game": "breakout", "device": "cpu", "width": 0.1, "num_threads": 1, "num_envs": 8}


def planned(module, algorithm, passes, **settings):
    args = module.Args(**COMMON, **settings).on(CPU)
    args.check(1)
    return Trainer(algorithm(args), World(0, 1, CPU), passes)


def assert_equal(trained, by_hand):
    ours, wanted = list(trained.parameters()), list(by_hand)
    assert len(ours) == len(wanted)
    for mine, its in zip(ours, wanted, strict=True):
        assert torch.equal(mine, its)


A2C = [
    {"num_batches": 4, "n_steps": 5, "steps_per_update": 1, "overlap": True, "updates_at_once": 3},
    {"num_batches": 4, "n_steps": 5, "steps_per_update": 1},
    {"num_batches": 1, "n_steps": 5, "steps_per_update": 5},
    {"num_batches": 2, "n_steps": 6, "steps_per_update": 3, "overlap": True, "learner_chunk": 14},
    {"num_batches": 2, "n_steps": 6, "steps_per_update": 3, "optimizer": "rmsprop"},
]


def each_with(first, second):
    """The pairs of two lists' members; those that have neither list's first one are slow."""
    return [
        pytest.param(one, other, marks=[pytest.mark.slow] if i and k else [])
        for i, one in enumerate(first)
        for k, other in enumerate(second)
    ]


@pytest.mark.parametrize(("settings", "passes"), each_with(A2C, ONE_OFF), ids=str)
def test_a2c(settings, passes):
    both = {"life_loss_ends": True, "max_episode_frames": 60, "warmup_steps": 7, **settings}
    hand = a2c_by_hand.Trainer(A2CArgs(**COMMON, **both).on(CPU), World(0, 1, CPU))
    while hand.updates < 50:
        hand.iterate()
    both["num_steps"] = both.pop("n_steps")
    trainer = planned(a2c, a2c.A2C, passes, **both)
    while trainer.updates < 50:
        trainer.iterate()
    assert trainer.updates == hand.updates and trainer.steps == hand.steps
    assert_equal(trainer.nets.trained["net"], hand.learner.model.parameters())
    assert_equal(trainer.acting.net, hand.policy.parameters())
    names = trainer.learner.names
    assert names == ("policy_loss", "value_loss", "entropy", "ratio", "grad_norm")
    assert torch.equal(trainer.learner.metrics, hand.learner.metrics)
    scores = trainer.stage.episodes.take_scores()[:2]
    assert torch.equal(scores, hand.player.episodes.take_scores()) and scores[1] > 0


@pytest.mark.parametrize("passes", ONE_OFF, ids=str)
def test_ppo(passes):
    changed = {"n_steps": 8, "epochs": 3, "minibatch": 16, "total_frames": 2000}
    hand = ppo_by_hand.Ppo(filled(ppo_by_hand.Args(**COMMON, **changed), CPU), CPU)
    ours = {"num_steps": 8, "update_epochs": 3, "minibatch_size": 16, "total_frames": 2000}
    torch.manual_seed(0 * SEED_STRIDE)  # where the planned one begins
    while hand.updates < 50:
        hand.play()
        hand.learn()
    trainer = planned(ppo, ppo.PPO, passes, **ours)
    while trainer.updates < 50:
        trainer.iterate()
    assert trainer.updates == hand.updates
    assert_equal(trainer.nets.trained["net"], hand.model.parameters())


@pytest.mark.parametrize(("double", "passes"), each_with([False, True], ONE_OFF), ids=str)
def test_dqn(double, passes):
    both = {
        "memory": 160, "first_update": 80, "steps_per_update": 2, "updates_at_once": 3,
        "target_every": 7, "double": double, "epsilon_frames": 2000,
    }  # fmt: skip
    hand = dqn_by_hand.Dqn(filled(dqn_by_hand.Args(**COMMON, minibatch=16, **both), CPU), CPU)
    torch.manual_seed(0 * SEED_STRIDE)
    while hand.updates < 50:
        hand.iterate()
    trainer = planned(dqn, dqn.DQN, passes, minibatch_size=16, **both)
    while trainer.updates < 50:
        trainer.iterate()
    assert trainer.updates == hand.updates > 0 and trainer.steps > 25
    assert_equal(trainer.nets.trained["q"], hand.network.parameters())
    assert_equal(trainer.nets.copies["target"][0], hand.target.parameters())
