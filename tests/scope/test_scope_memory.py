"""Memory by operation: a program that takes and gives back pieces of known size."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import time

import pytest
import torch

from cule import scope
from cule.scope import parts, storage
from cule.scope.__main__ import main
from cule.scope.events import BACKWARD, UNATTRIBUTED, Allocation, Call, Key, Mark, Process
from cule.scope.following import Follow
from cule.scope.lanes import assemble
from cule.scope.memory import Held, uses_of
from cule.scope.recording import Recording
from cule.scope.storage import activities_path

KIB = 1024
ITERATIONS = 5


def floats(kibibytes):
    return torch.zeros(kibibytes * KIB // 4)


def iterate(count):
    """Each keeps 100 KiB of "act" and takes 200, and 400 for a moment, in "learn"."""
    kept = floats(100)
    for _ in range(count):
        with scope.iteration():
            with scope.operation("act"):
                kept = floats(100)
            with scope.phase("late"), scope.operation("learn"):
                learned = floats(200)
                floats(400)
                del learned
    return kept


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    with scope.record(tmp_path_factory.mktemp("r"), iterations=ITERATIONS, memory=True) as recorded:
        iterate(ITERATIONS + 1)
    return recorded


def test_each_operation_has_what_it_took(recorded):
    (use,) = recorded.memory()
    # The new tensor of "act" is there before its last one goes.
    assert use.operations == [
        Held("late", "learn", ITERATIONS * 600 * KIB, 600 * KIB, 600 * KIB, 0),
        Held("", "act", ITERATIONS * 100 * KIB, 200 * KIB, 100 * KIB, 100 * KIB),
    ]
    assert (use.process, use.device, use.peak) == ("main", "cpu", 700 * KIB)
    assert (use.phase, use.operation, use.iteration, use.before) == ("late", "learn", 1, 0)
    assert recorded.problems == []


def test_the_report_says_it(recorded, capsys):
    assert main(["report", str(recorded.folders[0])]) == 0
    lines = capsys.readouterr().out.splitlines()
    (first,) = [place for place, line in enumerate(lines) if line.startswith("Memory of cpu")]
    assert lines[first] == (
        "Memory of cpu: the most was 0.684 MiB, in iteration 1 of 5, in late / learn."
    )
    assert [line.split() for line in lines[first + 3 :]] == [
        ["late", "/", "learn", "0.586", "0.586", "0.586", "."],
        ["act", "0.098", "0.195", "0.098", "0.098"],
    ]
    assert main(["report", str(recorded.folders[0]), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (row,) = [row for row in rows if row["table"] == "memory"]
    assert row["peak"] == 700 * KIB and row["operations"][1]["kept"] == 100 * KIB


def test_without_being_asked_for_nothing_is_recorded(tmp_path, capsys):
    with scope.record(tmp_path) as recording:
        iterate(2)
    assert recording.memory() == []
    assert main(["report", str(tmp_path)]) == 0
    assert "Memory of" not in capsys.readouterr().out


def test_a_backward_pass_takes_memory_of_the_operation_around_it(tmp_path):
    weights = torch.ones(200 * KIB // 4, requires_grad=True)
    with scope.record(tmp_path, memory=True) as recording:
        with scope.operation("forward"):
            loss = weights.exp().sum()
        with scope.operation("backward"):
            (gradient,) = torch.autograd.grad(loss, weights)
    held = {one.operation: one for one in recording.memory()[0].operations}
    assert held["forward"].taken == 200 * KIB + 4
    assert held["backward"].kept == gradient.numel() * 4 == 200 * KIB


def test_a_recording_of_memory_has_no_parts(tmp_path, monkeypatch):
    """What one part took another might give back."""
    monkeypatch.setattr(parts, "PART_SECONDS", 0.0)
    monkeypatch.setattr(storage, "SECONDS_BETWEEN_WRITES", 0.001)
    with scope.record(tmp_path / "parts") as recording:
        for _ in range(20):  # long enough for the thread that writes parts
            iterate(3)
            time.sleep(0.01)
    assert len(recording.processes[0].process.about["parts"]) > 1
    with scope.record(tmp_path / "memory", memory=True) as recording:
        iterate(60)
    assert recording.processes[0].process.about["parts"] == []
    assert recording.memory()[0].operations[1].taken == 60 * 100 * KIB


def work_in_child():
    with scope.operation("child"):
        floats(300)


def test_processes_that_are_followed_record_it_too(tmp_path):
    with scope.record(tmp_path, memory=True) as recording:
        child = multiprocessing.get_context("fork").Process(target=work_in_child)
        child.start()
        child.join()
    assert child.exitcode == 0
    held = {one.operation: one for use in recording.memory() for one in use.operations}
    assert held["child"].taken == 300 * KIB


def test_what_a_followed_process_has_to_know_is_all_there():
    follow = Follow("folder", "main", ("a",), ("b",), ("annotations", "memory"))
    assert Follow.parse(follow.as_text()) == follow


def test_what_was_there_before_is_told_apart():
    """By hand: a GPU with 1,000 bytes of others, which gives 300 of them back."""
    process, act = Process("main", 10, 100, 1), Key("", "act")
    process.thread(1).marks += [Mark(20, True, "iteration", ""), Mark(30, False, "iteration", "")]
    of = [(5, 1, 90, 1090), (15, 2, 50, 1140), (25, 3, 70, 1210), (26, 9, -300, 910),
          (27, 2, -50, 860), (101, 4, 500, 1360)]  # fmt: skip
    for at, address, size, total in of:
        key = act if at == 25 else Key("", "other")
        process.allocations.append(Allocation(at, 1, 0, address, size, total, key))
    process.allocations.append(Allocation(50, 1, -1, 2, 8, 8, act))  # another 2, on the host
    host, gpu = uses_of(process)
    assert (host.device, host.peak, host.iteration) == ("cpu", 8, 1)
    assert (gpu.device, gpu.peak, gpu.before, gpu.operation) == ("cuda:0", 1210, 1090, "act")
    assert gpu.operations == [Held("", "act", 70, 70, 70, 70), Held("", "other", 50, 50, 50, 0)]


def test_threads_of_a_backward_pass_take_memory_for_who_waits_for_them():
    process = Process("main", 0, 100, 1)
    process.thread(1).marks += [
        Mark(1, True, "operation", "main"),
        Mark(90, False, "operation", "main"),
    ]
    process.thread(2).marks += [
        Mark(2, True, "operation", "own"),
        Mark(80, False, "operation", "own"),
    ]
    process.thread(2).calls = [Call(10, 20, "backend", BACKWARD)]
    times = {9: "main", 10: "own", 19: "own", 20: "main", 95: UNATTRIBUTED}
    process.allocations += [Allocation(time, 7, 0, time, 1, 1) for time in times]
    assemble(process)
    assert {one.time: one.key.operation for one in process.allocations} == times


@pytest.mark.parametrize(
    "change", [{"Bytes": "many"}, {"Total Allocated": None}, {"Addr": 2.0**70}, {"Device Type": []}]
)
def test_damaged_events_are_left_out_with_a_sentence(tmp_path, change):
    with scope.record(tmp_path, memory=True):
        iterate(1)
    path = activities_path(tmp_path, "main", 0)
    trace = json.loads(gzip.decompress(path.read_bytes()))
    events = [one for one in trace["traceEvents"] if one.get("name") == "[memory]"]
    events[0]["args"].update(change)
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    recording = Recording(tmp_path)
    (problem,) = recording.problems
    assert problem.startswith("left out 1 damaged events of torch.profiler's trace")
    assert len(recording.processes[0].process.allocations) == len(events) - 1


def test_memory_wants_iterations(tmp_path, capsys):
    assert main(["run", "--out", str(tmp_path / "r"), "--memory", "--", "-m", "json.tool"]) == 2
    assert "expected --iterations with --memory, got none" in capsys.readouterr().err
