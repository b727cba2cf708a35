"""What is made of recordings: tables, rows, bars, traces, comparisons, GPU use and overlaps."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace

import pytest

from cule.scope import bars, compare, counters, depths, perfetto, table
from cule.scope.analysis import analyse
from cule.scope.breakdown import Row, gpu_times
from cule.scope.counters import Counted
from cule.scope.events import Call, Key, Work
from cule.scope.lanes import assemble
from cule.scope.overlaps import overlaps_of
from cule.scope.utilization import parse_samples
from tests.scope.made import kernel, launch, marks, process, wait


def two_streams():
    """Operations "play" and "learn", whose kernels overlap by 20 of their 40 and 40."""
    of_main = marks((0, 10, "play"), (10, 20, "learn"), (20, 90, "log"))
    of_main += [mark._replace(kind="iteration", name="iteration") for mark in marks((0, 95, "x"))]
    of_main.sort(key=lambda mark: mark.time)
    calls = [launch(1, 2, 1), launch(11, 12, 2), wait(30, 85)]
    works = [kernel(20, 60, 1, stream=1), kernel(40, 80, 2, stream=2)]
    return process(100, of_main, calls, works)


def test_gpu_times_are_unions_with_what_ran_alone():
    made = two_streams()
    (lane,) = assemble(made)
    found = {one.operation: (one.seconds, one.alone_seconds) for one in gpu_times(lane, made)}
    assert found == {
        "play": (pytest.approx(40e-9), pytest.approx(20e-9)),
        "learn": (pytest.approx(40e-9), pytest.approx(20e-9)),
    }


def test_overlap_says_what_was_slowed_by_how_much():
    """Ten kernels alone take 100 each; five beside another operation's take 150."""
    works = []
    for place in range(10):
        works.append(Work(1000 * place, 1000 * place + 100, "k", key=Key("", "play")))
    for place in range(5):
        start = 20_000 + 1000 * place
        works.append(Work(start, start + 150, "k", key=Key("", "play"), stream=1))
        works.append(Work(start - 10, start + 200, "l", key=Key("", "learn"), stream=2))
    made = process(40_000, work=works)
    found = {one.operation: one for one in overlaps_of(made)}
    assert found["play"].slowed_by == pytest.approx(0.5)
    assert found["play"].beside == ("learn",)
    assert found["play"].seconds == pytest.approx(750e-9)
    assert found["learn"].slowed_by is None
    alone = process(10_000, work=[Work(0, 105, "l", key=Key("", "learn"))])
    with_alone = {one.operation: one for one in overlaps_of(made, [alone])}
    assert with_alone["learn"].slowed_by == pytest.approx(1.0)
    assert with_alone["play"].slowed_by is None
    assert overlaps_of(alone) == []


SAMPLES = """\
GPU-aa, 2026/11/24 12:00:00.250, 100
GPU-aa, 2026/11/24 12:00:00.500, 40
nonsense
GPU-bb, 2026/11/24 12:00:00.500, [N/A]
"""


def test_samples_of_nvidia_smi_are_parsed():
    found = parse_samples(SAMPLES.splitlines())
    assert [(one.uuid, one.percent) for one in found] == [("GPU-aa", 100.0), ("GPU-aa", 40.0)]
    assert found[1].time - found[0].time == pytest.approx(0.25)


NCU = f"""\
==PROF== Connected to process 5
some output of the program
"ID","Process ID","Kernel Name","gpu__time_duration.sum","{counters.ACTIVE}","{counters.ISSUED}"
"","","","nsecond","%","%"
"0","5","play(int)","3,000","80.0","20.0"
"1","5","play(int)","1,000","40.0","10.0"
"2","5","gemm","1,000","100.0","60.0"
==PROF== Disconnected
"""


def test_counters_of_ncu_are_weighed_with_the_time_of_kernels():
    counted = counters.parse_counters(NCU.splitlines())
    assert counted["play(int)"] == Counted(4000, 70.0, 17.5)
    works = [Work(0, 1000, "play(int)"), Work(0, 500, "gemm"), Work(0, 100, "other"),
             Work(0, 9999, "copy", "memcpy")]  # fmt: skip
    active, issued = counters.weighed(works, counted)
    # An unknown kernel is an average one: 76% and 26%.
    assert active == pytest.approx(700 + 500 + 76)
    assert issued == pytest.approx(175 + 300 + 26)


@pytest.mark.parametrize("printed", ["", "==ERROR== ERR_NVGPUCTRPERM - no permission"])
def test_ncu_that_counts_nothing_is_a_sentence(printed):
    with pytest.raises(ValueError, match="expected ncu to count kernels, got"):
        counters.parse_counters(printed.splitlines())


def test_three_depths_of_gpu_use_stand_side_by_side(tmp_path):
    """Two processes share a GPU: the union of their kernels counts, and the sum of counters."""
    both = []
    for name, start in (("rank0", 100), ("rank1", 140)):
        one = process(1100, work=[Work(start, start + 80, "play(int)")], start=100)
        one.name, one.folder = name, tmp_path
        one.about = {
            "gpus": [{"index": 0, "uuid": "GPU-aa", "name": "H200"}], "first_iteration": 0,
            "utilization": [["GPU-aa", 5e-7, 90.0], ["GPU-aa", 6e-7, 100.0], ["GPU-aa", 5e-3, 1.0]],
        }  # fmt: skip
        both.append(one)
    (use,) = depths.gpu_use(both)
    assert (use.gpu, use.processes, use.nvml) == ("H200", ("rank0", "rank1"), 95.0)
    assert use.kernels == pytest.approx(100 * 120 / 1000)
    assert use.multiprocessors is use.issue_slots is None
    for name in ("rank0", "rank1"):
        (tmp_path / f"{name}.counters.json").write_text('{"play(int)": [1, 50.0, 25.0]}')
    (use,) = depths.gpu_use(both)
    assert use.multiprocessors == pytest.approx(100 * 2 * 80 * 0.5 / 1000)
    assert use.issue_slots == pytest.approx(100 * 2 * 80 * 0.25 / 1000)
    assert "nvidia-smi" in table.depths_table([use])
    (tmp_path / "rank0.counters.json").write_text('{"play(int)": 3}')
    with pytest.raises(ValueError, match="expected counters of ncu"):
        depths.gpu_use(both)


def test_a_process_that_only_starts_others_samples_the_gpu_for_them():
    """Its own window counts: that of the recording."""
    users = []
    for name in ("main", "worker"):
        one = process(1100, work=[Work(200, 300, "play(int)")] * (name == "worker"), start=100)
        one.name = name
        one.about = {"gpus": [{"index": 0, "uuid": "GPU-aa", "name": "H200"}] * (name == "worker")}
        users.append(one)
    users[0].about["utilization"] = [
        ["GPU-aa", 5e-8, 1.0], ["GPU-aa", 5e-7, 90.0], ["GPU-bb", 5e-7, 7.0]
    ]  # fmt: skip
    (use,) = depths.gpu_use(users)
    assert (use.processes, use.nvml) == (("worker",), 90.0)


def test_table_has_milliseconds_an_iteration():
    rows = [
        Row("main", "training", "play", "cpu", "simulator", 0.006, 4, 2, 0.0),
        Row("main", "training", "play", "both", "python", 0.002, 4, 0, 0.0),
        Row("main", "", "learn", "gpu", "", 0.004, 2, 0, 0.001),
    ]
    lines = table.breakdown_table(rows, 2).splitlines()
    assert lines[1].split() == [
        "training", "/", "play", "2", "4.000", "66.7%",
        "3.000", ".", "1.000", ".", "1.000", "3.000", ".", ".", ".",
    ]  # fmt: skip
    assert lines[2].split()[:7] == ["learn", "1", "2.000", "33.3%", ".", "2.000", "."]
    assert lines[2].split()[-1] == "0.500"
    assert lines[3].split() == ["sum", "6.000"]


class Made:
    """A recording that was made by hand."""

    def __init__(self, folder, *processes):
        self.folder, self.problems = folder, []
        self.processes = [analyse(one) for one in processes]

    def breakdown(self):
        from cule.scope.breakdown import rows_of

        return [
            row
            for one in self.processes
            for lane, cells in zip(one.lanes, one.cells, strict=True)
            for row in rows_of(lane.name, cells)
        ]


def test_comparison_begins_with_the_largest_change(tmp_path):
    def made(length):
        return process(100 + length, marks((0, 50, "play"), (50, 50 + length, "learn")))

    changes = compare.compare(Made(tmp_path, made(20)), Made(tmp_path, made(45)))
    assert [(one.operation, one.before, one.after) for one in changes[:1]] == [
        ("learn", pytest.approx(20e-6), pytest.approx(45e-6))
    ]
    assert changes[-1].difference == pytest.approx(0)
    assert "2.25" in compare.changes_table(changes).splitlines()[1]


def part(folder, made):
    """The one part of a recording that was made by hand."""
    return SimpleNamespace(
        folder=folder, name=made.name, called=made.name, number=0, about=made.about,
        read=lambda: made,
    )  # fmt: skip


def test_trace_has_operations_as_tracks_and_steps_of_the_profiler(tmp_path):
    made = two_streams()
    made.about = {"pid": 5, "rank": 1, "world_size": 2}
    (path,) = perfetto.write_traces([[part(tmp_path, made)]], tmp_path / "trace.json.gz")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    assert trace["distributedInfo"] == {"backend": "none", "rank": 1, "world_size": 2}
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["cat"] for event in spans} == {"user_annotation"}
    assert all(isinstance(event["tid"], int) for event in spans)
    found = {(event["name"], event["ts"], event["dur"]) for event in spans}
    assert found == {
        ("ProfilerStep#0", 0.0, 0.095), ("play", 0.0, 0.01), ("learn", 0.01, 0.01),
        ("log", 0.02, 0.07), ("play", 0.02, 0.04), ("learn", 0.04, 0.04),
    }  # fmt: skip
    titles = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"
              and event["name"] == "thread_name"}  # fmt: skip
    assert titles == {
        "operations of main", "iterations of main", "operations on GPU 0, stream 1",
        "operations on GPU 0, stream 2",
    }  # fmt: skip


def test_traces_of_several_processes_are_files_of_their_own(tmp_path):
    processes = [process(10, marks((0, 5, "a"))) for _ in range(2)]
    processes[1].name = "rank1"
    parts = [[part(tmp_path, one)] for one in processes]
    written = perfetto.write_traces(parts, tmp_path / "trace.json")
    assert [path.name for path in written] == ["trace-main.json", "trace-rank1.json"]
    assert json.loads(written[1].read_text())["traceEvents"]


def test_bars_are_drawn(tmp_path):
    rows = [
        Row("main", "", "play", resource, level, 0.001, 1, 0, 0.0)
        for resource, level in (("cpu", "python"), ("both", "cuda_api"), ("gpu", ""))
    ]
    heights = bars.segments(rows, 2)
    assert heights == {
        "play": {("cpu", "python"): 0.5, ("both", "cuda_api"): 0.5, ("gpu", ""): 0.5}
    }
    path = tmp_path / "bars.png"
    bars.plot({"before": (rows, 1), "after": (rows, 2)}, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="expected --plot to name a file"):
        bars.plot({"a": (rows, 1)}, tmp_path / "no" / "bars.png")


def test_wait_of_the_cpu_for_an_idle_gpu_is_in_the_report(tmp_path):
    made = process(20, marks((0, 20, "a")), [Call(0, 20, "cuda_api", "cudaDeviceSynchronize",
                                                  waits_until=20)])  # fmt: skip
    (row,) = Made(tmp_path, made).breakdown()
    assert (row.resource, row.level, row.seconds) == ("none", "cuda_api", pytest.approx(20e-9))
