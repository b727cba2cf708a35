"""Recordings of programs of several processes: forks, workers, ranks, killed ones."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.data import DataLoader

import cule
from cule import scope
from cule.scope import names, storage
from cule.scope.recording import Recording
from cule.scope.rows import json_rows
from cule.scope.table import report
from tests.scope.trainings import iterate, seconds_by_operation

ROOT = Path(__file__).resolve().parents[2]


def test_forked_child_does_not_write_into_its_parents_recording(tmp_path):
    with scope.record(tmp_path) as recording:
        iterate(1)
        if (child := os.fork()) == 0:
            with scope.operation("child"):
                pass
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert ("main", "child") not in {(row.process, row.operation) for row in recording.breakdown()}


def record_in_child(folder: Path) -> None:
    """What a worker process does."""
    with scope.record(folder) as recording:
        iterate(2)
        torch.zeros(3).add_(1)
    assert recording.complete
    assert {row.operation for row in recording.breakdown()} >= {"work"}


def wait_for_fork(child: int) -> None:
    assert os.waitpid(child, 0)[1] == 0


def fork(function: Callable[..., None], *arguments: object) -> int:
    """A child that calls a function; its status says whether it returned."""
    if (child := os.fork()) == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        finally:
            os._exit(status)
    return child


def test_forked_child_records_while_its_parent_is_recorded(tmp_path):
    with scope.record(tmp_path / "a") as recording:
        iterate(1)
        wait_for_fork(fork(record_in_child, tmp_path / "b"))
        child = fork(record_in_child, tmp_path / "a")
        wait_for_fork(child)
        worker = multiprocessing.get_context("fork").Process(
            target=record_in_child, args=(tmp_path / "a",), name="my worker:1"
        )
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        iterate(1)
    names = [one.process.name for one in recording.processes]
    assert names == ["main", f"main-{child}", "my-worker-1"]
    assert [one.process.parent for one in recording.processes] == [None, "main", "main"]
    assert [one.process.iterations for one in recording.processes] == [2, 2, 2]
    (problem,) = recording.problems
    assert "all 3 processes that main started, got none of a fork (pid " in problem
    assert f"\n\nmain-{child} (started by main): " in report(recording, [], [])


def test_forked_child_that_leaves_its_parents_block_does_not_end_its_recording(tmp_path):
    def leave():
        recording.__exit__(None, None, None)
        assert not recording.complete
        assert cule._core.Backend.__dict__["step"] is step

    step = cule._core.Backend.__dict__["step"]
    recording = scope.record(tmp_path, children=False)
    with recording:
        iterate(1)
        assert cule._core.Backend.__dict__["step"] is not step
        wait_for_fork(fork(leave))
        assert storage.read_process(tmp_path, "main").cut_off
        iterate(1)
    assert recording.complete
    assert recording.processes[0].process.iterations == 2


def test_processes_that_are_not_recorded_are_a_sentence(tmp_path):
    fork_context = multiprocessing.get_context("fork")
    before = fork_context.Process(target=time.sleep, args=(60,))
    before.start()
    with scope.record(tmp_path, children=False) as recording:
        with fork_context.Pool(16) as pool:
            assert pool.map(abs, [-1]) == [1]
        loader = DataLoader(range(4), num_workers=2, multiprocessing_context="fork")
        assert len(list(loader)) == 4
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        subprocess.run(["true"], check=True)
    before.kill()
    before.join()
    (problem,) = recording.problems
    assert problem.startswith("expected recordings of all 20 processes that main started, got ")
    assert "and 16 more" in problem
    started = recording.processes[0].process.about["children"]
    assert started[str(before.pid)] == before.name
    assert sum(name.startswith("ForkPoolWorker-") for name in started.values()) == 16
    assert [row["problems"] for row in json_rows(recording)[:1]] == [[problem]]


KILLED = """
import time
from cule import scope
with scope.record({folder!r}):
    for _ in range(10_000):
        with scope.iteration(), scope.operation("work"):
            time.sleep(0.005)
"""


def test_recording_of_a_killed_program_has_its_annotations(tmp_path):
    folder = tmp_path / "scope"
    process = subprocess.Popen([sys.executable, "-c", KILLED.format(folder=str(folder))], cwd=ROOT)
    marks = storage.marks_path(folder, "main")
    deadline = time.monotonic() + 120
    while not (marks.exists() and len(marks.read_bytes().splitlines()) >= 2):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    recording = Recording(folder)
    (problem,) = recording.problems
    assert "was cut off after" in problem
    (one,) = recording.processes
    found = seconds_by_operation(recording)
    assert found["main", "work"] > 0.5 * one.seconds > 0
    assert one.process.iterations > 20


def test_several_processes_are_in_one_report(tmp_path, monkeypatch):
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        with scope.record(tmp_path) as recording:
            iterate(2 + rank)
    recording = Recording(tmp_path)
    assert [one.process.name for one in recording.processes] == ["rank0", "rank1"]
    assert [one.process.iterations for one in recording.processes] == [2, 3]
    assert {row.process for row in recording.breakdown()} == {"rank0", "rank1"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = report(recording, [], [])
    assert "rank0: " in text
    assert "rank1: " in text


def test_recorder_names_processes_of_multiprocessing(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert names.process_name() == "main"
    monkeypatch.setenv("RANK", "3")
    assert names.process_name() == "rank3"
    monkeypatch.setattr(type(multiprocessing.current_process()), "name", "Process-1:2")
    assert names.process_name() == "rank3-Process-1-2"
