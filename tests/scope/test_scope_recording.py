"""Recordings of programs with threads, forks and errors, and of machines in trouble."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import ale_py
import numpy as np
import pytest
import torch

import cule
from cule import scope
from cule.scope import activities, recorder, storage
from cule.scope.recording import Recording

ROOT = Path(__file__).resolve().parents[2]


def iterate(count: int, name: str = "work") -> float:
    """A short training, and its result."""
    total = torch.zeros(1)
    for _ in range(count):
        with scope.iteration(), scope.operation(name):
            total += 1
            time.sleep(0.001)
    return float(total)


def seconds_by_operation(recording: Recording) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for row in recording.breakdown():
        key = (row.process, row.operation)
        found[key] = found.get(key, 0.0) + row.seconds
    return found


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


def test_forked_child_does_not_write_into_its_parents_recording(tmp_path):
    with scope.record(tmp_path) as recording:
        iterate(1)
        if (child := os.fork()) == 0:
            with scope.operation("child"):
                pass
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert "child" not in {row.operation for row in recording.breakdown()}


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


@pytest.fixture
def recorded(tmp_path):
    """A folder with a recording."""
    with scope.record(tmp_path):
        iterate(2)
    return tmp_path


def test_cut_off_trace_is_a_sentence(recorded):
    path = storage.activities_path(recorded, "main")
    path.write_bytes(path.read_bytes()[:-40])
    recording = Recording(recorded)
    assert any("expected a trace of torch.profiler" in problem for problem in recording.problems)
    assert seconds_by_operation(recording)["main", "work"] > 0


def test_damaged_annotations_are_a_sentence(recorded):
    with storage.marks_path(recorded, "main").open("a") as file:
        file.write('{"thread": 5, "marks": 3}\nnonsense\n')
    recording = Recording(recorded)
    assert any("left out 2 damaged lines" in problem for problem in recording.problems)
    assert seconds_by_operation(recording)["main", "work"] > 0


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 99}', b"[1]", b'{"version": 1}'])
def test_damaged_file_of_a_process_is_refused(recorded, content):
    storage.about_path(recorded, "main").write_bytes(content)
    with pytest.raises(ValueError, match="expected a recording's file, got"):
        Recording(recorded).breakdown()


def test_folder_without_a_recording_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"expected a folder with a recording of cule\.scope"):
        Recording(tmp_path).breakdown()


def change_trace(folder: Path, events: list[dict]) -> None:
    """Adds events to a recording's trace, at the middle of its window."""
    path = storage.activities_path(folder, "main")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    about = json.loads(storage.about_path(folder, "main").read_bytes())
    middle = (sum(about["window"]) // 2 - trace["baseTimeNanoseconds"]) / 1e3
    for event in events:
        trace["traceEvents"].append({"ph": "X", "ts": middle, "dur": 1, "pid": 1, **event})
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))


def launches(count: int) -> list[dict]:
    return [
        {
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "tid": 1,
            "args": {"correlation": n + 1},
        }
        for n in range(count)
    ]


def test_window_ends_with_the_gpus_work_not_with_the_wait_for_it(recorded):
    path = storage.about_path(recorded, "main")
    about = json.loads(path.read_bytes())
    about["asked"] = about["window"][1]
    about["window"][1] += 10**9
    path.write_text(json.dumps(about))
    whole = Recording(recorded).processes[0]
    assert whole.seconds > 1
    kernel = {"cat": "kernel", "name": "k", "tid": 7, "args": {"correlation": 1, "stream": 7}}
    change_trace(recorded, [kernel])
    process = Recording(recorded).processes[0].process
    assert about["asked"] < process.end == process.work[-1].end < about["window"][1]


def test_gpu_work_that_kineto_lost_is_a_sentence(recorded):
    kernel = {"cat": "kernel", "name": "k", "tid": 7, "args": {"correlation": 1, "stream": 7}}
    change_trace(recorded, [*launches(50), kernel])
    problems = Recording(recorded).problems
    assert any("got none for 49: Kineto's memory for it was full" in p for p in problems)


def test_gpu_work_that_is_missing_altogether_is_a_sentence(recorded):
    change_trace(recorded, launches(50))
    problems = Recording(recorded).problems
    assert any("another profiler may hold CUPTI" in p for p in problems)


@pytest.mark.parametrize("pthread", [0x7F4C_1CC8_9140, 0x7F4C_9CC8_9140])
@pytest.mark.parametrize("written", [abs, int, lambda number: number & 0xFFFF_FFFF])
def test_calls_of_a_thread_that_kineto_names_by_its_pthread_are_the_threads(
    recorded, pthread, written
):
    """So a thread is called that only replays graphs; Kineto writes abs(int32_t(pthread))."""
    marks = recorded / "main.marks.jsonl"
    lines = [json.loads(line) for line in marks.read_text().splitlines()]
    marks.write_text("".join(json.dumps({**one, "pthread": pthread}) + "\n" for one in lines))
    signed = (pthread & 0xFFFF_FFFF ^ 2**31) - 2**31
    event = {"cat": "cuda_runtime", "name": "cudaGraphLaunch", "args": {"correlation": 1}}
    change_trace(recorded, [{**event, "tid": written(signed)}])
    process = Recording(recorded).processes[0].process
    assert [
        call.name for call in process.threads[process.main].calls if call.level == "cuda_api"
    ] == ["cudaGraphLaunch"]


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
        from cule.scope.table import report

        text = report(recording, [], [])
    assert "rank0: " in text
    assert "rank1: " in text


def test_recorder_names_processes_of_multiprocessing(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert recorder.process_name() == "main"
