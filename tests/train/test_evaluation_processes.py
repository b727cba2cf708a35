"""An evaluation whose episodes several processes share."""

from __future__ import annotations

import dataclasses
import multiprocessing
import multiprocessing.spawn
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from training_runs import children_of

from cule.train.evaluate import evaluation, policies
from cule.train.evaluate import evaluator as evaluator_module
from cule.train.evaluate.policy import Policy
from tests.support import warm


def wanted(run, **changes):
    """20 episodes are three groups."""
    return evaluation.Args(run, episodes=20, sticky=(0.25,), device="cpu", num_threads=2, **changes)


def test_scores_do_not_depend_on_processes(run, monkeypatch):
    rows, bars = [], []

    class Bar(evaluation.tqdm):
        def close(self):
            bars.append((self.desc, self.n, self.total))
            super().close()

    monkeypatch.setattr(evaluation, "tqdm", Bar)
    for num_processes in (1, 9):
        args = wanted(run, max_frames=200, num_processes=num_processes)
        rows.append(evaluation.evaluate(args)[0])
    # The bar has counted all episodes.
    assert set(bars) == {("breakout, sticky 0.25", 20, 20)}
    for row in rows[1:]:
        for name in ("score", "score_deviation", "score_min", "score_max", "num_threads"):
            assert row[name] == rows[0][name]
    assert rows[0]["score_deviation"] > 0


def test_shares_of_an_evaluation_have_the_scores_of_the_whole():
    """Also where the groups, here three, are not as many in each share."""

    def scores(share):
        evaluator = evaluator_module.Evaluator(
            "breakout", 20, torch.device("cpu"), emulator="cule", sticky=0.25, max_frames=400,
            num_threads=1, share=share,
        )  # fmt: skip
        try:
            return evaluator.scores(Policy(lambda seen: torch.zeros(len(seen), 4)), seed=3)
        finally:
            evaluator.close()

    whole = scores((0, 1))
    np.testing.assert_array_equal(np.concatenate([scores((0, 2)), scores((1, 2))]), whole)
    assert len(whole) == 20 and len(set(whole)) > 1


def test_all_processes_play_the_modified_game(run, capsys):
    def scored(**more):
        (row,) = evaluation.evaluate(wanted(run, max_frames=400, emulator="cule", **more))
        return row, [row[name] for name in ("score", "score_deviation", "score_min", "score_max")]

    row, scores = scored(patches=("left_drift", "gravity"))
    assert row["patches"] == ["left_drift", "gravity"]
    assert capsys.readouterr().out.startswith("breakout, left_drift, gravity, sticky 0.25: ")
    assert scored(patches=("left_drift", "gravity"), num_processes=2)[1] == scores
    plain, others = scored()
    assert plain["patches"] == [] and others != scores
    with pytest.raises(ValueError, match="expected the name of a modification of 'breakout'"):
        scored(patches=("left_drift", "no_such"), num_processes=2)


def test_a_process_that_is_killed_ends_the_evaluation_with_a_sentence(run):
    def kill():
        while len(found := multiprocessing.active_children()) < 2:
            time.sleep(0.05)
        found[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(RuntimeError, match=r"scores from each of 2 processes.*\(exit status -9\)"):
        evaluation.evaluate(wanted(run, max_frames=108_000, num_processes=2))
    killer.join()
    assert multiprocessing.active_children() == []


def test_a_process_that_ends_before_it_has_the_policy_is_a_sentence(run, monkeypatch):
    """A pipe takes 64 KB from who starts a process that does not read, and the weights are more."""
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", b"/bin/false")
    with pytest.raises(RuntimeError, match=r"scores from each of 2 processes.*\(exit status 1\)"):
        evaluation.evaluate(wanted(run, max_frames=80, num_processes=2))


def test_what_goes_wrong_in_a_process_is_raised(run):
    """As a number that ale-py cannot take."""
    _, state = policies.load_policy(run, torch.device("cpu"))
    with pytest.raises(TypeError, match="incompatible"):
        evaluation._from_processes(
            state, wanted(run, noops=2**40), 0.25, 2, {}, lambda first, scores: None
        )


@pytest.mark.parametrize(
    "name, value",
    [
        ("episodes", 20_000_000), ("noops", 2**40), ("max_frames", 2**31), ("num_processes", 10**6),
        ("num_threads", 10**9),
    ],
)  # fmt: skip
def test_settings_of_an_evaluation_have_bounds(run, name, value):
    with pytest.raises(ValueError, match=f"^expected {name} to be from . to .*, got {value}$"):
        evaluation.evaluate(dataclasses.replace(wanted(run), **{name: value}))


def test_envs_are_as_many_as_threads_need():
    """However many the episodes are. Scores are those of envs that have played nothing before."""

    def policy(observations):
        return torch.zeros(len(observations), 4)

    def scores(episodes, num_threads):
        evaluator = evaluator_module.Evaluator(
            "breakout", episodes, torch.device("cpu"), emulator="cule", sticky=0.25,
            max_frames=800, num_threads=num_threads,
        )  # fmt: skip
        try:
            return evaluator.scores(Policy(policy), seed=3), sum(
                envs.num_envs for envs in evaluator.envs
            )
        finally:
            evaluator.close()

    (found, envs), (expected, all_envs) = scores(24, 1), scores(24, 3)
    assert (envs, all_envs) == (8, 24)
    np.testing.assert_array_equal(found, expected)
    assert len(set(found)) > 1


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_evaluation(run, ended_by):
    command = [
        "-m", "cule.train.evaluate", str(run), "--episodes", "20", "--sticky",
        "0.25", "--device", "cpu", "--num-threads", "2", "--num-processes", "2",
    ]  # fmt: skip
    with warm.start(command) as program:
        # The third tracks resources of multiprocessing.
        while len(children := children_of(program.pid)) < 3:
            assert program.poll() is None
            time.sleep(0.05)
        program.send_signal(ended_by)
        assert program.wait(60) != 0
    begun = time.monotonic()
    while any(Path("/proc", str(child)).exists() for child in children):
        assert time.monotonic() < begun + 60, "a process goes on"
        time.sleep(0.1)
