"""The correction beside a simulated machine, which runs a program with book-keeping and without."""

from __future__ import annotations

import random

import pytest

from cule.scope.analysis import analyse
from cule.scope.correction import Removed, corrected
from cule.scope.costs import Costs
from cule.scope.events import Call, Key, Mark, Work
from cule.scope.lanes import assemble
from cule.scope.sweep import sweep
from tests.scope.made import MAIN, launch, marks, process, wait

LATENCY = 4_000


class Machine:
    """Runs a program of steps on a CPU and a GPU with two streams, and notes what happens.

    Args:
        costs: of the book-keeping, which take time where they occur.
    """

    def __init__(self, costs: Costs):
        self.costs, self.now, self.free = costs, 1_000, {1: 0, 2: 0}
        self.calls, self.work, self.marks, self.launches = [], [], [], 0

    def think(self, length: int) -> None:
        self.now += length

    def annotate(self, name: str, begins: bool) -> None:
        half = round(self.costs.annotation / 2)
        self.now += half if begins else 0
        self.marks.append(Mark(self.now, begins, "operation", name))
        self.now += 0 if begins else half

    def call(self, level: str, name: str, length: int, body=()) -> None:
        """A call that runs for so long, and then does what is in its body."""
        call = Call(0, 0, level, name)
        half = round(self.costs.around(call) / 2)
        self.now += half
        call.start = self.now
        self.calls.append(call)
        self.now += length
        for step in body:
            self.do(step)
        call.end = self.now
        self.now += half

    def launch(self, stream: int, length: int) -> None:
        self.launches += 1
        begun = self.now
        self.now += 2_000 + round(self.costs.inside(Call(0, 0, "cuda_api", "cudaLaunchKernel"), 1))
        self.calls.append(Call(begun, self.now, "cuda_api", "cudaLaunchKernel", self.launches))
        start = max(begun + LATENCY, self.free[stream] + 1_000)
        self.free[stream] = start + length
        self.work.append(Work(start, start + length, "k", stream=stream, correlation=self.launches))

    def wait(self) -> None:
        begun = self.now
        cost = round(self.costs.apis.get("cudaDeviceSynchronize", self.costs.api))
        self.now = max(begun + cost + 500, max(self.free.values()) + 3_000)
        self.calls.append(
            Call(begun, self.now, "cuda_api", "cudaDeviceSynchronize", waits_until=self.now)
        )

    def do(self, step) -> None:
        getattr(self, step[0])(*step[1:])

    def run(self, program):
        """The process of a program."""
        for step in program:
            self.do(step)
        calls = sorted(self.calls, key=lambda call: (call.start, -call.end))
        return process(self.now, self.marks, calls, self.work, start=1_000)


def a_program(draw: random.Random, gpu: int) -> list:
    """Operations that think, call torch and launch kernels of about so many nanoseconds."""
    program = []
    for _ in range(12):
        name = draw.choice("abc")
        program.append(("annotate", name, True))
        for _ in range(draw.randrange(1, 6)):
            program.append(("think", draw.randrange(4_000, 30_000)))
            body = []
            if gpu:
                body = [("launch", draw.choice((1, 2)), draw.randrange(gpu // 2, gpu))]
            program.append(("call", "backend", "aten::add", draw.randrange(3_000, 9_000), body))
            if draw.random() < 0.3:
                program.append(("call", "simulator", "step", draw.randrange(9_000, 40_000)))
        program.append(("annotate", name, False))
        if draw.random() < 0.4:
            program += [("wait",), ("think", 2_000)]
    return [*program, ("wait",)]


COSTS = Costs(
    annotation=1_000, boundary=600, operator=3_000, api=800, apis={"cudaLaunchKernel": 1_400}
)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gpu", [0, 8_000, 40_000, 200_000])
def test_corrected_time_line_is_that_of_the_machine_without_book_keeping(seed, gpu):
    """From no GPU over a CPU that is too slow to a GPU that is."""
    program = a_program(random.Random(seed), gpu)
    truth, recorded = (Machine(costs).run(program) for costs in (Costs(), COSTS))
    wanted, found = analyse(truth), analyse(recorded, COSTS)
    assert found.recorded_seconds > wanted.seconds
    assert found.seconds == pytest.approx(wanted.seconds, rel=0.01)
    # What is hidden by other work may differ by a little, as work begins at slightly other times.
    for cell, nanoseconds in wanted.cells[0].nanoseconds.items():
        other = float(found.cells[0].nanoseconds.get(cell, 0))
        assert other == pytest.approx(float(nanoseconds), rel=0.05, abs=15_000), cell


def test_costs_that_the_gpu_covers_shorten_nothing():
    program = [("annotate", "a", True)]
    program += [("call", "backend", "aten::add", 3_000, [("launch", 1, 500_000)])] * 5
    program += [("wait",), ("annotate", "a", False)]
    recorded = Machine(COSTS).run(program)
    found = analyse(recorded, COSTS)
    # All but the first launch's costs, and the annotations.
    assert found.recorded_seconds - found.seconds < 6e-6


def test_markers_take_no_time():
    made = process(
        100, marks((0, 100, "a")), [launch(0, 1, 5, "cudaGraphLaunch"), wait(60, 90)],
        [Work(10, 30, "k", correlation=5), Work(30, 50, "m", "memset", correlation=5),
         Work(50, 80, "k", correlation=5)],
    )  # fmt: skip
    lanes = assemble(made)
    made.work[1].key = Key("", "(book-keeping)")
    corrected(made, lanes, Costs())
    assert [(one.start, one.end) for one in made.work] == [(10, 30), (30, 30), (30, 60)]
    assert made.end == 80
    assert sum(sweep(lanes[0], 0, 80).nanoseconds.values()) == 80


def test_gaps_that_profiling_makes_between_the_nodes_of_a_graph_are_closed():
    works = [Work(10 + 20 * i, 25 + 20 * i, "k", correlation=5) for i in range(3)]
    made = process(
        90, marks((0, 90, "a")), [launch(0, 1, 5, "cudaGraphLaunch"), wait(60, 80)], works,
    )  # fmt: skip
    corrected(made, assemble(made), Costs(graph_node_gpu=3))
    assert [(one.start, one.end) for one in works] == [(10, 25), (27, 42), (44, 59)]


@pytest.mark.parametrize(("asked", "end"), [(50, 59), (62, 62)])
def test_window_ends_with_the_work_or_when_that_is_waited_for(asked, end):
    works = [Work(10 + 20 * i, 25 + 20 * i, "k", correlation=5) for i in range(3)]
    calls = [launch(0, 1, 5, "cudaGraphLaunch"), wait(asked, 90)]
    made = process(max(asked, 65), marks((0, 90, "a")), calls, works)
    made.about["asked"] = asked
    corrected(made, assemble(made), Costs(graph_node_gpu=3))
    assert made.end == end


def test_no_more_is_removed_than_there_is_and_the_rest_a_little_later():
    removed = Removed([0, 10, 20, 100], [(10, 4.0)], [(10, 25.0), (20, 1.0)])
    assert [removed.by(time) for time in (0, 10, 20, 36, 100)] == [0, 4, 14, 30, 30]


def test_what_was_before_the_window_moves_nothing():
    """The warm iteration before a window costs as much as those in it."""
    spans = [(100 * n + 10, 100 * n + 60, "a") for n in range(10)]
    calls = [Call(100 * n + 20, 100 * n + 40, "backend", "x") for n in range(10)]
    made = process(1000, marks(*spans), calls, start=500)
    found = analyse(made, Costs(annotation=10, operator=6))
    assert made.end == 1000 - 5 * 16
    (lane,) = found.lanes
    assert len(lane.owners.calls) == 10
    assert sum(made.start <= time <= made.end for time, _ in lane.owners.calls) == 5
    cells = found.cells[0].nanoseconds
    assert cells[Key("", "a"), "cpu", "backend"] == 5 * 20
    assert cells[Key("", "a"), "cpu", "python"] == 5 * (30 - 6)


def test_correction_without_costs_changes_nothing():
    recorded = Machine(Costs()).run(a_program(random.Random(1), 20_000))
    before = [(one.start, one.end) for one in recorded.work]
    calls = [(call.start, call.end) for call in recorded.threads[MAIN].calls]
    found = analyse(recorded, Costs())
    assert found.seconds == found.recorded_seconds
    assert [(one.start, one.end) for one in recorded.work] == before
    assert [(call.start, call.end) for call in recorded.threads[MAIN].calls] == calls
