"""Planned A2C, PPO and DQN compute what programs written by hand do, bit for bit."""

from __future__ import annotations

import functools
import itertools

import by_hand
import pytest
import torch
from scripted import ScriptedEnv

from cule.train.distributed.process_group import ProcessGroup
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer
from examples.a2c_vtrace import train as a2c
from examples.dqn import dqn
from examples.ppo import ppo

CPU = torch.device("cpu")
ALL = [Passes(*on) for on in itertools.product([True, False], repeat=4)]
ONE_OFF = [p for p in ALL if [p.alias, p.merge, p.prune, p.batch].count(False) <= 1]
# Lives are lost from step 10 on, rewards are more than 1, and an episode is cut off after 21 steps.
COMMON = {
    "game": "galaxian", "width": 0.1, "num_threads": 1, "num_envs": 8, "seed": 1,
    "life_loss_ends": True, "max_episode_frames": 84,
}  # fmt: skip


@functools.cache
def computed(name, settings):
    """What a loop by hand has after 50 updates; the passes make no difference to it."""
    return getattr(by_hand, name)(50, **dict(settings))


def planned(module, algorithm, passes, settings):
    """A trainer after 50 updates, or as many as a phase of learning then has made."""
    args = module.Args(device="cpu", **settings).on(CPU)
    args.check(1)
    trainer = Trainer(algorithm, args, ProcessGroup(0, 1, CPU), passes)
    while trainer.updates < 50:
        trainer.iterate()
    return trainer


def assert_equal(trainer, name, wanted):
    """Both have learned the same weights and scored the same in as many updates and steps.

    Episodes were terminated and truncated meanwhile.
    """
    played = wanted.played
    assert (trainer.updates, trainer.steps) == (wanted.updates, played.count)
    scores = trainer.collector.episodes.take_scores()[:2]
    assert torch.equal(scores, played.scores)
    assert played.terminations > 0 and scores[1] > 0
    assert_equal_weights(trainer.nets.trained[name], wanted.net)


def assert_equal_weights(ours, wanted):
    for mine, its in zip(ours.parameters(), wanted.parameters(), strict=True):
        assert torch.equal(mine, its)


A2C = [
    {"num_batches": 4, "num_steps": 5, "steps_per_update": 1, "lag": 1,
     "updates_at_once": 3},
    {"num_batches": 4, "num_steps": 5, "steps_per_update": 1},
    {"num_batches": 1, "num_steps": 5, "steps_per_update": 5},
    {"num_batches": 2, "num_steps": 6, "steps_per_update": 3, "lag": 1, "learner_chunk": 21},
    {"num_batches": 2, "num_steps": 6, "steps_per_update": 3, "optimizer": "rmsprop"},
]  # fmt: skip


def each_with(first, second):
    """The pairs of two lists' members; those that have neither list's first one are slow."""
    return [
        pytest.param(one, other, marks=[pytest.mark.slow] if i and k else [])
        for i, one in enumerate(first)
        for k, other in enumerate(second)
    ]


@pytest.mark.parametrize(("settings", "passes"), each_with(A2C, ONE_OFF), ids=str)
def test_a2c(settings, passes):
    settings = {**COMMON, "warmup_steps": 7, **settings}
    hand = computed("a2c", tuple(settings.items()))
    trainer = planned(a2c, a2c.A2C, passes, settings)
    assert_equal(trainer, "net", hand)
    assert_equal_weights(trainer.acting.net, hand.policy)
    names = trainer.learner.names
    assert names == ("policy_loss", "value_loss", "entropy", "ratio", "grad_norm")
    assert torch.equal(trainer.learner.metrics, hand.metrics)


@pytest.mark.parametrize("passes", ONE_OFF, ids=str)
def test_ppo(passes):
    settings = {
        **COMMON, "num_steps": 8, "update_epochs": 3, "minibatch_size": 16, "total_frames": 2000,
    }  # fmt: skip
    hand = computed("ppo", tuple(settings.items()))
    assert_equal(planned(ppo, ppo.PPO, passes, settings), "net", hand)


@pytest.mark.parametrize(("double", "passes"), each_with([False, True], ONE_OFF), ids=str)
def test_dqn(double, passes):
    settings = {
        **COMMON, "memory": 160, "first_update": 80, "steps_per_update": 2, "updates_at_once": 3,
        "minibatch_size": 16, "target_every": 7, "double": double, "epsilon_frames": 2000,
    }  # fmt: skip
    hand = computed("dqn", tuple(settings.items()))
    trainer = planned(dqn, dqn.DQN, passes, settings)
    assert_equal(trainer, "q", hand)
    assert_equal_weights(trainer.nets.copies["target"][0], hand.target)
    assert trainer.steps > 25


@pytest.mark.parametrize(
    ("row", "discount"),
    [((1, True, False, False), 0.0), ((1, False, True, False), 0.9)],
    ids=["terminated", "truncated"],
)
def test_by_hand_only_a_termination_cuts_the_bootstrap(row, discount):
    """The final observation comes after the end; then the next episode's first frame is alone."""
    nothing, reset = (0, False, False, False), (0, False, False, True)
    window, scores = played_by_hand([nothing, row, reset, nothing])
    torch.testing.assert_close(window.discounts[:, 0], torch.tensor([0.9, discount, 0.9, 0.9]))
    assert window.played[:, 0].tolist() == [True, True, False, True]
    assert window.observations[:, 0, :, 0, 0].tolist() == [
        [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 2], [0, 0, 0, 3], [0, 0, 3, 4],
    ]  # fmt: skip
    assert scores == [10, 1]


def test_by_hand_a_lost_life_cuts_the_bootstrap_while_the_game_goes_on():
    goes_on = (1, False, False, False)
    window, scores = played_by_hand([(1, True, False, False), goes_on, goes_on])
    torch.testing.assert_close(window.discounts[:, 0], torch.tensor([0.0, 0.9, 0.9]))
    assert window.played.all() and scores == [0, 0]
    assert window.observations[-1, 0, :, 0, 0].tolist() == [0, 1, 2, 3]


def played_by_hand(script):
    """The steps of a script, and the scores of its episodes that ended."""
    played = by_hand.Played(ScriptedEnv(script), len(script), 0.9, seed=0)
    played.begin()
    for _ in script:
        played.step(lambda observations: {"actions": torch.zeros(1, dtype=torch.int64)})
    return played.window(), played.scores.tolist()
