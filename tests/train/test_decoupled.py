"""Processes that act and processes that learn compute what one process does."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from hashed import Hashed
from training_runs import (
    ROOT,
    assert_same,
    children_of,
    one_thread_each,
    options,
    processes,
    saved,
    settings,
    trained,
    wait_for,
    wait_for_checkpoint,
    without_times,
)  # fmt: skip

from cule import train
from cule.train.command import options_of
from cule.train.distributed.process_group import ProcessGroup
from cule.train.layout import Layout
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C
from tests.support import warm


def launched(count, run, program="examples.a2c_vtrace.train", **changes):
    """Trains in some processes."""
    train_in(count, program, options(run, **changes))


def train_in(count, program, words):
    for done in warm.run_ranks(count, ["-m", program, *words], env=one_thread_each()):
        assert done.returncode == 0, done.stderr


# What only processes with other processes' steps have in the log.
OF_ACTORS = ("staleness", "staleness_max")


def logged(run):
    """The log without times and what is said of actors."""
    return [{k: v for k, v in line.items() if k not in OF_ACTORS} for line in without_times(run)]


def assert_learned_the_same(first, second):
    """Networks, optimizers and metrics."""
    assert first["updates"] == second["updates"] > 10
    assert_same(first["networks"], second["networks"])
    assert_same(first["plan"]["objects"]["learner"], second["plan"]["objects"]["learner"])


def test_an_actor_and_a_learner_are_one_process_with_a_lag(tmp_path):
    apart, one = tmp_path / "apart", tmp_path / "one"
    more = {"lag": 1, "total_frames": 2000}
    launched(2, apart, layout="decoupled:1+1", **more)
    trained(settings(one, **more))
    assert_learned_the_same(saved(apart), saved(one))
    acting, whole = saved(apart, 1)["plan"]["objects"], saved(one)["plan"]["objects"]
    assert_same(acting["envs"], whole["envs"])
    assert_same(acting["net (acting)"], whole["net (acting)"])
    assert "learner" not in acting and "envs" not in saved(apart)["plan"]["objects"]
    assert logged(apart) == logged(one)


@pytest.mark.slow
def test_two_actors_are_one_process_with_their_envs(tmp_path):
    apart, one = tmp_path / "apart", tmp_path / "one"
    more = {"lag": 1, "total_frames": 2000, "num_batches": 4}
    launched(3, apart, "tests.train.hashed", layout="decoupled:2+1", **more)
    train.train(Hashed, settings(one, **more))
    assert_learned_the_same(saved(apart), saved(one))
    rings = [saved(of)["plan"]["recurrents"]["far"] for of in (apart, one)]
    for name in ("actions", "log_mu", "rewards"):
        assert torch.equal(rings[0][name]["values"], rings[1][name]["values"])
    assert logged(apart) == logged(one)


def test_actors_of_one_gpu_and_processes_that_do_both_are_processes_that_do_both(tmp_path):
    other, both = tmp_path / "other", tmp_path / "both"
    more = {"program": HASHED, "lag": 1, "num_envs": 48, "total_frames": 6000}
    launched(4, other, layout="2act@0+learn@0+both@0", **more)
    launched(2, both, **more)
    for rank in range(2):
        assert_learned_the_same(saved(other, rank), saved(both, rank))
    for part in ("recurrents", "objects"):
        assert_same(saved(other, 1)["plan"][part], saved(both, 1)["plan"][part])
    assert logged(other) == logged(both)


HASHED, A2C_PROGRAM = "tests.train.hashed", "examples.a2c_vtrace.train"


@pytest.mark.parametrize(
    ("layout", "count", "program", "num_envs"),
    [
        ("decoupled:1+2", 3, HASHED, 8),
        pytest.param("decoupled:2+2", 4, A2C_PROGRAM, 8, marks=pytest.mark.slow),
        pytest.param("decoupled:3+2", 5, HASHED, 24, marks=pytest.mark.slow),
        pytest.param("act@0+2learn@0", 3, HASHED, 8, marks=pytest.mark.slow),
        pytest.param("act+learn", 4, HASHED, 8, marks=pytest.mark.slow),
        pytest.param("staggered:2", 2, A2C_PROGRAM, 8, marks=pytest.mark.slow),
    ],
)
def test_several_learners_are_processes_that_do_both(layout, count, program, num_envs, tmp_path):
    other, both = tmp_path / "other", tmp_path / "both"
    more = {"program": program, "lag": 1, "num_envs": num_envs}
    more["total_frames"] = 250 * num_envs
    launched(count, other, layout=layout, **more)
    launched(2, both, **more)
    for number, rank in enumerate(Layout.parse(layout).ranks(count, "learn")):
        assert_learned_the_same(saved(other, rank), saved(both, number))
    assert logged(other) == logged(both)


COMMON = {
    "game": "breakout", "device": "cpu", "num_envs": 8, "lag": 1, "log_every": 5,
    "max_episode_frames": 150, "checkpoint_every": 0, "eval_episodes": 0, "num_threads": 1,
    "progress": False, "logger": "none", "plot": False,
}  # fmt: skip
OTHERS = {
    "examples.ppo.ppo": {
        "num_steps": 4,
        "minibatch_size": 16,
        "width": 0.1,
        "anneal_lr": False,
    },
    "examples.dqn.dqn": {"memory": 400, "first_update": 80, "minibatch_size": 16, "width": 0.1},
    "tests.train.recurrent": {"num_steps": 4},
}


def run_other(program, run, count, **changes):
    train_in(count, program, options_of({"folder": run, **COMMON, **OTHERS[program], **changes}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "layout", "count"),
    [
        *((program, "decoupled:2+1", 3) for program in OTHERS),
        ("examples.ppo.ppo", "decoupled:1+2", 3),
        ("examples.dqn.dqn", "decoupled:2+4", 6),
    ],
)
def test_other_algorithms_go_on_exactly(program, layout, count, tmp_path):
    for run, frames in (("parts", 2000), ("parts", 4000), ("whole", 4000)):
        run_other(program, tmp_path / run, count, layout=layout, total_frames=frames, resume=True)
    for rank in range(count):
        assert_same(saved(tmp_path / "parts", rank), saved(tmp_path / "whole", rank))
    assert saved(tmp_path / "whole")["updates"] > 20


@pytest.mark.slow
def test_state_of_a_recurrent_policy_reaches_the_learner(tmp_path):
    program = "tests.train.recurrent"
    run_other(program, tmp_path / "apart", 2, layout="decoupled:1+1", total_frames=3000)
    run_other(program, tmp_path / "one", 1, total_frames=3000)
    assert_learned_the_same(saved(tmp_path / "apart"), saved(tmp_path / "one"))


def children(process):
    """The training's processes, by their rank."""
    found = {}
    for pid in children_of(process.pid):
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        ranks = [word for word in words if word.startswith(b"RANK=")]
        if ranks:
            found[int(ranks[0].removeprefix(b"RANK="))] = pid
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_killed_process_ends_the_others_with_a_sentence_and_the_run_goes_on(rank, tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    more = {"lag": 1, "layout": "decoupled:2+1", "num_batches": 4, "checkpoint_every": 500}
    words = options(killed, total_frames=10**9, **more)
    with subprocess.Popen(
        [*processes(3), *words], cwd=ROOT, env=one_thread_each(), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(killed / "log.jsonl", process, 6)
        wait_for_checkpoint(killed, process)
        pids = children(process)
        assert sorted(pids) == [0, 1, 2]
        os.kill(pids[rank], signal.SIGKILL)
        told = process.communicate(timeout=60)[1]
    role = "learning" if rank == 0 else "acting"
    for other in {0, 1, 2} - {rank}:
        end = f"and so does process {other} ("
        line = next(line for line in told.splitlines() if end in line)
        assert line.startswith(f"expected process {rank} ({role}) to go on, but it has ended")
    frames = saved(killed)["steps"] * 8 * 4
    for run, resume in ((killed, True), (whole, False)):
        launched(3, run, total_frames=frames + 500, resume=resume, **more)
    for of in range(3):
        assert_same(saved(killed, of), saved(whole, of))
    assert without_times(killed) == without_times(whole)


def test_decoupled_without_a_lag_says_what_it_needs(tmp_path):
    processes = ProcessGroup(0, 2, torch.device("cpu"), Layout.parse("decoupled:1+1"))
    with pytest.raises(ValueError, match="expected a lag of 1 with the layout decoupled:1"):
        Trainer(A2C, settings(tmp_path), processes)


def test_those_who_learn_get_equally_many_envs(tmp_path):
    with pytest.raises(ValueError, match=r"a multiple of the 3 processes that learn .*, got 8"):
        settings(tmp_path, lag=1, num_envs=8, layout="decoupled:2+3").check(2)


def test_apart_needs_a_gpu(tmp_path):
    with pytest.raises(ValueError, match="can act and learn apart, got device cpu"):
        trained(settings(tmp_path, layout="apart:8", lag=1))
    with pytest.raises(ValueError, match="in the layout or as a setting, got apart:8 and 5"):
        trained(settings(tmp_path, layout="apart:8", lag=1, multiprocessors=5))
