"""An evaluation whose episodes several processes share."""

from __future__ import annotations

import multiprocessing
import multiprocessing.spawn
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from training_runs import ROOT, children_of, settings, trained

from cule.train.evaluate import evaluation


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained policy."""
    folder = tmp_path_factory.mktemp("run")
    trained(settings(folder, total_frames=500))
    return folder


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
    for num_processes in (1, 2, 9):
        args = wanted(run, max_frames=400, num_processes=num_processes)
        rows.append(evaluation.evaluate(args)[0])
    # The bar has counted all episodes.
    assert set(bars) == {("breakout, sticky 0.25", 20, 20)}
    for row in rows[1:]:
        for name in ("score", "score_deviation", "score_min", "score_max", "num_threads"):
            assert row[name] == rows[0][name]
    assert rows[0]["score_deviation"] > 0


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
    with pytest.raises(TypeError, match="incompatible"):
        evaluation.evaluate(wanted(run, noops=2**40, num_processes=2))


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_evaluation(run, ended_by):
    command = [
        sys.executable, "-m", "cule.train.evaluate", str(run), "--episodes", "20", "--sticky",
        "0.25", "--device", "cpu", "--num-threads", "2", "--num-processes", "2",
    ]  # fmt: skip
    program = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
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
