"""Measures the cost of each piece of book-keeping in small loops, on this machine."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch

from cule.scope.activities import Activities, records_gpu, synchronize
from cule.scope.annotations import listen, operation, stop_listening
from cule.scope.boundary import Boundaries
from cule.scope.collect import Collected
from cule.scope.costs import Costs

# Short rounds, so that some are not disturbed on a busy machine.
CALLS, ROUNDS, GPU_ROUNDS, GRAPH_NODES, REPLAYS = 200, 60, 7, 64, 20
# Calls that a GPU's queue holds.
GPU_CALLS = 200


def nanoseconds_of(function: Callable[[], Any], calls: int) -> float:
    """How long a call takes on the CPU; the wait for a GPU comes after the clock has stopped."""
    begun = perf_counter_ns()
    for _ in range(calls):
        function()
    passed = perf_counter_ns() - begun
    synchronize()
    return passed / calls


def difference(
    function: Callable[[], Any], begin: Callable[[], Any], end: Callable[[], Any], calls: int
) -> float:
    """How much longer a call takes between `begin` and `end`: delta calibration.

    Rounds with and without them alternate. The fastest rounds count, as disturbances only make a
    loop slower.
    """
    without, within = [], []
    for _ in range(ROUNDS):
        without.append(nanoseconds_of(function, calls))
        begin()
        within.append(nanoseconds_of(function, calls))
        end()
    return max(0.0, min(within) - min(without))


def annotation_cost() -> float:
    """The extra nanoseconds of an annotation that is recorded, over an idle one."""

    def annotate() -> None:
        with operation("calibration"):
            pass

    collected: list[Collected] = []

    def begin() -> None:
        collected.append(Collected())
        listen(collected[-1])

    return difference(annotate, begin, lambda: stop_listening(collected[-1]), CALLS)


def boundary_cost() -> float:
    """The nanoseconds of a call through a boundary."""

    def call() -> None:
        pass

    wrapped = Boundaries(Collected(), {}).timed(call, "simulator", "calibration")
    plain = min(nanoseconds_of(call, CALLS) for _ in range(ROUNDS))
    return max(0.0, min(nanoseconds_of(wrapped, CALLS) for _ in range(ROUNDS)) - plain)


class _Profile:
    """A profile that begins and ends; `operators` counts its events of torch's operators."""

    def __init__(self, with_gpu: bool):
        self.with_gpu = with_gpu
        self.activities: Activities | None = None

    def begin(self) -> None:
        self.activities = Activities(self.with_gpu)
        self.activities.start()

    def end(self) -> None:
        assert self.activities is not None
        self.activities.stop()

    @property
    def operators(self) -> int:
        assert self.activities is not None
        return self.activities.count_operators()


def operator_cost() -> float:
    """The nanoseconds of an event of one of torch's operators."""
    tensor = torch.zeros(1)
    profiled = _Profile(with_gpu=False)
    profiled.begin()
    tensor.add_(1)
    profiled.end()
    # One call of Python's is several of torch's operators.
    events = max(profiled.operators, 1)
    return difference(lambda: tensor.add_(1), profiled.begin, profiled.end, CALLS) / events


# On a GPU -----------------------------------------------------------------------------------------


def _call_time(function: Callable[[], Any], with_gpu: bool) -> float:
    """Nanoseconds of a call on the CPU, in a profile that records GPUs or does not."""
    times = []
    for _ in range(GPU_ROUNDS):
        profiled = _Profile(with_gpu)
        profiled.begin()
        nanoseconds_of(function, 10)
        times.append(nanoseconds_of(function, GPU_CALLS))
        profiled.end()
    return min(times)


def graph_of(nodes: int, tensor: torch.Tensor) -> torch.cuda.CUDAGraph:
    """A graph of so many small kernels, one after the other."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            tensor.add_(1)
    return graph


def gpu_nanoseconds_of(function: Callable[[], Any], calls: int) -> float:
    """How long a call takes on the GPU, when one follows the other."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    function()
    begin.record()
    for _ in range(calls):
        function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e6 / calls


def gpu_costs(costs: Costs) -> None:
    """Adds the costs of CUPTI for each CUDA call: difference of averages.

    Everything is measured without CUPTI first: once loaded, it slows calls down while nobody
    records, too (https://github.com/pytorch/pytorch/issues/144455).
    """
    tensor, other = torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda")
    event, stream = torch.cuda.Event(), torch.cuda.current_stream()
    tensor.add_(1)
    small, large = graph_of(1, tensor), graph_of(GRAPH_NODES, tensor)
    calls: dict[str, Callable[[], Any]] = {
        "cudaLaunchKernel": lambda: tensor.add_(1),
        "cudaMemcpyAsync": lambda: other.copy_(tensor),
        "cudaEventRecord": lambda: event.record(),
        "cudaEventRecordWithFlags": lambda: event.record(),
        "cudaStreamSynchronize": lambda: stream.synchronize(),
        "cudaDeviceSynchronize": lambda: torch.cuda.synchronize(),
        "cudaGraphLaunch": small.replay,
        "many": large.replay,
    }
    without = {name: _call_time(call, with_gpu=False) for name, call in calls.items()}
    plain = min(gpu_nanoseconds_of(large.replay, REPLAYS) for _ in range(GPU_ROUNDS))
    costs.apis = {
        name: max(0.0, _call_time(call, with_gpu=True) - without[name])
        for name, call in calls.items()
    }
    many = costs.apis.pop("many")
    costs.graph_node = max(0.0, many - costs.apis["cudaGraphLaunch"]) / (GRAPH_NODES - 1)
    costs.api = statistics.median(costs.apis.values())
    profiled = _Profile(with_gpu=True)
    profiled.begin()
    slowed = min(gpu_nanoseconds_of(large.replay, REPLAYS) for _ in range(GPU_ROUNDS))
    profiled.end()
    costs.graph_node_gpu = max(0.0, slowed - plain) / GRAPH_NODES


def measure_loops() -> Costs:
    """The costs of book-keeping in small loops."""
    costs = Costs(annotation_cost(), boundary_cost(), operator_cost())
    if torch.cuda.is_available() and records_gpu():
        gpu_costs(costs)
    return costs
