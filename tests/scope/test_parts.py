"""Long recordings, which are written in parts while the program runs."""

from __future__ import annotations

import json
import multiprocessing
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from cule.errors import InvalidValue
from cule.scope import iteration, operation, parts, perfetto, record, storage
from cule.scope.activities import Activities
from cule.scope.annotations import listen, stop_listening
from cule.scope.bias import iteration_times
from cule.scope.events import Mark, Process
from cule.scope.recording import Recording
from cule.scope.table import report

ROOT = Path(__file__).resolve().parents[2]
ADDS, SUMS = 30, 20


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of 20 ms instead of a minute."""
    monkeypatch.setattr(parts, "PART_SECONDS", 0.02)
    monkeypatch.setattr(storage, "SECONDS_BETWEEN_WRITES", 0.005)


def iterate(count):
    """Iterations of some milliseconds with two operations of torch's."""
    x = torch.ones(4)
    for _ in range(count):
        with iteration():
            with operation("adds"):
                for _ in range(ADDS):
                    x.add(1)
                time.sleep(0.003)
            with operation("sums"):
                for _ in range(SUMS):
                    x.sum()


def calls_into_torch(recording, process="main"):
    """How often each operation went into torch."""
    found = {}
    for one in recording.transitions():
        if (one.process, one.target) == (process, "backend") and one.operation in ("adds", "sums"):
            found[one.operation] = found.get(one.operation, 0) + one.count
    return found


@pytest.fixture
def recorded(tmp_path, short_parts):
    with record(tmp_path) as recording:
        iterate(60)
    return recording


def test_nothing_is_lost_between_parts(recorded, tmp_path):
    (one,) = recorded.processes
    found = one.process.about["parts"]
    assert len(found) > 3 and recorded.problems == [] and recorded.complete
    # What was recorded, and when it was not.
    begin, end = one.process.start, one.process.end
    assert one.process.pauses == [(a[1], b[0]) for a, b in pairwise(found)]
    paused = sum(b - a for a, b in one.process.pauses)
    assert paused > 0 and one.process.seconds * 1e9 == pytest.approx(end - begin - paused)
    rows = recorded.breakdown()
    assert sum(row.seconds for row in rows) == pytest.approx(one.process.seconds)
    # Each iteration, operation and call is there once.
    assert one.process.iterations == 60 and len(iteration_times(one.process)) == 60
    assert {row.operation: row.calls for row in rows if row.operation in ("adds", "sums")} == {
        "adds": 60, "sums": 60,
    }  # fmt: skip
    assert calls_into_torch(recorded) == {"adds": 60 * ADDS, "sums": 60 * SUMS}
    assert f"; {len(found) - 1} pauses of " in report(recorded, [], [])


def test_several_processes_read_the_same(recorded, tmp_path):
    again = Recording(tmp_path, num_processes=2)
    assert again.breakdown() == recorded.breakdown()
    assert calls_into_torch(again) == calls_into_torch(recorded)


def test_time_is_that_of_the_program(tmp_path, short_parts):
    """Sleeps are in the operation in which they were, whatever was written meanwhile."""
    with record(tmp_path) as recording:
        iterate(50)
    (one,) = recording.processes
    slept = sum(row.seconds for row in recording.breakdown() if row.operation == "adds")
    assert 50 * 0.003 <= slept < one.process.seconds
    assert max(iteration_times(one.process)) < 1e3 * one.process.seconds / 3


def test_another_threads_operation_goes_on_over_parts(tmp_path, short_parts):
    done = threading.Event()

    def load():
        with operation("loading"):
            done.wait()

    loader = threading.Thread(target=load, name="loader")
    with record(tmp_path) as recording:
        loader.start()
        iterate(40)
        done.set()
        loader.join()
    assert len(recording.processes[0].process.about["parts"]) > 2 and recording.problems == []
    of_loader = [row for row in recording.breakdown() if row.process == "main:loader"]
    waited = sum(row.seconds for row in of_loader if row.level == "waiting")
    assert {row.operation for row in of_loader} == {"loading", "(unattributed)"}
    assert waited > 0.8 * recording.processes[0].process.seconds
    calls = {row.calls for row in of_loader if row.operation == "loading"}
    assert calls == {1}


def test_a_forks_recording_has_parts_too(tmp_path, short_parts):
    """The root's window ends while the fork may be about to write one."""
    with record(tmp_path) as recording:
        worker = multiprocessing.get_context("fork").Process(target=iterate, args=(60,))
        worker.start()
        worker.join()
        other = multiprocessing.get_context("fork").Process(target=iterate, args=(10_000,))
        other.start()
        path, until = storage.about_path(tmp_path, f"main.{other.pid}"), time.monotonic() + 120
        while not path.exists() or len(json.loads(path.read_bytes())["parts"]) < 3:
            assert time.monotonic() < until
            time.sleep(0.05)
    other.kill()
    other.join()
    _, first, second = recording.processes
    assert recording.problems == []
    for one in (first, second):
        assert len(one.process.about["parts"]) > 2
    found = calls_into_torch(recording, first.process.name)
    assert found == {"adds": 60 * ADDS, "sums": 60 * SUMS} and first.process.iterations == 60
    found = calls_into_torch(recording, second.process.name)
    assert found["adds"] >= ADDS * (second.process.iterations - 1) > 0


def test_a_parts_profile_is_gone_at_once(tmp_path, short_parts, monkeypatch):
    """With all of its events, though it is in a circle of objects."""
    release, gone = Activities.release, []

    def noted(self):
        profile = weakref.ref(self._profile.profiler)
        release(self)
        gone.append(profile() is None)

    monkeypatch.setattr(Activities, "release", noted)
    with record(tmp_path):
        iterate(20)
    assert len(gone) > 1 and all(gone)


def test_an_operation_that_stays_open_has_no_parts_within(tmp_path, short_parts):
    with record(tmp_path) as recording, operation("all"):
        iterate(30)
    assert recording.processes[0].process.about["parts"] == []
    assert recording.problems == []


KILLED = """
import os, signal, sys
from cule import scope
from cule.scope import parts, storage
from tests.scope.test_parts import iterate
parts.PART_SECONDS, storage.SECONDS_BETWEEN_WRITES = 0.02, 0.005
recording = scope.record(sys.argv[1])
with recording:
    while len(recording._recorder._recording.parts.windows) < 3:
        iterate(5)
    iterate(3)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_program_loses_its_last_part_only(tmp_path):
    ran = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, timeout=300)
    assert ran.returncode == -signal.SIGKILL
    recording = Recording(tmp_path)
    (one,) = recording.processes
    assert one.process.cut_off and len(one.process.about["parts"]) >= 3, recording.problems
    (problem,) = recording.problems
    assert "was cut off after" in problem and "s annotations only" in problem
    found = calls_into_torch(recording)
    # It may have been killed before it wrote anything of its last part.
    storage.marks_path(tmp_path, "main", len(one.process.about["parts"])).unlink(missing_ok=True)
    again = Recording(tmp_path)
    assert again.processes[0].process.cut_off and calls_into_torch(again) == found
    assert found["adds"] >= 3 * ADDS and found["adds"] % ADDS == 0


def test_a_new_recording_leaves_no_old_parts(recorded, tmp_path):
    assert [*tmp_path.glob("main.part*")]
    with record(tmp_path, overwrite=True):
        iterate(1)
    assert not [*tmp_path.glob("main.part*")]


def test_a_part_that_is_missing_is_a_sentence(recorded, tmp_path):
    storage.activities_path(tmp_path, "main", 1).write_bytes(b"no trace")
    (problem,) = Recording(tmp_path).problems
    assert problem.startswith("expected a trace of torch.profiler, got ")


DAMAGES = [
    lambda found: found.reverse(),
    lambda found: found[0].pop(),
    lambda found: found.append([1, 2, 3]),
    lambda found: found[0].__setitem__(0, -5),
    lambda found: found.append("x"),
]


def test_windows_that_do_not_follow_each_other_are_refused(recorded, tmp_path):
    path = storage.about_path(tmp_path, "main")
    written = path.read_bytes()
    for damage in DAMAGES:
        about = json.loads(written)
        damage(about["parts"])
        path.write_text(json.dumps(about))
        with pytest.raises(InvalidValue, match="expected a recording's file, got"):
            _ = Recording(tmp_path).processes


def test_a_disk_that_is_full_is_a_sentence_and_the_program_goes_on(
    tmp_path, short_parts, monkeypatch
):
    def write(*_):
        raise OSError(28, "No space left on device")

    with pytest.warns(UserWarning, match="No space left"), record(tmp_path) as recording:
        iterate(10)
        monkeypatch.setattr("cule.scope.instruments.Instruments._write_activities", write)
        iterate(40)
    assert not recording.complete


def test_the_trace_has_all_parts_on_one_time_line(recorded, tmp_path):
    (path,) = perfetto.write_traces(storage.parts_in(tmp_path), tmp_path / "trace.json")
    trace = json.loads(path.read_text())
    steps = [e for e in trace["traceEvents"] if e.get("name", "").startswith("ProfilerStep#")]
    names = [e["name"] for e in steps]
    assert [*dict.fromkeys(names)] == [f"ProfilerStep#{place}" for place in range(60)]
    assert len({(e["pid"], e["tid"]) for e in steps}) == 1
    adds = [e["ts"] for e in trace["traceEvents"] if e.get("name") == "aten::add"]
    assert len(adds) == 60 * ADDS
    first, last = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    assert first <= min(adds) and max(adds) <= last


def test_a_pause_is_no_time_of_an_iteration():
    made = Process("main", 0, 100, 1, pauses=[(30, 50), (60, 61)])
    begins = (0, 20, 55)
    made.thread(1).marks = [Mark(time, True, "iteration", "iteration") for time in begins]
    assert made.seconds == 79e-9
    assert iteration_times(made) == [20e-6, 15e-6, 44e-6]


PIECES = """
import os, torch
from cule.scope import parts
resident, small = parts.resident_bytes(), parts.small_bytes()
much = bytearray(os.urandom(1 << 16)) * 1600  # 100 MB in one piece
objects = [{number: number} for number in range(300_000)]
print(parts.resident_bytes() - resident, parts.small_bytes() - small)
pieces = [torch.ones(4) for _ in range(100_000)]
print(parts.small_bytes() - small)
assert len(much) == 1600 << 16 and len(objects) > len(pieces)
"""


def test_small_pieces_are_what_profilers_have():
    """In a process of its own: another one may have room left for 100 MB between small pieces."""
    words = [sys.executable, "-c", PIECES]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=300, check=True)
    resident, before, after = map(int, ran.stdout.split())
    assert resident > 120 << 20 and before < 10 << 20 and after > 20 << 20


@pytest.mark.parametrize("seconds, grown, due", [
    (1, 0, False), (59, 0, False), (60, 0, True), (0.2, 1 << 30, False), (0.25, 1 << 30, True),
])  # fmt: skip
def test_a_part_ends_by_time_or_by_memory(monkeypatch, seconds, grown, due):
    begun, now = [], [100.0]
    monkeypatch.setattr(parts.time, "monotonic", lambda: now[0])
    for name in ("resident_bytes", "small_bytes"):
        monkeypatch.setattr(parts, name, lambda: 5000 + (now[0] > 100) * grown)
    one = parts.Parts(begun.append, True, threading.get_ident())
    now[0] += seconds
    one.look()
    annotation = operation("a")
    listen(one)
    try:
        with annotation:
            pass
    finally:
        stop_listening(one)
    assert begun == [annotation] * due


LONG = """
import sys, torch
from cule import scope
from cule.scope.parts import resident_bytes
torch.set_num_threads(1)
x, before = torch.ones(4), resident_bytes()
with scope.record(sys.argv[1]):
    for _ in range(int(sys.argv[2])):
        with scope.iteration(), scope.operation("adds"):
            for _ in range(1000):
                x.add(1)
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""


@pytest.mark.slow
def test_a_long_recording_takes_little_memory(tmp_path):
    """Two million events: in one part they would be 4 GB."""
    words = [sys.executable, "-c", LONG, str(tmp_path), "2000"]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=900, check=True)
    assert int(ran.stdout) < 1.2e9
    recording = Recording(tmp_path)
    assert calls_into_torch(recording) == {"adds": 2_000_000}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20
