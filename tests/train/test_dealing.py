"""Another number of processes goes on with a training: what goes on, and what begins anew."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from training_runs import assert_same, one_thread_each, options, saved, settings, trained

from cule.train.checkpoints import checkpoint
from cule.train.dealing import Dealt
from cule.train.distributed.process_group import ProcessGroup
from cule.train.logs.log import read_log
from cule.train.run.opening import Opening
from cule.train.settings import as_saved
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C
from tests.support import warm

SEVERAL = {"num_envs": 8, "num_batches": 2, "lag": 1}


def launched(count, run, **changes):
    """Trains in some processes; returns what the first has printed."""
    words = ["-m", "examples.a2c_vtrace.train", *options(run, **SEVERAL | changes)]
    done = warm.run_ranks(count, words, env=one_thread_each())
    assert [one.returncode for one in done] == [0] * count, [one.stderr for one in done]
    return done[0]


def test_one_process_two_and_an_actor_and_a_learner_go_on_one_after_the_other(tmp_path):
    trained(settings(tmp_path, total_frames=800, **SEVERAL))
    one = saved(tmp_path)
    told = launched(2, tmp_path, total_frames=1600, resume=True, layout="decoupled:1+1").stderr
    assert "2 processes go on where 1 process was: networks, optimizers and counts go on" in told
    two = saved(tmp_path)
    assert two["steps"] > one["steps"] and two["updates"] > one["updates"]
    trained(settings(tmp_path, total_frames=2400, resume=True, **SEVERAL))
    last = saved(tmp_path)
    times = [[one["steps"] * 32, 1, 2], [two["steps"] * 32, 2, 1]]
    assert last["dealt"] == {"steps": two["steps"], "updates": two["updates"], "times": times}
    rows = [json.loads(line) for line in (tmp_path / "result.jsonl").read_text().splitlines()]
    assert [row.get("dealt") for row in rows] == [None, times[:1], times]
    # With as many processes it goes on exactly, also after that.
    trained(settings(tmp_path, total_frames=3200, resume=True, **SEVERAL))
    parts = saved(tmp_path)
    assert parts["dealt"] == last["dealt"]


def test_what_is_taken_over_and_what_begins_anew(tmp_path):
    args = settings(tmp_path, **SEVERAL).on(torch.device("cpu"))
    alone = ProcessGroup(0, 1, torch.device("cpu"))
    first = Trainer(A2C, args, alone)
    for _ in range(12):
        first.iterate()
    state = first.state_dict()
    run = {"frames": first.frames, "trainer": state}
    dealt = Dealt().again(run, 2, 1)
    other = Trainer(A2C, args, alone, dealt=dealt)
    other.take_over(state)
    after = other.state_dict()
    assert_same(after["networks"], state["networks"])
    learners = [one["plan"]["objects"]["learner"] for one in (after, state)]
    assert_same(learners[0]["weights"], learners[1]["weights"])
    assert_same(learners[0]["optimizer"], learners[1]["optimizer"])
    assert (other.steps, other.frames, other.updates) == (
        first.steps, first.frames, first.updates,
    )  # fmt: skip
    rams = [one["plan"]["objects"]["envs"]["envs"]["tensors"]["ram"] for one in (after, state)]
    assert not torch.equal(*rams)
    assert_same(dict(after["plan"]["objects"]["net (acting)"]), dict(state["networks"]["net"]))
    shown = []
    other.iterate(shown.append)
    assert other.steps > first.steps and other.plan.steps == other.period
    assert shown[0] > first.frames and shown[-1] == other.frames
    # Neither the envs' nor learning's random numbers are those of the training's begin, and
    # acting's go on with the training's steps.
    begins = [Trainer(A2C, args, alone, dealt=one).state_dict()["plan"] for one in (None, dealt)]
    assert not torch.equal(*(one["random"] for one in begins))
    assert not torch.equal(*(one["objects"]["envs"]["envs"]["tensors"]["ram"] for one in begins))
    assert other.collector.first_step == first.steps
    assert Dealt.of(after) == dealt and Dealt.of(state) == Dealt()


def test_log_goes_on_with_what_came_after_the_deal(tmp_path):
    """Of what was played before it since the last line nobody has the sums any more."""
    trained(settings(tmp_path, total_frames=800, **SEVERAL | {"log_every": 1000}))
    state = checkpoint.newest(tmp_path, torch.device("cpu"))
    launched(2, tmp_path, total_frames=3200, resume=True)
    lines = [line for line in read_log(tmp_path / "log.jsonl") if line["kind"] == "training"]
    (line,) = [line for line in lines if line["frames"] > state["frames"]][:1]
    seconds = line["seconds"] - state["seconds"]
    assert line["pps"] * seconds == pytest.approx((line["frames"] - state["frames"]) / 4, rel=1e-3)


def test_one_learner_goes_on_where_several_averaged(tmp_path):
    launched(2, tmp_path, total_frames=800, reduction="multi-process")
    trained(settings(tmp_path, total_frames=1600, resume=True, **SEVERAL))
    assert len(saved(tmp_path)["dealt"]["times"]) == 1


def test_older_checkpoints_averaged_as_suited_the_layout(tmp_path):
    given = settings(tmp_path, reduction="hierarchical").on(torch.device("cpu"))
    before = as_saved(settings(tmp_path).on(torch.device("cpu")))
    del before["reduction"]
    opening = SimpleNamespace(
        state={"args": before, "trainer": {"plan": {}}}, args=given, deals=False
    )
    with pytest.raises(
        ValueError, match=r"expected reduction as in the checkpoint .None., got hier"
    ):
        Opening.changed_settings(opening)
    opening.deals = True
    assert Opening.changed_settings(opening) == {"reduction"}


def test_other_settings_stay_those_of_the_checkpoint(tmp_path):
    launched(2, tmp_path, total_frames=800)
    with pytest.raises(ValueError, match="expected num_envs as in the checkpoint"):
        trained(settings(tmp_path, total_frames=1600, resume=True, **SEVERAL | {"num_envs": 16}))


def test_overwriting_what_torchrun_has_started_again_is_refused(tmp_path, monkeypatch):
    trained(settings(tmp_path, total_frames=320))
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    with pytest.raises(ValueError, match="expected --resume where torchrun has started a training"):
        trained(settings(tmp_path, total_frames=640, overwrite=True))
    assert saved(tmp_path)["steps"] == 10
