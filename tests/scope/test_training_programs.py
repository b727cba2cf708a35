"""The project's own training programs, recorded: all that they call is in an operation."""

from __future__ import annotations

import pytest
import torch

from cule import scope
from cule.scope.recording import Recording
from examples.a2c_vtrace import arguments
from examples.a2c_vtrace.trainer import Trainer
from examples.a2c_vtrace.world import World
from examples.common.timing import log_values
from examples.dqn import dqn
from examples.ppo import ppo

SHORT = {
    "game": "pong", "device": "cpu", "num_envs": 4, "num_threads": 1, "width": 0.1,
    "progress": False,
}  # fmt: skip


def levels(recording: Recording) -> dict[str, set[str]]:
    """The levels that each operation is on."""
    found: dict[str, set[str]] = {}
    for row in recording.breakdown():
        found.setdefault(row.operation, set()).add(row.level)
    return found


@pytest.mark.parametrize("overlap", [False, True])
def test_a2c_with_vtrace_is_annotated(tmp_path, overlap):
    args = arguments.Args(
        game="pong", num_envs=4, num_threads=1, width=0.1, num_batches=2, n_steps=2,
        steps_per_update=1, warmup_steps=2, overlap=overlap,
    ).on(torch.device("cpu"))  # fmt: skip
    trainer = Trainer(args, World(0, 1, torch.device("cpu")))
    with scope.record(tmp_path, iterations=(8, 20)) as recording:
        for _ in range(20):
            with scope.iteration():
                trainer.iterate()
    trainer.close()
    found = levels(recording)
    assert found.keys() >= {
        "playing", "simulation", "inference", "storage", "learning", "gathering",
        "backpropagation", "optimizer", "handing over",
    }  # fmt: skip
    assert found[scope.UNATTRIBUTED] == {"python"}
    assert recording.problems == []


@pytest.mark.parametrize("emulator", ["cule", "ale-py"])
def test_ppo_is_annotated(tmp_path, emulator):
    args = ppo.Args(
        **SHORT, emulator=emulator, total_frames=4 * 4 * 8 * 4, n_steps=8, minibatch=16, epochs=1
    )
    with scope.record(tmp_path, iterations=2) as recording:
        ppo.train(args)
    found = levels(recording)
    assert found.keys() >= {
        "simulation", "inference", "storage", "advantages", "gathering", "backpropagation",
        "optimizer", "logging",
    }  # fmt: skip
    assert found[scope.UNATTRIBUTED] == {"python"}
    assert {row.phase for row in recording.breakdown()} == {"training"}
    assert found["simulation"] >= {"python", "simulator"}
    assert recording.problems == []


def test_dqn_is_annotated(tmp_path):
    args = dqn.Args(
        **SHORT, total_frames=4 * 4 * 30, memory=100, first_update=16, minibatch=8, epsilon_frames=9
    )
    with scope.record(tmp_path, iterations=(8, 24)) as recording:
        dqn.train(args)
    found = levels(recording)
    assert found.keys() >= {
        "simulation", "inference", "storage", "targets", "gathering", "backpropagation",
        "optimizer", "logging",
    }  # fmt: skip
    assert found[scope.UNATTRIBUTED] == {"python"}
    assert recording.problems == []


def test_log_has_milliseconds_of_operations():
    class Timed:
        def milliseconds(self):
            return {"handing over": 0.5, "playing": 2.0}

    assert log_values(Timed()) == {"ms_handing_over": 0.5, "ms_playing": 2.0}
