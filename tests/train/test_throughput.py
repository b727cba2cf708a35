"""Predictions and trained transitions a second: in the log, and of each kind of learning."""

from __future__ import annotations

import pytest
from training_runs import settings, trained

from cule import train
from cule.train.learning import Learning, Replay
from cule.train.logs.log import read_log
from examples.ppo.ppo import PPO
from examples.ppo.ppo import Args as PpoArgs


@pytest.mark.parametrize(
    ("learning", "transitions"),
    [
        (Learning(steps=20, groups=20, every=1), 20 * 6),
        (Learning(steps=5, minibatch=30, epochs=4), 30),
        (Learning(steps=8, accumulate=16, ahead=8), 8 * 16 * 120),
        (Learning(replay=Replay(10_000, 32, n_step=3), every=4, times=2), 32),
        (Learning(replay=Replay(10_000, 16, sequence=80), every=4), 16 * 80),
    ],
)
def test_an_update_learns_from_so_many_transitions(learning, transitions):
    learning.check(120)
    assert learning.transitions(120) == transitions


def rates(run):
    lines = [line for line in read_log(run / "log.jsonl") if line["kind"] == "training"]
    assert len(lines) > 2
    return [(line["fps"], line["pps"], line["ttop"]) for line in lines]


def test_each_step_is_predicted_once_and_learned_once(tmp_path):
    trained(settings(tmp_path, total_frames=3000))
    for fps, pps, ttop in rates(tmp_path)[1:]:
        assert pps == pytest.approx(fps / 4) and ttop == pytest.approx(pps)


def test_steps_of_three_epochs_are_learned_three_times(tmp_path):
    more = {"num_steps": 4, "minibatch_size": 16, "update_epochs": 3, "num_envs": 8, "width": 0.1}
    args = PpoArgs(
        game="breakout", device="cpu", folder=tmp_path, total_frames=2000, log_every=5,
        eval_episodes=0, progress=False, logger="none", plot=False, checkpoint_every=0, **more,
    )  # fmt: skip
    train.train(PPO, args)
    for _, pps, ttop in rates(tmp_path)[1:]:
        assert ttop == pytest.approx(3 * pps)
