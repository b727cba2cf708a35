"""The project's own training programs, recorded: all that they call is in an operation."""

from __future__ import annotations

import pytest
import torch

from cule import scope, train
from cule.scope.recording import Recording
from cule.train.distributed.process_group import ProcessGroup
from cule.train.logs.log import read_log
from cule.train.plan.annotate import log_values
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C
from examples.a2c_vtrace.train import Args as A2CArgs
from examples.dqn import dqn
from examples.ppo import ppo

SHORT = {
    "game": "pong", "device": "cpu", "num_envs": 4, "num_threads": 1, "width": 0.1,
    "progress": False, "logger": "none", "plot": False, "eval_episodes": 0,
}  # fmt: skip


def levels(recording: Recording) -> dict[str, set[str]]:
    """The levels that each operation is on."""
    found: dict[str, set[str]] = {}
    for row in recording.breakdown():
        found.setdefault(row.operation, set()).add(row.level)
    return found


@pytest.mark.parametrize("lag", [0, 1])
def test_a2c_with_vtrace_is_annotated(tmp_path, lag):
    args = A2CArgs(
        game="pong", num_envs=4, num_threads=1, width=0.1, num_batches=2, num_steps=2,
        steps_per_update=1, warmup_steps=2, lag=lag,
    ).on(torch.device("cpu"))  # fmt: skip
    trainer = Trainer(A2C, args, ProcessGroup(0, 1, torch.device("cpu")))
    with scope.record(tmp_path, iterations=(8, 20)) as recording:
        for _ in range(20):
            with scope.iteration():
                trainer.iterate()
    trainer.close()
    found = levels(recording)
    assert found.keys() >= {
        "playing", "simulation", "inference", "storage", "learning", "gathering",
        "backpropagation", "optimizer",
    }  # fmt: skip
    # Without a lag the plan acts with the weights that learn.
    assert ("handing over" in found) == bool(lag)
    assert found[scope.UNATTRIBUTED] - {"waiting"} == {"python"}  # for a thread that starts
    assert recording.problems == []


@pytest.mark.parametrize("emulator", ["cule", "ale-py"])
def test_ppo_is_annotated(tmp_path, emulator):
    args = ppo.Args(
        **SHORT, emulator=emulator, total_frames=4 * 4 * 8 * 4, num_steps=8, minibatch_size=16,
        update_epochs=1, folder=tmp_path / "run",
    )  # fmt: skip
    with scope.record(tmp_path / "recording", iterations=2) as recording:
        train.train(ppo.PPO, args)
    found = levels(recording)
    assert found.keys() >= {
        "simulation", "inference", "storage", "prepare", "gathering", "backpropagation",
        "optimizer", "logging",
    }  # fmt: skip
    assert found[scope.UNATTRIBUTED] - {"waiting"} == {"python"}  # for a thread that starts
    assert {row.phase for row in recording.breakdown()} == {"training"}
    assert found["simulation"] >= {"python", "simulator"}
    assert recording.problems == []


def test_dqn_is_annotated(tmp_path):
    args = dqn.Args(
        **SHORT, total_frames=4 * 4 * 30, memory=100, first_update=16, minibatch_size=8,
        epsilon_frames=9, target_every=4, folder=tmp_path / "run",
    )  # fmt: skip
    with scope.record(tmp_path / "recording", iterations=(8, 24)) as recording:
        train.train(dqn.DQN, args)
    found = levels(recording)
    assert found.keys() >= {
        "simulation", "inference", "storage", "sample", "gathering", "backpropagation",
        "optimizer", "copy q to target", "schedules", "logging",
    }  # fmt: skip
    assert found[scope.UNATTRIBUTED] - {"waiting"} == {"python"}  # for a thread that starts
    assert recording.problems == []


def test_log_of_a_run_has_milliseconds_of_operations(tmp_path):
    """Of one iteration in 16."""
    args = A2CArgs(
        **SHORT, num_batches=2, num_steps=2, warmup_steps=0, total_frames=4 * 4 * 40, log_every=20,
        folder=tmp_path,
    )  # fmt: skip
    train.train(A2C, args)
    lines = [line for line in read_log(tmp_path / "log.jsonl") if line["kind"] == "training"]
    assert any(line.get("ms_playing", 0) > 0 and line["ms_learning"] > 0 for line in lines)


def test_log_values_have_names_without_spaces():
    class Timed:
        def milliseconds(self):
            return {"playing and learning": 0.5, "handing over": 2.0}

    assert log_values(Timed()) == {"ms_playing_and_learning": 0.5, "ms_handing_over": 2.0}
