"""On a GPU: kernels of known length on two streams, inside CUDA graphs and outside."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from cule import scope
from cule.scope import capture, parts, storage
from cule.scope.depths import gpu_use

pytestmark = pytest.mark.gpu

ITERATIONS = 5


@pytest.fixture(scope="module")
def cycles_per_ms() -> float:
    """How many clock cycles a millisecond has, when the GPU is warm."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1_000_000_000)
    begin.record()
    torch.cuda._sleep(100_000_000)
    end.record()
    end.synchronize()
    return 100_000_000 / begin.elapsed_time(end)


@pytest.fixture
def sleep(cycles_per_ms):
    """A kernel that takes so many milliseconds."""
    return lambda milliseconds: torch.cuda._sleep(int(milliseconds * cycles_per_ms))


@pytest.fixture
def streams():
    return torch.cuda.Stream(), torch.cuda.Stream()


def side_by_side(sleep, streams) -> None:
    """ "play" takes 3 ms and 1 ms; "learn" begins with it and takes 6 ms; then "log" 2 ms."""
    here = torch.cuda.current_stream()
    for stream in streams:
        stream.wait_stream(here)
    with torch.cuda.stream(streams[0]), scope.operation("play"):
        sleep(3)
        sleep(1)
    with torch.cuda.stream(streams[1]), scope.operation("learn"):
        sleep(6)
    for stream in streams:
        here.wait_stream(stream)
    with scope.operation("log"):
        sleep(2)


WANTED = {"play": (4, 0), "learn": (6, 2), "log": (2, 2)}


def check_gpu_times(recording) -> None:
    """Each operation's GPU time, and that alone, within 2% or 0.2 ms an iteration."""
    found = {one.operation: one for one in recording.gpu()}
    for operation, (milliseconds, alone) in WANTED.items():
        wanted = 1e-3 * ITERATIONS * milliseconds
        tolerance = 0.2e-3 * ITERATIONS
        assert found[operation].seconds == pytest.approx(wanted, rel=0.02, abs=tolerance)
        wanted = 1e-3 * ITERATIONS * alone
        assert found[operation].alone_seconds == pytest.approx(wanted, rel=0.02, abs=tolerance)
    total = sum(row.seconds for row in recording.breakdown())
    assert total == pytest.approx(recording.processes[0].seconds, rel=0.01)
    assert recording.problems == []


def test_kernels_of_known_length_on_two_streams(tmp_path, sleep, streams):
    side_by_side(sleep, streams)
    with scope.record(tmp_path, iterations=ITERATIONS) as recording:
        for _ in range(ITERATIONS + 1):
            with scope.iteration():
                side_by_side(sleep, streams)
    check_gpu_times(recording)


def captured(function) -> torch.cuda.CUDAGraph:
    function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def record_replays(folder, graph):
    with scope.record(folder, iterations=ITERATIONS) as recording:
        for _ in range(ITERATIONS + 1):
            with scope.iteration(), scope.operation("replay"):
                graph.replay()
    return recording


def test_kernels_of_known_length_on_two_branches_of_a_graph(tmp_path, sleep, streams):
    """All kernels are alike, so that only markers tell the branches apart."""
    scope.mark_graphs()
    recording = record_replays(tmp_path, captured(lambda: side_by_side(sleep, streams)))
    check_gpu_times(recording)
    assert {row.operation for row in recording.breakdown()} >= {"play", "learn", "log", "replay"}


def test_parts_lose_nothing_of_graphs(tmp_path, monkeypatch, sleep, streams):
    """Replays are still running when a part ends, and the next one has the same graph."""
    monkeypatch.setattr(parts, "PART_SECONDS", 0.05)
    monkeypatch.setattr(storage, "SECONDS_BETWEEN_WRITES", 0.005)
    scope.mark_graphs()
    graph, replays = captured(lambda: side_by_side(sleep, streams)), 60
    with scope.record(tmp_path) as recording:
        for number in range(replays):
            with scope.iteration(), scope.operation("replay"):
                graph.replay()
            if number % 5 == 4:
                with scope.operation("wait"):
                    torch.cuda.synchronize()
    assert len(recording.processes[0].process.about["parts"]) > 2
    assert recording.problems == []
    found = {one.operation: one for one in recording.gpu()}
    for operation, (milliseconds, alone) in WANTED.items():
        seconds = (found[operation].seconds, found[operation].alone_seconds)
        wanted = (1e-3 * replays * milliseconds, 1e-3 * replays * alone)
        assert seconds == pytest.approx(wanted, rel=0.02, abs=0.2e-3 * replays)


def test_operations_in_a_graph_of_one_stream(tmp_path, sleep):
    numbers = torch.zeros(1000, device="cuda")

    def function():
        with scope.operation("play"):
            numbers.add_(1)
            sleep(2)
        with scope.operation("learn"):
            sleep(4)
            numbers.mul_(2)
            numbers.copy_(numbers.flip(0))

    recording = record_replays(tmp_path, captured(function))
    found = {one.operation: one for one in recording.gpu()}
    for operation, milliseconds in (("play", 2), ("learn", 4)):
        wanted = 1e-3 * ITERATIONS * milliseconds
        assert found[operation].seconds == pytest.approx(wanted, rel=0.02, abs=0.2e-3 * ITERATIONS)
    assert recording.problems == []
    # The launch costs "replay" the CPU; the work is the others'.
    assert "replay" not in found


def test_copies_in_a_graph_are_their_operations(tmp_path, monkeypatch):
    """The driver runs small ones by kernels of its own, if there are no markers."""
    monkeypatch.setattr(capture, "_markers", None)
    numbers = torch.zeros(1000, device="cuda")

    def function():
        with scope.operation("play"):
            numbers.copy_(numbers.flip(0))
            numbers.zero_()
        with scope.operation("learn"):
            numbers.copy_(numbers.flip(0))

    recording = record_replays(tmp_path, captured(function))
    assert {one.operation for one in recording.gpu()} == {"play", "learn"}
    assert recording.problems == []


def test_graphs_save_transitions(tmp_path):
    """RL-Scope's finding F.2: fewer transitions to the backend and to CUDA."""
    numbers = torch.zeros(1000, device="cuda")

    def function():
        for _ in range(50):
            numbers.add_(1)

    graph = captured(function)
    counts = []
    for name, body in (("eager", function), ("graph", graph.replay)):
        with scope.record(tmp_path / name, iterations=ITERATIONS) as recording:
            for _ in range(ITERATIONS + 1):
                with scope.iteration(), scope.operation("work"):
                    body()
        counted = Counter()
        for one in recording.transitions():
            counted[one.target] += one.count
        counts.append(counted)
    eager, replayed = counts
    assert eager["cuda_api"] >= 50 * ITERATIONS
    assert replayed["backend"] == ITERATIONS
    assert replayed["cuda_api"] <= 3 * ITERATIONS


def test_waiting_for_the_gpu_is_the_gpus_time(tmp_path, sleep):
    with scope.record(tmp_path, iterations=ITERATIONS) as recording:
        for _ in range(ITERATIONS + 1):
            with scope.iteration():
                with scope.operation("learn"):
                    sleep(4)
                with scope.operation("log"):
                    torch.cuda.synchronize()
    seconds = Counter()
    for row in recording.breakdown():
        seconds[row.operation, row.resource] += row.seconds
    waited = seconds["learn", "gpu"] + seconds["learn", "both"]
    assert waited == pytest.approx(4e-3 * ITERATIONS, rel=0.02, abs=0.2e-3 * ITERATIONS)
    assert seconds["log", "gpu"] == 0


def test_gpu_use_is_the_share_of_the_window_in_which_kernels_ran(tmp_path, sleep):
    with scope.record(tmp_path) as recording:
        for _ in range(10):
            sleep(5)
            torch.cuda.synchronize()
    process = recording.processes[0].process
    (use,) = gpu_use([process])
    assert use.gpu == torch.cuda.get_device_name(0)
    wanted = 100 * 0.050 / recording.processes[0].seconds
    assert use.kernels == pytest.approx(wanted, rel=0.02)


def test_backward_pass_belongs_to_the_operation_around_it(tmp_path):
    weights = torch.randn(512, 512, device="cuda", requires_grad=True)
    with scope.record(tmp_path) as recording, scope.operation("learn"):
        for _ in range(3):
            (weights @ weights).sum().backward()
    assert {one.operation for one in recording.gpu()} == {"learn"}
    counted = Counter()
    for row in recording.breakdown():
        counted[row.operation, row.level] += row.transitions
    assert counted["learn", "cuda_api"] >= 9


def test_iterations_before_a_recording_are_timed_by_the_gpu(tmp_path, sleep):
    with scope.record(tmp_path, iterations=(6, 8)) as recording:
        for _ in range(8):
            with scope.iteration(), scope.operation("learn"):
                sleep(3)
    reference = recording.processes[0].process.about["reference"]
    assert reference["iterations"] == 5
    assert reference["iteration"] == pytest.approx(3, rel=0.02, abs=0.2)
    assert reference["operations"]["learn"] == pytest.approx(3, rel=0.02, abs=0.2)


def test_light_mode_times_replays(sleep):
    def function():
        with scope.operation("inside"):
            sleep(2)

    graph = captured(function)
    with scope.Light(torch.device("cuda"), every=1) as light:
        for _ in range(4):
            with scope.iteration(), scope.operation("replay"):
                graph.replay()
        torch.cuda.synchronize()
        found = light.milliseconds()
    assert found.keys() == {"replay"}
    assert found["replay"] == pytest.approx(2, rel=0.02, abs=0.2)


def test_memory_of_a_gpu_is_its_operations(tmp_path):
    """torch gives it out in pieces of 512 bytes."""
    before = torch.zeros(1 << 20, device="cuda")
    with scope.record(tmp_path, iterations=ITERATIONS, memory=True) as recording:
        for _ in range(ITERATIONS + 1):
            with scope.iteration():
                with scope.operation("act"):
                    kept = torch.ones(1000, device="cuda")
                with scope.operation("learn"):
                    torch.ones(1 << 20, device="cuda")
    (use,) = [one for one in recording.memory() if one.device == "cuda:0"]
    held = {one.operation: one for one in use.operations}
    assert held["learn"].taken == ITERATIONS * held["learn"].most == ITERATIONS * (4 << 20)
    assert held["act"].kept == 4096 >= kept.nbytes and held["learn"].kept == 0
    assert use.operation == "learn" and use.before >= before.nbytes
    assert use.peak == use.before + held["learn"].at_peak + held["act"].at_peak
