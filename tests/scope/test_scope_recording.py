"""Recordings of programs with threads and errors, and of machines in trouble."""

from __future__ import annotations

import errno
import os
import threading
import time

import ale_py
import numpy as np
import pytest
import torch

import cule
from cule import scope
from cule.scope import activities, storage
from cule.scope.annotations import listen, stop_listening
from cule.scope.collect import Collected
from cule.scope.events import UNATTRIBUTED
from tests.scope.trainings import iterate, seconds_by_operation


def test_whole_block_is_recorded_without_iterations(tmp_path):
    with scope.phase("training"), scope.operation("around"), scope.record(tmp_path) as recording:
        iterate(3)
    rows = recording.breakdown()
    assert {(row.phase, row.operation) for row in rows} == {
        ("training", "work"), ("training", "around"),
    }  # fmt: skip
    assert recording.processes[0].process.iterations == 3
    assert recording.complete
    assert recording.problems == []


def test_iterations_after_the_last_are_not_recorded(tmp_path):
    with scope.record(tmp_path, iterations=(3, 5)) as recording:
        iterate(9)
    assert recording.processes[0].process.iterations == 2
    reference = recording.processes[0].process.about["reference"]
    assert reference["iterations"] == 2
    assert reference["operations"]["work"] >= 1


def in_a_thread(name, function):
    thread = threading.Thread(target=function, name=name)
    thread.start()
    thread.join()


def test_threads_that_follow_each_other_are_not_one(tmp_path):
    """The system gives a new thread the identity of one that has ended."""

    def work():
        identities.add(threading.get_ident())
        with scope.operation(threading.current_thread().name):
            torch.ones(100).sum()

    identities = set()
    names = [f"worker {number}" for number in range(5)]
    with scope.record(tmp_path) as recording:
        for name in names:
            in_a_thread(name, work)
    assert len(identities) < 5
    (one,) = recording.processes
    assert [lane.name for lane in one.lanes] == ["main", *(f"main:{name}" for name in names)]
    found = {(row.process, row.operation, row.level) for row in recording.breakdown()}
    assert {(f"main:{name}", name, "backend") for name in names} <= found
    assert ("main", UNATTRIBUTED, "backend") not in found


def test_threads_of_one_name_have_rows_of_their_own(tmp_path):
    def work():
        with scope.operation("load"):
            time.sleep(0.01)

    with scope.record(tmp_path) as recording:
        for _ in range(3):
            in_a_thread("loader", work)
    (one,) = recording.processes
    names = [lane.name for lane in one.lanes]
    assert len(set(names)) == 4 and all(name.startswith("main:loader-") for name in names[1:])
    for name in names:
        rows = [row for row in recording.breakdown() if row.process == name]
        assert sum(row.seconds for row in rows) == pytest.approx(one.seconds)


def test_what_is_written_is_not_kept_in_memory():
    collected = Collected()
    listen(collected)
    try:
        for _ in range(3):
            with scope.operation("work"):
                pass
            (entry,) = collected.news(0)
            assert len(entry["marks"]) == 2
            assert collected.here().marks == []
    finally:
        stop_listening(collected)
    in_a_thread("other", collected.here)
    assert len(collected._lists) == 2
    assert collected.news(0) == []
    assert [lists.thread for lists in collected._lists] == [threading.current_thread()]


def test_each_thread_with_annotations_has_rows_that_add_up_to_the_wall_clock(tmp_path):
    def load():
        for _ in range(3):
            with scope.operation("load"):
                time.sleep(0.002)
                torch.zeros(3).add_(1)

    with scope.record(tmp_path) as recording:
        threads = [threading.Thread(target=load, name=f"loader{n}") for n in range(2)]
        for thread in threads:
            thread.start()
        iterate(4)
        for thread in threads:
            thread.join()
    found = seconds_by_operation(recording)
    (one,) = recording.processes
    for lane in ("main", "main:loader0", "main:loader1"):
        total = sum(seconds for (name, _), seconds in found.items() if name == lane)
        assert total == pytest.approx(one.seconds, rel=1e-6)
    assert found["main:loader0", "load"] >= 0.006
    assert found["main", "work"] >= 0.004
    transitions = {t.process for t in recording.transitions() if t.target == "backend"}
    assert transitions == {"main", "main:loader0", "main:loader1"}


def test_operation_left_open_is_a_sentence_and_the_recording_is_complete(tmp_path):
    with scope.record(tmp_path) as recording:
        scope.operation("forgotten").__enter__()
        time.sleep(0.002)
    assert recording.complete
    assert [p for p in recording.problems if "'forgotten'" in p and "left open" in p]
    assert seconds_by_operation(recording)["main", "forgotten"] >= 0.002
    with scope.operation("next"):  # closes what was left open around it
        pass
    from cule.scope.annotations import _local

    _local.open.clear()


def test_error_in_the_program_comes_through_and_what_was_before_is_recorded(tmp_path):
    recording = scope.record(tmp_path)
    with pytest.raises(ZeroDivisionError), recording:
        iterate(2)
        1 / 0  # noqa: B018
    assert recording.complete
    assert recording.processes[0].process.iterations == 2


def test_boundaries_are_put_back(tmp_path):
    step = cule._core.Backend.__dict__["step"]
    recv = ale_py._ale_py.ALEVectorInterface.__dict__["recv"]
    env = cule.AtariEnv("pong", 1, device="cpu", reset_pool_size=1)
    env.reset(seed=0)
    other = ale_py.AtariVectorEnv("pong", 1)
    other.reset()
    engine = torch.autograd.Variable._execution_engine
    weights = torch.ones(2, requires_grad=True)
    with scope.record(tmp_path) as recording:
        assert cule._core.Backend.__dict__["step"] is not step
        with scope.operation("cule"):
            env.step(torch.zeros(1, dtype=torch.int64))
        with scope.operation("ale-py"):
            other.step(np.zeros(1, dtype=np.int64))
        with scope.operation("backward"):
            (weights * 2).sum().backward()
    assert cule._core.Backend.__dict__["step"] is step
    assert ale_py._ale_py.ALEVectorInterface.__dict__["recv"] is recv
    assert torch.autograd.Variable._execution_engine is engine
    levels = {(row.operation, row.level) for row in recording.breakdown()}
    assert {("cule", "simulator"), ("ale-py", "simulator"), ("backward", "backend")} <= levels
    assert weights.grad.tolist() == [2, 2]


# What is refused ----------------------------------------------------------------------------------


def test_second_recording_at_a_time_is_refused(tmp_path):
    with (
        scope.record(tmp_path / "a"),
        pytest.raises(RuntimeError, match="expected one recording at a time"),
        scope.record(tmp_path / "b"),
    ):
        pass


def test_folder_with_a_recording_is_refused_unless_it_may_be_overwritten(tmp_path):
    with scope.record(tmp_path):
        pass
    with pytest.raises(ValueError, match="expected a folder without a recording of process 'main'"):
        scope.record(tmp_path)
    with scope.record(tmp_path, overwrite=True) as recording:
        iterate(1)
    assert recording.processes[0].process.iterations == 1


def test_recording_into_which_another_process_records_is_refused(tmp_path):
    """Whether it may be overwritten or not; other processes have other names."""
    with scope.record(tmp_path) as recording:
        before = {path: path.read_bytes() for path in tmp_path.glob("*.json")}
        for overwrite in (False, True):
            with pytest.raises(ValueError, match="expected a recording of process 'main' that no"):
                scope.record(tmp_path, overwrite=overwrite)
        assert before == {path: path.read_bytes() for path in tmp_path.glob("*.json")}
        iterate(1)
    assert recording.complete and recording.processes[0].process.iterations == 1
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.parametrize("iterations", [0, -1, 2.5, True, (3, 3), (-1, 4), (1, 2, 3), "5"])
def test_wrong_iterations_are_refused(tmp_path, iterations):
    with pytest.raises(ValueError, match="expected iterations to be a number of at least 1"):
        scope.record(tmp_path, iterations=iterations)


def test_boundary_that_cannot_be_imported_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected --boundary to name a module that can be"):
        scope.record(tmp_path, boundaries=["no_such_simulator"])


def test_name_that_is_no_string_is_refused():
    with pytest.raises(TypeError, match=r"expected the name of a scope.operation to be a string"):
        scope.operation(3)


def test_older_torch_is_refused_in_a_sentence_but_annotations_work(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.4.1")
    with pytest.raises(
        ImportError, match=r"expected torch 2.11 or newer for cule.scope, got 2.4.1"
    ):
        scope.record(tmp_path)
    assert iterate(2) == 2


# Trouble ------------------------------------------------------------------------------------------


def test_gpu_that_torch_cannot_record_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert not activities.records_gpu()
    with (
        pytest.warns(UserWarning, match=r"without Kineto's GPU part \(CUPTI\)"),
        scope.record(tmp_path) as recording,
    ):
        iterate(2)
    assert recording.complete
    assert recording.processes[0].process.iterations == 2


def test_other_profile_that_runs_is_a_sentence_and_annotations_are_recorded(tmp_path):
    with (
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as other,
        pytest.warns(UserWarning, match=r"expected no other profile while cule\.scope records"),
        scope.record(tmp_path) as recording,
    ):
        iterate(2)
    assert seconds_by_operation(recording)["main", "work"] >= 0.002
    assert any("aten::add_" in event.name for event in other.events())


def test_too_few_iterations_are_a_sentence(tmp_path):
    with (
        pytest.warns(UserWarning, match=r"expected 5 iterations to record, .*, got 2"),
        scope.record(tmp_path, iterations=5) as recording,
    ):
        iterate(3)
    assert recording.processes[0].process.iterations == 2


def test_program_that_marks_no_iterations_is_a_sentence(tmp_path):
    with (
        pytest.warns(UserWarning, match=r"expected 5 iterations to record, .*, got 0"),
        scope.record(tmp_path, iterations=5),
    ):
        pass


@pytest.mark.parametrize("what", ["append", "replacing", "export"])
def test_full_disk_is_a_sentence_and_the_training_goes_on(tmp_path, monkeypatch, what):
    def fail(*_: object, **__: object):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.warns(UserWarning, match="No space left on device; the recording is incomplete"),
        scope.record(tmp_path, iterations=3) as recording,
    ):
        if what == "export":
            monkeypatch.setattr(activities.Activities, "write", fail)
        else:
            monkeypatch.setattr(storage, what, fail)
        assert iterate(6) == 6
    assert not recording.complete
    assert any("cut off" in problem for problem in recording.problems)
