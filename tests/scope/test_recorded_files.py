"""What the files of a recording hold: damage, and what Kineto writes of GPUs and threads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cule import scope
from cule.scope import storage
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
