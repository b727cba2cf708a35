"""An evaluation that was stopped goes on with the groups of episodes that had not ended."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cule.train.evaluate import evaluation
from cule.train.evaluate.ended_groups import EndedGroups
from cule.train.evaluate.evaluator import Evaluator

SCORES = ("score", "score_deviation", "score_min", "score_max")


def evaluated(run, *, max_frames=400, **changes):
    """20 episodes are three groups."""
    args = evaluation.Args(
        run, episodes=20, sticky=(0.25,), device="cpu", num_threads=1, max_frames=max_frames,
        progress=False, **changes,
    )  # fmt: skip
    (row,) = evaluation.evaluate(args)
    return [row[name] for name in SCORES]


def stopped_after(monkeypatch, groups):
    """An evaluation ends as by Ctrl-C once so many groups have ended."""
    add, ended = EndedGroups.add, []

    def add_and_stop(self, first, scores):
        add(self, first, scores)
        ended.append(first)
        if len(ended) == groups:
            raise KeyboardInterrupt

    monkeypatch.setattr(EndedGroups, "add", add_and_stop)


def kept_in(run):
    return list(run.glob("evaluation-*.jsonl"))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_stopped_evaluation_goes_on(run, processes, monkeypatch):
    whole = evaluated(run, seed=processes)
    assert not kept_in(run) and whole[1] > 0
    with monkeypatch.context() as stopping, pytest.raises(KeyboardInterrupt):
        stopped_after(stopping, 2)
        evaluated(run, seed=processes, num_processes=processes)
    (kept,) = kept_in(run)
    before = [json.loads(line)["first"] for line in kept.read_text().splitlines()]
    assert len(before) >= 2
    played, play = [], Evaluator._play
    monkeypatch.setattr(
        Evaluator, "_play",
        lambda self, envs, count, policy, seed, *rest: (
            played.append(seed) or play(self, envs, count, policy, seed, *rest)
        ),
    )  # fmt: skip
    assert evaluated(run, seed=processes) == whole
    assert len(played) == 3 - len(before) and not kept_in(run)


def test_another_evaluation_begins_anew(run, monkeypatch):
    with monkeypatch.context() as stopping, pytest.raises(KeyboardInterrupt):
        stopped_after(stopping, 1)
        evaluated(run, seed=5, max_frames=40)
    (kept,) = kept_in(run)
    for changes in ({"seed": 6}, {"seed": 5, "greedy": True}, {"seed": 5, "noops": 0}):
        evaluated(run, max_frames=40, **changes)
        assert kept_in(run) == [kept]
    kept.unlink()


@pytest.mark.parametrize(
    "line",
    [
        '{"first": 0, "scores": [1, 2]}', '{"first": 1, "scores": [0, 0, 0, 0, 0, 0, 0]}',
        '{"first": 0, "scores": "1234567"}', '{"first": [0], "scores": null}', '{"first": 0}',
        '{"first": 0, "scores": [1, 2, 3, 4, 5, 6, NaN]}',
    ],
)  # fmt: skip
def test_damaged_lines_count_as_nothing(tmp_path, line):
    what, sizes = {"seed": 1}, {0: 7, 7: 7, 14: 6}
    ended = EndedGroups(tmp_path, what, sizes)
    ended.add(7, np.arange(7.0))
    with ended.path.open("a") as file:
        file.write(line + "\n")
    again = EndedGroups(tmp_path, what, sizes)
    assert list(again.scores) == [7] and again.episodes == 7
    np.testing.assert_array_equal(again.scores[7], np.arange(7.0))
    again.remove()
    assert EndedGroups(tmp_path, what, sizes).episodes == 0
