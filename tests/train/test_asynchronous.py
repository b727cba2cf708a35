"""Actors that play on while others learn: how stale they may be, and what then is learned."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest
import torch
from hashed import Hashed
from training_runs import assert_same, one_thread_each, options, saved, settings, without_times

from cule import train
from cule.train.distributed.asynchrony import Staleness
from cule.train.distributed.channels import Newest
from cule.train.distributed.decoupled import tensors_of
from cule.train.logs.log import read_log
from cule.train.lowering import acting
from examples.reinforce.reinforce import Reinforce
from tests.support import warm

STALEST = "tests.train.stalest"
LAYOUT = {"layout": "decoupled:1+1", "lag": 1}


def started(count, run, program=STALEST, what="", **changes):
    """Trains in some processes; returns what each has said, and its exit status."""
    words = ["-m", program, *options(run, **LAYOUT | changes)]
    env = one_thread_each() | {"STALEST": what}
    return [(done.returncode, done.stderr) for done in warm.run_ranks(count, words, env=env)]


def launched(count, run, **changes):
    for status, said in started(count, run, **changes):
        assert status == 0, said


def delayed(iterations, copy_weights):
    """Hands over the weights of so many iterations before."""
    kept = deque()

    def copy(source, target):
        kept.append([tensor.clone() for tensor in tensors_of(source)])
        if len(kept) > iterations:
            torch._foreach_copy_(tensors_of(target), kept.popleft())

    return copy


@pytest.mark.parametrize(
    ("what", "layout", "count"),
    [
        ("", "decoupled:1+1", 2),
        ("messages", "decoupled:1+1", 2),
        pytest.param("", "2act@0+learn@0", 3, marks=pytest.mark.slow),
        pytest.param("messages", "decoupled:2+1", 3, marks=pytest.mark.slow),
    ],
)
def test_stalest_actors_are_one_process_that_hands_over_later(
    what, layout, count, tmp_path, monkeypatch
):
    apart, one = tmp_path / "apart", tmp_path / "one"
    more = {"total_frames": 2000, "num_batches": 4 if count > 2 else 2}
    launched(count, apart, what=what, layout=layout, max_staleness=3, **more)
    monkeypatch.setattr(acting, "copy_weights", delayed(2, acting.copy_weights))
    train.train(Hashed, settings(one, lag=1, **more))
    assert saved(apart)["updates"] == saved(one)["updates"] > 20
    assert_same(saved(apart)["networks"], saved(one)["networks"])
    lines = [line for line in read_log(apart / "log.jsonl") if line["updates"] > 10]
    assert {line["staleness"] for line in lines} == {3} == {line["staleness_max"] for line in lines}
    assert all(0 < line["actors_waited"] < 1 for line in lines)


@pytest.mark.slow
def test_limit_of_an_iteration_is_the_layout_without_a_limit(tmp_path):
    for run, more in (("limit", {"max_staleness": 3}), ("none", {})):
        launched(
            2, tmp_path / run, program="examples.a2c_vtrace.train", updates_at_once=2,
            total_frames=1200, **more,
        )  # fmt: skip
    for rank in range(2):
        assert_same(saved(tmp_path / "limit", rank), saved(tmp_path / "none", rank))
    assert without_times(tmp_path / "limit") == without_times(tmp_path / "none")
    last = without_times(tmp_path / "limit")[-1]
    assert last["staleness"] == last["staleness_max"] == 2


@pytest.mark.slow
def test_resumed_training_has_lost_no_step_and_learned_none_twice(tmp_path):
    more = {"max_staleness": 3, "checkpoint_every": 800, "resume": True}
    for run, frames in (("parts", 800), ("parts", 1600), ("whole", 1600)):
        launched(2, tmp_path / run, total_frames=frames, **more)
    for rank in range(2):
        assert_same(saved(tmp_path / "parts", rank), saved(tmp_path / "whole", rank))
    actor, learner = (saved(tmp_path / "whole", rank)["plan"] for rank in (1, 0))
    last = saved(tmp_path / "whole")["steps"] - 1
    played, learned = (each["recurrents"]["far"]["actions"]["values"] for each in (actor, learner))
    assert torch.equal(played[last % len(played)], learned[last % len(learned)])
    assert_same(actor["objects"]["net (acting)"], saved(tmp_path / "whole")["networks"]["net"])


@pytest.mark.parametrize(
    ("what", "rank"),
    [
        ("kill", 1),
        pytest.param("kill", 0, marks=pytest.mark.slow),
        pytest.param("raise", 0, marks=pytest.mark.slow),
        pytest.param("raise", 1, marks=pytest.mark.slow),
    ],
)
def test_process_that_ends_ends_the_others_with_a_sentence(what, rank, tmp_path):
    said = started(
        2, tmp_path, what=f"{what} {rank}", max_staleness=3, total_frames=10**9, timeout=20
    )
    status, told = said[1 - rank]
    assert status == 2 and told.startswith("expected ") and "Traceback" not in told
    assert f"process {rank} (" in told and told.count("\n") == 1
    if what == "raise":
        assert "KeyError: 'a slip'" in said[rank][1]


class Box:
    """A channel with messages that a test lets come."""

    def __init__(self):
        self.expected = self.sent = self.read = 0

    def expect(self):
        self.expected += 1

    def ready(self):
        assert self.read < self.expected
        return self.read < self.sent

    def receive(self):
        assert self.read < self.sent, "it would wait for ever"
        self.read += 1
        return self.read


def test_newest_networks_are_taken_together_and_waited_for_only_at_the_limit():
    boxes = {"policy": Box(), "value": Box()}
    newest = Newest(boxes, 3)
    assert newest.take() == {} == newest.take()
    boxes["policy"].sent = 2  # the other one is still on its way
    with pytest.raises(AssertionError, match="for ever"):
        newest.take()
    boxes = {"policy": Box(), "value": Box()}
    newest = Newest(boxes, 3)
    assert newest.take() == {} == newest.take()
    boxes["policy"].sent, boxes["value"].sent = 3, 2
    assert newest.take() == {"policy": 2, "value": 2}
    boxes["policy"].sent = boxes["value"].sent = 4
    assert newest.take() == {"policy": 4, "value": 4}
    assert newest.asked == newest.taken == 4
    assert newest.take() == {}
    boxes["policy"].sent = boxes["value"].sent = 5
    assert newest.settle() == {"policy": 5, "value": 5} and newest.settle() == {}


def test_limit_that_cannot_be_is_refused(tmp_path):
    lone, learning = Reinforce.__new__(Reinforce), train.Learning(steps=4, lag=1)
    with pytest.raises(ValueError, match=r"expected an algorithm that corrects .* got Reinforce,"):
        Staleness(lone, learning, 2, 8)
    assert Staleness(lone, learning, 1, 8).ahead == 1
    with pytest.raises(ValueError, match=r"at least the 2 updates of an iteration, .* got 1"):
        Staleness(lone, replace(learning, times=2), 1, 8)
    sampled = train.Learning(every=4, times=2, lag=1, replay=train.Replay(400, 16))
    assert Staleness(lone, sampled, 7, 8).ahead == 3


def test_limit_without_actors_is_refused(tmp_path):
    with pytest.raises(ValueError, match="with a layout in which some processes only act, got tog"):
        settings(tmp_path, max_staleness=3).check(1)
    with pytest.raises(ValueError, match="expected max_staleness to be at least 1, got 0"):
        settings(tmp_path, max_staleness=0, **LAYOUT).check(1)
