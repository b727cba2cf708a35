"""When operations run: what depends on what waits, and the rest runs side by side."""

from __future__ import annotations

import sys
import time

import pytest
import torch

from cule import train
from cule.errors import Refusal
from cule.train.plan.plan import Plan
from cule.train.plan.program import Program
from cule.train.plan.timeline import summary
from examples.ppo import ppo

TINY = {"device": "cpu", "width": 0.1, "num_threads": 1, "num_envs": 8, "num_steps": 8,
        "minibatch_size": 32, "explain": True}  # fmt: skip


def sleeping(seconds):
    def function(*_):
        time.sleep(seconds)
        return torch.zeros(())

    return function


def test_measured_times_make_the_schedule():
    """Playing takes four steps of 5 ms, learning 30 ms beside it, and sending 10 ms after both."""
    program = Program(period=4)
    t = program.t
    x = program.recurrent("x", (), initial=0.0)
    z = program.recurrent("z", (), over="update", initial=0.0)
    program.operation(
        "learn", sleeping(0.03), role="learn", every=4, reads=[x[t - 1]], writes=[z[program.u]]
    )
    program.operation("play", sleeping(0.005), role="simulate", reads=[x[t]], writes=[x[t + 1]])
    program.operation(
        "send", lambda *_: time.sleep(0.01) or (), role="effect", every=4, start=3,
        reads=[x[t + 1], z[program.u]],
    )  # fmt: skip
    plan = Plan(program)
    plan.run(2)
    bars = {bar.operation.name: bar for bar in plan.measure()}
    assert plan.steps == 12
    assert bars["play"].stream != bars["learn"].stream
    for name, seconds in (("play", 0.02), ("learn", 0.03), ("send", 0.01)):
        assert bars[name].end - bars[name].begin >= seconds
    assert bars["play"].begin == bars["learn"].begin == 0
    assert bars["send"].begin == max(bars["play"].end, bars["learn"].end)
    words = summary(list(bars.values())).split()
    whole, beside = (float(word) for word in words if word[0].isdigit())
    assert whole - beside >= 19.9  # milliseconds that both play and learn


@pytest.mark.parametrize("suffix", ["svg", "png"])
@pytest.mark.parametrize("lag", [0, 1])
def test_a_picture_of_a_training(tmp_path, suffix, lag):
    path = tmp_path / f"plan.{suffix}"
    text = train.explain(ppo.PPO, ppo.Args(**TINY, lag=lag, explain_picture=path))
    assert text.startswith("tensor") and f"The picture is in {path}." in text
    assert "ms one after the other" in text
    content = path.read_bytes()
    assert len(content) > 5000
    if suffix == "svg":
        assert b"milliseconds of an iteration" in content or content.count(b"<path") > 20


def test_the_plan_is_the_same_with_a_picture(tmp_path):
    plain = train.explain(ppo.PPO, ppo.Args(**TINY)).partition("Planned in")[0]
    drawn = train.explain(ppo.PPO, ppo.Args(**TINY, explain_picture=tmp_path / "x.png"))
    assert drawn.partition("Planned in")[0] == plain


def test_pictures_that_cannot_be_are_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "plan.txt"
    with pytest.raises(ValueError, match="--explain-picture to name a file that ends in") as raised:
        train.explain(ppo.PPO, ppo.Args(**TINY, explain_picture=path))
    assert isinstance(raised.value, Refusal)
    words = ["ppo", "--device", "cpu", "--explain-picture", str(tmp_path / "plan.png")]
    monkeypatch.setattr(sys, "argv", words)
    assert ppo.main() != 0
    assert "expected explain_picture together with explain" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
