"""Several processes search for a layout together, and train with what they have found."""

from __future__ import annotations

import json

import pytest
import torch
from training_runs import ROOT, assert_same, one_thread_each, options, saved

from cule import train
from cule.train.distributed import placement
from cule.train.distributed.process_group import ProcessGroup
from cule.train.tune.space import _layouts, read_space
from examples.a2c_vtrace.train import Args
from tests.support import warm

TRAIN = ["-m", "examples.a2c_vtrace.train"]
# As `python -m cule.train.tune`, with short measurements.
TUNE = ["-c", """
import sys
from cule.train.tune import __main__, tuning
tuning.SECONDS = 0.05
sys.exit(__main__.main())
""", "examples.a2c_vtrace.train"]  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """Runs a program in two processes, with results kept in the test's folder; returns what the
    first one prints."""

    def run(*words):
        environment = one_thread_each() | {"CULE_CACHE_DIR": str(tmp_path / "cache")}
        done = warm.run_ranks(2, words, env=environment)
        assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
        return done[0].stdout

    return run


def test_layouts_are_tried_with_other_settings(run, tmp_path):
    layouts = "layout=together,staggered:2,decoupled:1+1,apart:8"
    printed = run(*TUNE, *options(tmp_path), "--search", layouts, "lag=0,1", "num_envs=8")
    table, told = printed.split("8 of 8 combinations were tried")
    lines = {tuple(line.split()[:2]): line for line in table.splitlines()[1:]}
    failed = {key: line for key, line in lines.items() if " failed " in line}
    assert failed.keys() == {
        ("apart:8", "0"), ("apart:8", "1"), ("decoupled:1+1", "0"),
    }  # fmt: skip
    assert "expected a lag of 1 with the layout decoupled:1+1" in failed["decoupled:1+1", "0"]
    assert told.splitlines()[-1].startswith("torchrun --nproc-per-node 2 -m examples.a2c_vtrace")


def test_a_layout_that_was_found_is_used_and_kept_in_resumed_runs(run, tmp_path):
    def trained(folder, **more):
        return json.loads(run(*TRAIN, *options(tmp_path / folder, json=True, **more)))

    run(*TUNE, *options(tmp_path), "--search", "layout=decoupled:1+1", "lag=1")
    row = trained("parts", total_frames=1_000, tuned=True)
    assert (row["layout"], row["lag"]) == ("decoupled:1+1", 1)
    # What is found meanwhile does not change the run.
    run(*TUNE, *options(tmp_path), "--search", "layout=together", "lag=0")
    row = trained("parts", total_frames=2_000, tuned=True, resume=True)
    assert (row["layout"], row["lag"]) == ("decoupled:1+1", 1)
    trained("whole", total_frames=2_000, layout="decoupled:1+1", lag=1)
    for rank in range(2):
        assert_same(saved(tmp_path / "parts", rank), saved(tmp_path / "whole", rank))


def test_a_world_takes_another_layout():
    processes = ProcessGroup.join("cpu")
    assert processes.with_layout(processes.layout) is processes
    other = processes.with_layout(train.Layout.apart(8))
    assert str(other.layout) == "apart:8" and other.device == processes.device
    with pytest.raises(ValueError, match=r"expected 2 processes with the layout decoupled:1\+1"):
        processes.with_layout(train.Layout.decoupled([0], [1]))


def test_a_process_computes_on_the_gpu_of_its_layout_after_it_had_another(monkeypatch):
    # Where the process computes now, as torch.cuda.set_device says; rank 0 learns on the last GPU.
    now = []
    monkeypatch.setattr(placement, "find_device", torch.device)
    monkeypatch.setattr(
        placement, "choose_device", lambda name: now.append(name) or torch.device(name)
    )
    monkeypatch.setenv("LOCAL_RANK", "0")
    processes = ProcessGroup(0, 2, torch.device("cuda:0"))
    assert processes.with_layout(train.Layout.decoupled([0], [1])).device == torch.device("cuda:1")
    assert processes.with_layout(processes.layout) is processes
    assert now == ["cuda:1", "cuda:0"]


def test_candidates_are_layouts_of_as_many_gpus(monkeypatch):
    monkeypatch.setattr("cule.train.distributed.sm_partition.is_there", lambda: True)
    assert _layouts(Args(), 1, (32, 64)) == ("together", "apart:32", "apart:64")
    assert _layouts(Args(layout="apart:40"), 4, (32,)) == (
        "apart:40", "together", "apart:32", "decoupled:3+1", "decoupled:2+2", "decoupled:1+3",
    )  # fmt: skip
    assert _layouts(Args(layout="staggered:2"), 4, (32,)) == ("staggered:2",)
    assert read_space(["layout=together,decoupled:[0,2]+[1],decoupled:[0]+[1]"], Args) == {
        "layout": ["together", "decoupled:[0,2]+[1]", "decoupled:1+1"],
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"expected layout to be together, .*, got 'side'"):
        read_space(["layout=side"], Args)


JOINS = """
import time
from cule.train.distributed import process_group
from cule.train.distributed.process_group import ProcessGroup
for number in range(20):
    processes = ProcessGroup.join("cpu")
    time.sleep(0.01 * processes.rank * (number % 3))
    assert processes.max(processes.rank) == 1
    processes.leave()
"""


def test_processes_that_leave_can_join_again(run, tmp_path):
    script = tmp_path / "joins.py"
    script.write_text(JOINS)
    run(script)


FAILS = """
import os
from training_runs import SMALL
from cule import train
from cule.errors import InvalidValue
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C, Args

class Fails(A2C):
    @classmethod
    def environment(cls, args, num_envs, device):
        if num_envs == 16:
            raise InvalidValue("expected fewer envs")

def plan(self, *args, make_plan=Trainer._make_plan):
    if self.args.num_envs == 24 and self.processes.learns:
        raise InvalidValue("expected less memory")
    return make_plan(self, *args)

Trainer._make_plan = plan
args = Args(**SMALL, layout="decoupled:1+1", lag=1)
found = train.tune(Fails, args, {"num_envs": [8, 16, 24, 32]}, again=True)
problems = {trial.settings["num_envs"]: trial.problem for trial in found.trials}
other = "expected all processes to go on, but another one failed; its message says why"
acts, here = os.environ["RANK"] == "1", os.path.basename(__file__)
assert problems == {
    8: "", 16: f"expected fewer envs ({here}:13, in environment)" if acts else other,
    24: other if acts else f"expected less memory ({here}:17, in plan)", 32: "",
}, problems
"""


def test_what_fails_in_one_process_alone_fails_in_all(run, tmp_path, monkeypatch):
    """Envs that only actors have, or memory that only learners need."""
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests' / 'train'}")
    run(script)
