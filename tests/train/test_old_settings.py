"""The setting `overlap`, the old name of `lag=1`: on the command line, in checkpoints and rows."""

from __future__ import annotations

import warnings

import pytest
import torch
import tyro
from training_runs import assert_same, save, saved, settings, trained, without_times

from cule.train.checkpoints import checkpoint
from cule.train.evaluate import policies
from cule.train.logs.repeat import _from_settings
from examples.a2c_vtrace.paper import rows
from examples.a2c_vtrace.train import A2C, Args

CPU = torch.device("cpu")
SENTENCE = "--overlap is --lag 1 now, and goes with the next release"
# What the settings of an older checkpoint say.
OLD = {"overlap": True, "lag": 0}


def aged(run):
    """Gives a run's newest checkpoint the settings that an older version has written."""
    state = checkpoint.newest(run, CPU)
    assert (state["args"]["overlap"], state["args"]["lag"]) == (False, 1)
    save(run / "checkpoints", state["trainer"]["steps"], {**state, "args": state["args"] | OLD})


def test_overlap_is_a_lag_of_1_and_says_what_to_write():
    with pytest.warns(FutureWarning, match=SENTENCE) as told:
        args = Args(overlap=True)
    assert [one.filename for one in told] == [__file__]
    assert (args.overlap, args.lag) == (False, 1)
    with pytest.warns(FutureWarning, match=SENTENCE):
        args = tyro.cli(Args, args=["--overlap"])
    assert (args.overlap, args.lag) == (False, 1)
    with pytest.raises(ValueError, match="expected overlap to be True or False, got 1"):
        Args(overlap=1)


def test_overlap_that_is_set_later_is_a_lag_of_1():
    args = Args()
    args.overlap = True
    with pytest.warns(FutureWarning, match=SENTENCE):
        args = args.on(CPU)
    assert (args.overlap, args.lag) == (False, 1)


@pytest.mark.filterwarnings("error")
def test_a_lag_of_1_says_nothing():
    assert _from_settings(A2C, Args(lag=1)) == "python -m examples.a2c_vtrace.train --lag 1"
    assert Args(overlap=False).on(CPU).lag == 0


@pytest.mark.filterwarnings("ignore:--overlap:FutureWarning")
@pytest.mark.parametrize("asked", [{"lag": 1}, {"overlap": True}], ids=["lag", "overlap"])
def test_a_training_that_overlapped_is_resumed_as_if_never_stopped(tmp_path, asked):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    row = trained(settings(whole, total_frames=2000, **asked))
    assert (row["lag"], row["overlap"]) == (1, False)
    trained(settings(parts, total_frames=1100, lag=1))
    aged(parts)
    with pytest.raises(ValueError, match=r"expected lag as in the checkpoint \(1\), got 0"):
        trained(settings(parts, total_frames=2000, resume=True))
    trained(settings(parts, total_frames=2000, resume=True, **asked))
    assert_same(saved(parts), saved(whole))
    assert without_times(parts) == without_times(whole)
    assert checkpoint.newest(parts, CPU)["args"]["lag"] == 1


def test_a_training_that_overlapped_is_evaluated_without_a_warning(tmp_path):
    trained(settings(tmp_path, total_frames=500, lag=1))
    aged(tmp_path)
    seen = torch.zeros(2, 4, 84, 84, dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy, state = policies.load_policy(tmp_path, CPU)
    assert state["args"]["overlap"] and policy.scores(seen).shape == (2, 4)


def test_rows_of_overlap_are_rows_of_a_lag_of_1():
    row = {"mode": "training", "system": "cule", "cuda": "13.0", "num_envs": 1200}
    for old in ({"overlap": True}, OLD, {"overlap": False, "lag": 1}, {"lag": 1}):
        known = rows.facts(row | old)
        assert known["lag"] == 1 and "overlap" not in known
    for old in ({}, {"overlap": False}, {"overlap": False, "lag": 0}):
        assert rows.facts(row | old)["lag"] == 0
