"""What the files of a recording hold: damage, and what Kineto writes of GPUs and threads."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cule import scope
from cule.scope import storage
from cule.scope.__main__ import main
from cule.scope.recording import Recording
from tests.scope.trainings import iterate, seconds_by_operation


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


def places_in(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Where in a JSON value something can be replaced."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_in(inner, (*path, key))


def replaced(value: Any, path: tuple, by: Any) -> Any:
    if not path:
        return by
    copied = copy.copy(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], by)
    return copied


STRANGE = (
    None, "x", [], {}, -1, 2**70, float("inf"), float("nan"), [[1, 2], "x"], {"a": []}, True, 0,
)  # fmt: skip


def report_of_damaged(folder: Path, chosen: random.Random, capsys: Any) -> str:
    """Replaces a value somewhere in a recording, and makes all reports; what was said of it."""
    about, marks = storage.about_path(folder, "main"), storage.marks_path(folder, "main")
    trace = storage.activities_path(folder, "main")
    before = {path: path.read_bytes() for path in (about, marks, trace)}
    path = chosen.choice(list(before))
    if path == about:
        value = json.loads(before[about])
    elif path == trace:
        value = json.loads(gzip.decompress(before[trace]))
    else:
        value = [json.loads(line) for line in before[marks].splitlines()]
    place, strange = chosen.choice(list(places_in(value))), chosen.choice(STRANGE)
    value = replaced(value, place, strange)
    if path == marks:
        content = "".join(f"{json.dumps(one)}\n" for one in value).encode() if value else b"[]"
    else:
        content = json.dumps(value).encode()
    path.write_bytes(gzip.compress(content) if path == trace else content)
    told = f"{path.name} {place} {strange!r}"
    try:
        for options in ([], ["--json"], ["--perfetto", str(folder / "trace.json")]):
            status = main(["report", str(folder), *options])
            said = capsys.readouterr()
            assert status in (0, 2) and (said.err.count("\n") == (status == 2)), told
    except Exception as problem:
        raise AssertionError(told) from problem
    finally:
        for path, content in before.items():
            path.write_bytes(content)
    return said.out + said.err


def small_recording(folder: Path) -> None:
    """Leaves a few events of each kind in a recording's trace, and adds what a GPU would."""
    path = storage.activities_path(folder, "main")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    trace["traceEvents"] = trace["traceEvents"][-12:]
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    kernel = {"cat": "kernel", "name": "k", "tid": 7, "args": {"correlation": 1, "stream": 7}}
    change_trace(folder, [*launches(2), kernel])
    path = storage.about_path(folder, "main")
    about = json.loads(path.read_bytes())
    node = {"kind": "kernel", "operation": "work", "grid": [1] * 6, "bytes": 0, "after": []}
    node |= {"is_marker": False, "name": "k"}
    about["graphs"] = {"1": [node, {**node, "after": [0]}]}
    about["gpus"] = [{"index": 0, "uuid": "GPU-1", "name": "one"}]
    about["utilization"] = [["GPU-1", about["window"][0] / 1e9, 50.0]]
    about["reference"] = {"iterations": 8, "iteration": 1.5, "operations": {"work": 1.0}}
    path.write_text(json.dumps(about))


@pytest.mark.parametrize("cases", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_recording_with_any_value_replaced_is_reported_or_refused(recorded, cases, capsys):
    small_recording(recorded)
    chosen = random.Random(cases)
    said = [report_of_damaged(recorded, chosen, capsys) for _ in range(cases)]
    assert any("expected a recording's file" in text for text in said)
    assert any("left out 1 damaged" in text for text in said)


@pytest.mark.parametrize("kind", ["about", "marks", "activities", "counters"])
def test_recording_with_a_fifo_in_place_of_a_file_ends(recorded, kind, capsys):
    small_recording(recorded)
    suffix = {"counters": ".counters.json"}.get(kind)
    path = (
        recorded / f"main{suffix}" if suffix else getattr(storage, f"{kind}_path")(recorded, "main")
    )
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    status = main(["report", str(recorded)])
    said = capsys.readouterr()
    assert status in (0, 2) and "Is a FIFO" in said.out + said.err


def test_trace_that_fills_memory_when_unpacked_is_a_sentence(recorded):
    """A thousandth of its size on the disk."""
    path = storage.activities_path(recorded, "main")
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    problems = Recording(recorded).problems
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert any("unpacked it has more than" in problem for problem in problems)
    assert most < 48 << 20


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
