"""Settings are checked by type and value in Python as on the command line, and none is ignored."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from training_runs import settings as a2c_settings
from training_runs import trained

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.main import explain
from cule.train.nn.models import ActorCritic
from cule.train.run import result
from cule.train.trainer import Trainer
from examples.dqn import dqn
from examples.ppo import ppo

CPU = torch.device("cpu")
TINY = {"num_envs": 4, "num_threads": 1, "width": 0.1, "progress": False}
SMALL = {"num_steps": 4, "minibatch_size": 8}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_envs": "8"}, "expected num_envs to be an integer or None, got '8'"),
        ({"num_envs": 8.0}, "expected num_envs to be an integer or None, got 8.0"),
        ({"seed": 1.5}, "expected seed to be an integer, got 1.5"),
        ({"seed": True}, "expected seed to be an integer, got True"),
        ({"anneal_lr": "no"}, "expected anneal_lr to be True or False, got 'no'"),
        ({"anneal_lr": 1}, "expected anneal_lr to be True or False, got 1"),
        ({"learning_rate": "3e-4"}, "expected learning_rate to be a finite number, got '3e-4'"),
        ({"learning_rate": float("nan")}, "expected learning_rate to be a finite number, got nan"),
        ({"learning_rate": True}, "expected learning_rate to be a finite number, got True"),
        ({"max_seconds": float("inf")}, "expected max_seconds to be a finite number or None, got"),
        ({"optimizer": "sgd"}, "expected optimizer to be 'adam' or 'muon' or 'rmsprop', got 'sgd'"),
        ({"env_device": "gpu"}, "expected env_device to be 'cpu' or None, got 'gpu'"),
        ({"folder": 3}, "expected folder to be a path, got 3"),
        ({"folder": None}, "expected folder to be a path, got None"),
        ({"game": ["pong"]}, r"expected game to be a text, got \['pong'\]"),
        ({"device": torch.device("cpu")}, "expected device to be a text or None, got device"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_setting_of_another_type_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        train.Args(**changes)


def test_own_settings_are_checked_too():
    with pytest.raises(ValueError, match="expected double to be True or False, got 'yes'"):
        dqn.Args(double="yes")
    with pytest.raises(ValueError, match="expected steps_per_update to be an integer"):
        dqn.Args(steps_per_update=0.5)


@pytest.mark.parametrize("lag", [0, 1])
def test_warm_up_that_takes_all_frames_is_refused(lag, tmp_path):
    """Of 8 envs, 32 frames in a step; an update every 2 steps, from after the 10th on."""
    args = a2c_settings(
        tmp_path / "run", warmup_steps=9, total_frames=8 * 32 + 32 * 2 * lag, lag=lag
    )
    played = args.total_frames
    message = (
        f"expected total_frames to be more than the {played} that 8 envs play before the first "
        f"update, got {played}: nothing would be learned"
    )
    with pytest.raises(ValueError, match=message):
        trained(args)
    assert not (tmp_path / "run" / "log.jsonl").exists()
    row = trained(dataclasses.replace(args, total_frames=played + 1))
    assert row["updates"] == 1 and row["frames"] == played + 64


def test_memory_that_is_never_full_enough_is_refused(tmp_path):
    args = dqn.Args(
        **TINY, folder=tmp_path, memory=200, first_update=100, minibatch_size=4, total_frames=300,
        device="cpu",
    )  # fmt: skip
    with pytest.raises(ValueError, match="more than the 384 that 4 envs play before the first"):
        train.train(dqn.DQN, args)


def test_own_setting_named_as_a_part_of_the_row_is_refused_at_once(tmp_path):
    make = dataclasses.make_dataclass
    kind = make("Mine", [("mode", str, "hard"), ("score", int, 3), ("other", int, 4)],
                bases=(ppo.Args,))  # fmt: skip
    args = kind(**TINY | SMALL | {"width": 1.0}, folder=tmp_path)
    with pytest.raises(
        ValueError, match=r"expected settings of Mine with other.*, got mode, score"
    ):
        train.train(Plain, args)
    assert not (tmp_path / "log.jsonl").exists()
    # A row has nothing else.
    kind = make("Fine", [("other", int, 4)], bases=(ppo.Args,))
    args = kind(**TINY | SMALL | {"width": 1.0}, folder=tmp_path, total_frames=1000,
                eval_episodes=0, plot=False)  # fmt: skip
    row = train.train(Plain, args)
    assert row["other"] == 4
    known = {field.name for field in dataclasses.fields(kind)}
    assert row.keys() - known <= result.MEASURED and not result.MEASURED & known


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("num_envs", "4", "an integer or None"), ("folder", -math.inf, "a path"),
        ("device", 3, "a text or None"), ("layout", None, "a text"), ("num_threads", "1", "an int"),
    ],
)  # fmt: skip
def test_setting_that_was_changed_later_is_checked_when_training_begins(
    name, value, expected, tmp_path
):
    args = ppo.Args(**TINY, folder=tmp_path)
    setattr(args, name, value)
    for begin in (train.train, explain):
        with pytest.raises(ValueError, match=f"expected {name} to be {expected}.*, got {value!r}"):
            begin(ppo.PPO, args)


def test_no_frames_are_a_training_that_plays_none(tmp_path):
    """Though the learning rate falls until their end."""
    args = ppo.Args(
        **TINY | SMALL, folder=tmp_path, total_frames=0, anneal_lr=True, eval_episodes=2,
        eval_max_frames=200,
    )  # fmt: skip
    assert train.train(ppo.PPO, args)["frames"] == 0


def test_memory_budget_has_a_bound(tmp_path):
    args = ppo.Args(**TINY, folder=tmp_path, device="cpu", memory_budget=1e308)
    with pytest.raises(ValueError, match=r"expected memory_budget to be from 0 to 1048576\.0, got"):
        train.train(ppo.PPO, args)


def test_value_that_cannot_be_printed_is_refused():
    class Bad:
        def __repr__(self):
            raise ValueError("no text")

    with pytest.raises(ValueError, match="expected gamma to be a finite number, got <Bad instance"):
        train.Args(gamma=Bad())


def test_settings_that_are_none_are_refused():
    with pytest.raises(TypeError, match=r"expected settings, a train.Args or .*, got \{'game': "):
        train.train(ppo.PPO, {"game": "pong"})


def test_setting_takes_what_means_the_same(tmp_path):
    args = train.Args(
        folder=str(tmp_path), results="rows.jsonl", seed=np.int64(3), width=1,
        learning_rate=np.float32(0.5),
    )  # fmt: skip
    assert (args.folder, args.results) == (tmp_path, Path("rows.jsonl"))
    assert (args.seed, type(args.seed), args.learning_rate) == (3, int, 0.5)


class Plain(ppo.PPO):
    """A network and an optimizer of its own, which no setting changes."""

    def networks(self, num_actions):
        return {"net": ActorCritic(num_actions, "nature", 0.1)}

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=torch.tensor(0.1))


class Rated(ppo.PPO):
    """An optimizer of its own, which has one setting."""

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=torch.tensor(self.args.learning_rate))


class Fixed(ppo.PPO):
    """An optimizer whose learning rate is a number, which a captured step would not see change."""

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=self.args.learning_rate)


def test_learning_rate_that_cannot_change_is_refused_before_the_first_step(tmp_path):
    args = ppo.Args(**TINY | SMALL, folder=tmp_path, total_frames=1000, anneal_lr=True)
    with pytest.raises(ValueError, match="expected an optimizer whose learning rate is a tensor"):
        train.train(Fixed, args)
    assert not (tmp_path / "log.jsonl").exists() or not (tmp_path / "log.jsonl").read_text()


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        (Plain, {"width": 1.0, "model": "impala"}, "expected model as it is by default"),
        (Plain, {"width": 0.5}, r"expected width as it is by default \(1.0\), as Plain with these"),
        (Rated, {"adam_epsilon": 0.5}, "expected adam_epsilon as it is by default"),
        (Rated, {"optimizer": "muon"}, "expected optimizer as it is by default .* got 'muon'"),
        (ppo.PPO, {"muon_momentum": 0.5}, "expected muon_momentum as it is by default"),
        (ppo.PPO, {"optimizer": "muon", "rmsprop_decay": 0.5}, "expected rmsprop_decay as it is"),
    ],
)
def test_setting_that_nobody_reads_is_refused(make, changes, message):
    args = ppo.Args(**TINY | SMALL | changes).on(CPU)
    with pytest.raises(ValueError, match=message):
        Trainer(make, args, ProcessGroup(0, 1, CPU))


def test_dqn_learns_with_the_optimizer_of_the_settings():
    """It had Adam with an epsilon of its own, whatever was asked for."""
    args = dqn.Args(**TINY, optimizer="muon", adam_epsilon=0.5, anneal_lr=True, memory=64,
                    first_update=16, total_frames=1_000_000).on(CPU)  # fmt: skip
    trainer = Trainer(dqn.DQN, args, ProcessGroup(0, 1, CPU))
    optimizer = trainer.learner.optimizer
    assert type(optimizer).__name__ == "Muon"
    assert {group.get("eps", 0.5) for group in optimizer.param_groups} == {0.5}
    for _ in range(8):
        trainer.iterate()
    assert trainer.updates > 0
    rates = {float(group["lr"]) for group in optimizer.param_groups}
    assert all(0 < rate < args.learning_rate for rate in rates)
    trainer.close()


def test_row_has_what_was_in_force(tmp_path):
    row = trained(a2c_settings(tmp_path / "lag", total_frames=1000, lag=1))
    assert (row["lag"], row["model"], row["width"]) == (1, "nature", 0.1)
    args = ppo.Args(
        **TINY | SMALL | {"width": 1.0}, folder=tmp_path / "plain", total_frames=1000,
        eval_episodes=0, logger="none", plot=False,
    )  # fmt: skip
    row = train.train(Plain, args)
    assert [row[name] for name in ("model", "width", "optimizer", "lag")] == [None, None, None, 0]
