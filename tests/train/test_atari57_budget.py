"""The suite of Atari-57 with a budget of a GPU's hours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import tyro

from cule.train.run.run import Run
from cule.train.schedules import Schedules
from examples.atari57 import agent, run, settings
from examples.atari57.settings import CANDIDATES, settings_of

SMALL = {
    "algorithm": "pqn", "device": "cpu", "num_threads": 1, "episodes": 2, "max_frames": 400,
    "card": False,
}  # fmt: skip


def agents_of(**changes):
    jobs = run.jobs_of(run.Args(**changes))
    return [tyro.cli(agent.Args, args=job.command[2:]) for job in jobs]


def test_trainings_share_the_hours_of_a_gpu():
    agents = agents_of(gpu_hours=1.0, seeds=(0, 1))
    assert len(agents) == 2 * 57 and sum(one.max_seconds for one in agents) == pytest.approx(3600)
    assert {one.schedule_by for one in agents} == {"seconds"}
    assert {one.total_frames for one in agents} == {settings.ENDLESS}
    # Two at a time on a GPU have half of its seconds each, and one on two GPUs twice as many.
    games = {"games": ("pong", "qbert"), "gpu_hours": 0.5}
    for placing, seconds in (({}, 900), ({"per_gpu": 2}, 1800), ({"gpus_per_training": 2}, 450)):
        assert {one.max_seconds for one in agents_of(**games, **placing)} == {seconds}
    (by_frames,) = agents_of(games=("pong",))
    assert (by_frames.max_seconds, by_frames.schedule_by) == (None, "frames")
    assert by_frames.total_frames == 200_000_000 and not by_frames.greedy
    assert agents_of(games=("pong",), greedy=True)[0].greedy


def test_a_budget_has_the_setting_for_its_seconds(monkeypatch):
    monkeypatch.setattr(settings, "BUDGETS", {0.0: "ppo-8192-short", 100.0: "pqn-256"})
    monkeypatch.setattr(settings, "find_device", torch.device)
    for seconds, name in ((5.0, "ppo-8192-short"), (100.0, "pqn-256"), (3600.0, "pqn-256")):
        assert settings_of(None, "cuda", None, seconds) == settings_of(None, "cpu", name)
    usual = settings_of(None, "cuda", None, None)
    assert usual == settings_of("a2c_vtrace", "cuda") == settings_of("a2c_vtrace", "cuda", None, 9)
    assert settings_of(None, "cpu", None, 5.0) == ("a2c_vtrace", {})


def test_budgets_name_candidates():
    assert min(settings.BUDGETS) == 0 and set(settings.BUDGETS.values()) <= set(CANDIDATES)


def test_agent_of_a_budget_ends_with_its_seconds_and_its_schedules(tmp_path, monkeypatch):
    """What changes in the course of the training is at its end with the last seconds."""
    frames, seconds = [], itertools.count(1)
    monkeypatch.setattr(Schedules, "set", lambda self, now: frames.append(now))
    monkeypatch.setattr(Run, "seconds_now", property(lambda run: float(next(seconds))))
    args = agent.Args(
        game="qbert", folder=tmp_path, max_seconds=12.0, schedule_by="seconds", progress=False,
        video=False, total_frames=settings.ENDLESS, **SMALL,
    )  # fmt: skip
    row = agent.make(args)
    assert 12 <= row["seconds"] < 20 and row["schedule_by"] == "seconds"
    parts = np.array(frames) / settings.ENDLESS
    assert parts[0] < 0.1 and parts[-1] > 0.8 and (np.diff(parts) >= 0).all()
