"""Small training runs: resumed, interrupted, evaluated, plotted, and with wrong settings."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time

import numpy as np
import pytest
import torch
from training_runs import assert_same, saved, settings, trained, without_times

from cule.disk.claims import Claim
from cule.train.checkpoints.writer import Writer
from cule.train.evaluate import evaluation
from cule.train.evaluate.evaluator import Evaluator
from cule.train.logs import pictures
from cule.train.logs.log import read_log
from cule.train.lowering.learner import Learner
from cule.train.run import stopper
from cule.train.run.run import Run


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lag": 1, "optimizer": "rmsprop", "sticky": 0.25, "updates_at_once": 3},
        {"optimizer": "muon", "updates_at_once": 2},
        {"num_batches": 1, "steps_per_update": 4},
    ],
    ids=["V-trace", "lag", "Muon", "A2C"],
)
def test_train_resumed_is_as_if_never_stopped(tmp_path, changes):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    trained(settings(whole, total_frames=4000, **changes))
    # Stops between two lines of the log.
    trained(settings(parts, total_frames=2300, **changes))
    trained(settings(parts, total_frames=4000, resume=True, **changes))
    assert saved(whole)["updates"] > 30
    assert_same(saved(parts), saved(whole))
    assert without_times(parts) == without_times(whole)
    assert sum(line["episodes"] for line in without_times(whole)) > 8


def test_train_another_seed_is_another_run(tmp_path):
    """Without this, the test above would prove nothing."""
    for seed in (0, 1):
        trained(settings(tmp_path / str(seed), total_frames=1000, seed=seed))
    weights = [saved(tmp_path / str(seed))["networks"]["net"]["heads.weight"] for seed in (0, 1)]
    assert not torch.equal(*weights)


def test_train_that_reached_its_score_has_when_resumed(tmp_path):
    asked = {
        "game": "pong", "max_episode_frames": 108_000, "eval_every": 400, "eval_episodes": 1,
        "eval_max_frames": 80,
        "stop_at_score": -30.0, "total_frames": 10_000,
    }  # fmt: skip
    first = trained(settings(tmp_path, **asked))
    again = trained(settings(tmp_path, resume=True, **asked))
    kept = ("frames", "updates", "score", "frames_to_score", "seconds_to_score")
    assert first["frames_to_score"] == first["frames"] < 1000
    assert [again[name] for name in kept] == [first[name] for name in kept]
    # To another score it goes on.
    more = trained(
        settings(tmp_path, resume=True, **asked | {"stop_at_score": 30.0, "total_frames": 2000})
    )
    assert more["frames"] >= 2000 and more["frames_to_score"] is None


def test_train_refuses_a_folder_with_checkpoints_unless_told_what_to_do_with_them(tmp_path):
    trained(settings(tmp_path, total_frames=1000))
    with pytest.raises(
        ValueError, match=r"expected a folder without checkpoints, got .*, which has another run's"
    ):
        trained(settings(tmp_path, total_frames=500))
    assert saved(tmp_path)["steps"] * 8 * 4 >= 1000
    trained(settings(tmp_path, total_frames=500, overwrite=True))
    assert 500 <= saved(tmp_path)["steps"] * 8 * 4 < 1000
    assert read_log(tmp_path / "log.jsonl")[-1]["frames"] < 1000


@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}])
def test_train_refuses_a_folder_in_which_another_one_trains(how, tmp_path):
    """Nothing of the other one's is touched, and the next one may have the folder."""
    held = tmp_path / "log.jsonl"
    held.write_text("the other one's\n")
    with (
        Claim(tmp_path / "run.lock", "a folder of a training"),
        pytest.raises(ValueError, match="expected a folder of a training that nothing else writes"),
    ):
        trained(settings(tmp_path, total_frames=500, **how))
    assert held.read_text() == "the other one's\n" and len(list(tmp_path.iterdir())) == 1
    trained(settings(tmp_path, total_frames=300))
    assert read_log(held) and not (tmp_path / "run.lock").exists()


def test_train_stops_after_max_seconds_wherever_the_log_is_written(tmp_path):
    row = trained(settings(tmp_path, total_frames=10**9, max_seconds=0.5, log_every=10**6))
    assert 0.5 <= row["seconds"] < 100 and 0 < row["frames"] < 10**9


def test_schedules_follow_the_seconds_of_a_training_that_ends_by_them(tmp_path, monkeypatch):
    """The rate is at its end with the last seconds, and goes on falling after a resume."""
    rates, seconds = [], itertools.count(1)
    monkeypatch.setattr(Run, "seconds_now", property(lambda run: float(next(seconds))))
    set_rate = Learner.set_learning_rate
    monkeypatch.setattr(
        Learner, "set_learning_rate",
        lambda self, rate: rates.append(rate) or set_rate(self, rate),
    )  # fmt: skip
    by_seconds = {"schedule_by": "seconds", "anneal_lr": True, "learning_rate": 0.01, "lag": 1}
    long = {**by_seconds, "total_frames": 10**9, "log_every": 10**6}
    row = trained(settings(tmp_path, max_seconds=40.0, **long))
    assert row["schedule_by"] == "seconds" and row["frames"] < 10**6 and len(rates) > 10
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.0095 and 0 < rates[-1] < 0.001
    steps = -np.diff(rates)
    np.testing.assert_allclose(steps, np.median(steps), rtol=0.01)
    with pytest.raises(ValueError, match="expected max_seconds as in the checkpoint"):
        trained(settings(tmp_path, max_seconds=50.0, resume=True, **long))


def test_seconds_for_schedules_have_to_be_known(tmp_path):
    with pytest.raises(ValueError, match="expected max_seconds with schedule_by=seconds, got None"):
        settings(tmp_path, schedule_by="seconds").check(1)


def test_checkpoints_of_different_steps_are_different_sets(tmp_path, monkeypatch):
    """This holds even if nothing was learned in between, as before the last one here: files that
    are replaced one by one could be of two steps."""
    steps = []
    begin = Writer.begin
    monkeypatch.setattr(
        Writer, "begin",
        lambda self, at, *rest: steps.append(at) or begin(self, at, *rest),
    )  # fmt: skip
    trained(settings(tmp_path, total_frames=1000, checkpoint_every=200, warmup_steps=28))
    assert len(steps) == len(set(steps)) == 5


@pytest.mark.parametrize("eval_every", [500, 1000, 0])
def test_evaluation_is_cut_off_by_a_signal(tmp_path, monkeypatch, eval_every):
    """It then counts as not begun: the checkpoint is written, and the next run evaluates, at its
    end too."""
    asked = {
        "total_frames": 1000,
        "eval_every": eval_every,
        "eval_episodes": 1,
        "eval_max_frames": 400,
    }
    evaluating = Evaluator.scores

    def interrupted(self, policy, seed, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return evaluating(self, policy, seed, **options)

    monkeypatch.setattr(Evaluator, "scores", interrupted)
    row = trained(settings(tmp_path, **asked))
    assert row["score"] is None and (row["frames"] < 1000) == (eval_every == 500)
    assert [line["kind"] for line in read_log(tmp_path / "log.jsonl")].count("evaluation") == 0
    monkeypatch.undo()
    assert trained(settings(tmp_path, resume=True, **asked))["score"] is not None


def test_train_stops_at_the_score_and_writes_a_row(tmp_path):
    results = tmp_path / "results.jsonl"
    run = tmp_path / "run"
    trained(settings(
        run, game="pong", max_episode_frames=108_000, total_frames=50_000, eval_every=1000,
        eval_episodes=2,
        eval_max_frames=200, stop_at_score=-3.0, results=results, logger="tensorboard", plot=True,
    ))  # fmt: skip
    row = json.loads(results.read_text())
    assert row["frames_to_score"] == row["frames"] < 2000
    assert 0 < row["seconds_to_score"] <= row["seconds"]
    assert row["score"] >= -3 and row["evaluation_seconds"] > 0
    assert 0 < row["cpu_seconds"] <= time.process_time()
    assert (row["mode"], row["algorithm"], row["seed"], row["game"]) == (
        "training",
        "A2C+V-trace",
        0,
        "pong",
    )
    assert (run / "scores.png").stat().st_size > 5000
    assert list((run / "tensorboard").glob("events*"))

    rows = evaluation.evaluate(
        evaluation.Args(
            run, episodes=3, sticky=(0.0, 0.25), max_frames=400, device="cpu", num_threads=1
        )
    )
    assert [row["sticky"] for row in rows] == [0.0, 0.25]
    assert [
        json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()
    ] == rows
    for row in rows:
        assert -7 < row["score"] < 1 and row["score_min"] <= row["score"] <= row["score_max"]


@pytest.mark.parametrize(
    "eval_from, eval_after, evaluations",
    [(None, 0, 4), (1000.0, 0, 1), (-100.0, 0, 3), (None, 2500, 2), (None, 10_000, 1)],
)
def test_train_evaluates_where_training_does_well_enough(
    tmp_path, eval_from, eval_after, evaluations
):
    """The first episodes end after frame 1,000. Before that there is no score."""
    trained(settings(
        tmp_path, total_frames=4000, eval_every=1000, eval_episodes=1, eval_max_frames=40,
        eval_from=eval_from, eval_after=eval_after, log_every=1,
    ))  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert sum(line["kind"] == "evaluation" for line in lines) == evaluations


def test_train_on_ale_py_counts_the_same_and_can_be_evaluated(tmp_path):
    row = trained(
        settings(
            tmp_path,
            emulator="ale-py",
            num_envs=4,
            num_batches=1,
            steps_per_update=4,
            total_frames=500,
        )
    )
    assert (row["system"], row["algorithm"]) == ("ale-py", "A2C")
    assert row["updates"] == row["frames"] // (4 * 4 * 4) > 0
    wanted = evaluation.Args(
        tmp_path, episodes=2, sticky=(0.0,), max_frames=100, device="cpu", num_threads=1
    )
    (tried,) = evaluation.evaluate(wanted)
    assert tried["frames"] == row["frames"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"multiprocessors": -1}, "multiprocessors to be at least 0, got -1"),
        (
            {"num_envs": 9},
            r"num_envs to be a multiple of num_batches times the number of processes \(2 x 1\), "
            r"got 9",
        ),
        ({"num_steps": 0}, "num_steps to be at least 1, got 0"),
        ({"steps_per_update": 9}, r"steps_per_update to be at most num_steps \(4\), as .*, got 9"),
        ({"num_threads": -1}, "num_threads to be from 0 to 1024, got -1"),
        ({"seed": 2**40}, "seed to be from 0 to 4294967295, got 1099511627776"),
        ({"gamma": 3.0}, "gamma to be from 0 to 1, got 3.0"),
        ({"width": 0.0}, "width to be above 0, got 0.0"),
        ({"eval_episodes": -1}, "eval_episodes to be at least 0, got -1"),
        ({"resume": True, "overwrite": True}, "expected resume or overwrite, got both"),
        ({"stop_at_score": 1.0}, "eval_every and eval_episodes above 0 with stop_at_score"),
        ({"emulator": "ale-py", "resume": True}, "emulator cule with resume"),
        ({"emulator": "stella"}, "emulator to be 'cule' or 'ale-py', got 'stella'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_train_refuses_settings_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        trained(settings(tmp_path, **changes))


def test_train_refuses_to_resume_another_run(tmp_path):
    trained(settings(tmp_path, total_frames=500))
    with pytest.raises(ValueError, match=r"expected num_steps as in the checkpoint \(4\), got 6"):
        trained(settings(tmp_path, total_frames=1000, resume=True, num_steps=6))


def test_plot_refuses_nothing_and_a_folder_without_a_log(tmp_path):
    with pytest.raises(
        ValueError, match=r"expected run folders, as training writes them, got none"
    ):
        pictures.plot([], tmp_path / "scores.png")
    with pytest.raises(ValueError, match=r"expected run folders with a log\.jsonl"):
        pictures.plot([tmp_path], tmp_path / "scores.png")


def test_second_signal_after_a_while_ends_what_does_not_look(monkeypatch):
    """An iteration may take hours; a launcher may repeat a signal of the terminal at once."""
    now = [100.0]
    monkeypatch.setattr(stopper.time, "monotonic", lambda: now[0])
    with stopper.Stopper() as stopping:
        assert not stopping.wanted
        for kind in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(kind)
            assert stopping.wanted
        now[0] += stopper.PATIENCE_SECONDS + 1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
