"""Which calls a GPU would capture together, on which streams, with which waits: recorded."""

from __future__ import annotations

import contextlib
import itertools
import random

import pytest
import torch
from programs import FOLLOWING, oracle, random_program

from cule.scope.annotations import listen, stop_listening
from cule.train.plan.graphs import CALLS_BEFORE_CAPTURE, Launcher
from cule.train.plan.passes import Passes
from cule.train.plan.plan import Plan
from cule.train.plan.program import Program

SHAPE = (3,)


class Recorder:
    """Streams that write down what happens; a captured function is replayed by calling it."""

    def __init__(self):
        self.told, self.stream, self.events = [], 0, 0
        self.captures, self.replays, self.executing = [], [], True

    @contextlib.contextmanager
    def on(self, stream):
        before, self.stream = self.stream, stream
        yield
        self.stream = before

    def record(self, stream):
        self.events += 1
        self.told.append(("record", stream, self.events))
        return self.events

    def wait(self, stream, event):
        self.told.append(("wait", stream, event))

    def capture(self, function):
        before, self.told = self.told, []
        number = len(self.captures)

        def replay():
            self.replays.append(number)
            before, self.told = self.told, []
            function()
            self.told = before

        before_, self.executing = self.executing, False
        function()
        self.executing = before_
        self.captures.append(self.told)
        self.told = before
        return replay


def a2c_like(lag, *, captured=True, period=1):
    """Acting, emulating, learning from five steps, handing over; `log` has what ran where."""
    p = Program(period=period)
    t, u = p.t, p.u
    recorder = Recorder()

    def note(name):
        def function(*_):
            if recorder.executing:
                recorder.told.append(("run", recorder.stream, name))
            else:
                recorder.told.append(("node", recorder.stream, name))
            return {"act": torch.zeros(SHAPE), "emulate": torch.zeros(SHAPE)}.get(name, ())

        return function

    x, a = p.recurrent("x", SHAPE, initial=0), p.recurrent("a", SHAPE)
    net, acting = p.object("net", [0], output=True), p.object("acting", [0])
    start = period * 8 if lag else period * 8 - 1
    stop, handed = (t if lag else t + 1), start + (period - 1 if lag else 0)

    def learn():
        p.operation("learn", note("learn"), role="learn", every=period, start=start,
                    reads=[x[stop - 5 : stop + 1], a[stop - 5 : stop], net[u]],
                    writes=[net[u + 1]])  # fmt: skip

    def act():
        version = ((t - 1 - handed + period) // period).at_least(0)
        p.operation("act", note("act"), role="act", reads=[x[t], acting[version]], writes=[a[t]])
        p.operation("emulate", note("emulate"), role="simulate", reads=[a[t]], writes=[x[t + 1]],
                    captured=captured)  # fmt: skip

    for declare in (learn, act) if lag else (act, learn):
        declare()
    p.operation("hand over", note("hand over"), role="hand over", every=period, start=handed,
                reads=[net[u + 1], acting[u]], writes=[acting[u + 1]])  # fmt: skip
    plan = Plan(p)
    launcher = Launcher(plan.executors, recorder)
    return launcher, recorder


def runs(told):
    return [entry[1:] for entry in told if entry[0] in ("run", "node")]


def test_iteration_with_lag_is_one_graph_with_two_branches():
    launcher, recorder = a2c_like(1)
    for iteration in range(8 + CALLS_BEFORE_CAPTURE + 3):
        launcher.run(iteration)
    # Without learning it is another graph.
    assert len(recorder.captures) == 2
    assert recorder.replays[-3:] == [1, 1, 1]
    captured = recorder.captures[1]
    assert runs(captured) == [(1, "learn"), (0, "act"), (0, "emulate"), (0, "hand over")]
    records = {number: stream for kind, stream, number in captured if kind == "record"}
    waits = [(stream, records[number]) for kind, stream, number in captured if kind == "wait"]
    # The branch begins after what was before; handing over waits for it; so does the end.
    assert waits == [(1, 0), (0, 1), (0, 1)]
    order = [entry[0] for entry in captured]
    learned = captured.index(("node", 1, "learn"))
    assert order[:2] == ["record", "wait"] and learned == 2
    hand_over = captured.index(("node", 0, "hand over"))
    assert any(entry[0] == "wait" for entry in captured[learned:hand_over])


def test_iteration_without_lag_has_one_stream():
    launcher, recorder = a2c_like(0)
    for iteration in range(8 + CALLS_BEFORE_CAPTURE + 3):
        launcher.run(iteration)
    assert all(entry[1] == 0 for told in recorder.captures for entry in told)
    assert not any(entry[0] == "wait" for told in recorder.captures for entry in told)
    assert [name for _, name in runs(recorder.captures[1])] == [
        "act", "emulate", "learn", "hand over",
    ]  # fmt: skip


def test_what_a_graph_may_not_hold_runs_between_graphs():
    launcher, recorder = a2c_like(1, captured=False, period=2)
    for iteration in range(20):
        launcher.run(iteration)
    for told in recorder.captures:
        assert not any(name == "emulate" for _, name in runs(told))
    captured = sorted({name for told in recorder.captures for _, name in runs(told)})
    assert captured == ["act", "hand over", "learn"]
    recorder.told.clear()
    launcher.run(20)
    assert runs(recorder.told) == [(0, "emulate")] * 2
    # Learning's branch is there, too.
    assert ("wait", 1) in [entry[:2] for entry in recorder.told]


def test_an_iteration_without_graphs_has_their_memory():
    launcher, recorder = a2c_like(0)
    for iteration in range(8 + CALLS_BEFORE_CAPTURE + 3):
        launcher.run(iteration)
    count = len(recorder.captures)
    recorder.told.clear()
    launcher.run(20, captured=False)
    assert recorder.told and not launcher.captured
    launcher.run(21)
    assert launcher.captured == 1 and len(recorder.captures) == count + 1


def test_long_iteration_is_cut_into_equal_graphs():
    launcher, recorder = a2c_like(0, period=50)
    launcher.most_steps = 20
    for iteration in range(12):
        launcher.run(iteration)
    # The first step, the others, learning with what is at the same time, and the ends.
    assert 2 <= len(recorder.captures) <= 6
    assert len(recorder.replays) > 300


# Of the first 40 programs 19 and 36 have iterations of as many steps that are different ones.
@pytest.mark.parametrize(
    "seeds", [[*range(6), 19, 36], pytest.param(range(40), marks=pytest.mark.slow)],
    ids=["some", "many"],
)  # fmt: skip
def test_replayed_programs_compute_the_same(seeds):
    """Clocks are on the device: what is replayed reads and writes where it is in time."""
    for seed in seeds:
        program, wanted = random_program(seed)
        Plan(program).run(9)
        for most in (0, 10_000):
            program, logs = random_program(seed)
            plan = Plan(program)
            launcher = Launcher(plan.executors, Eager(), most_steps=most)
            for iteration in range(9):
                launcher.run(iteration)
            assert logs == wanted


class Eager(Recorder):
    """Captures without a trace."""

    def capture(self, function):
        return function


class Queues:
    """Streams whose work is done in any order that events allow."""

    def __init__(self, choose):
        self.choose, self.queues, self.stream, self.events = choose, {}, 0, 0

    @contextlib.contextmanager
    def on(self, stream):
        before, self.stream = self.stream, stream
        yield
        self.stream = before

    def put(self, stream, kind, what):
        self.queues.setdefault(stream, []).append((kind, what))

    def record(self, stream):
        self.events += 1
        self.put(stream, "record", self.events)
        return self.events

    def wait(self, stream, event):
        self.put(stream, "wait", event)

    def work_off(self):
        """Does all work; a circle of waits would leave nothing to choose from."""
        done = set()
        while any(self.queues.values()):
            ready = [
                queue for queue in self.queues.values()
                if queue and (queue[0][0] != "wait" or queue[0][1] in done)
            ]  # fmt: skip
            kind, what = self.choose(ready).pop(0)
            if kind == "run":
                what()
            elif kind == "record":
                done.add(what)


class Queueing(Launcher):
    """Puts work on the queues of streams in place of doing it."""

    def _step(self, executor, step):
        queues = self.streams
        queues.put(queues.stream, "run", lambda: executor.make(step))


def with_streams(count):
    """Seeds and passes of programs with several streams; in half of them a group follows."""
    usual = (seed for seed in itertools.count() if any(g.stream for g in planned(seed).groups))
    return [
        *((seed, Passes(beside=True)) for seed in FOLLOWING[:count]),
        *((seed, Passes()) for seed in itertools.islice(usual, count)),
    ]


def planned(seed):
    return Plan(random_program(seed)[0])


@pytest.mark.parametrize("count", [5, pytest.param(15, marks=pytest.mark.slow)])
def test_streams_wait_for_all_that_they_need(count):
    """Programs with several streams, also with a group that follows another, in random orders."""
    for seed, passes in with_streams(count):
        program, wanted = random_program(seed)
        oracle(program, 6 * program.period)
        for order in range(3):
            program, logs = random_program(seed)
            plan, queues = Plan(program, passes=passes), Queues(random.Random(order).choice)
            assert any(group.stream for group in plan.groups)
            assert any(group.follows for group in plan.groups) == bool(passes.beside)
            launcher = Queueing(plan.executors, queues, capture=False)
            for iteration in range(6):
                launcher.run(iteration)
                queues.work_off()
            assert logs == wanted


class Heard:
    """What is told to a listener of cule.scope: the open operations at each begin."""

    def __init__(self):
        self.open, self.begun = [], []

    def began(self, annotation):
        self.open.append(annotation.name)
        self.begun.append(tuple(self.open))

    def ended(self, annotation):
        assert self.open.pop() == annotation.name


@pytest.mark.parametrize("captured", [True, False])
def test_graph_is_one_operation_and_calls_in_it_have_names(captured):
    launcher, _ = a2c_like(1, captured=captured)
    for iteration in range(20):
        launcher.run(iteration)
    heard = Heard()
    listen(heard)
    try:
        launcher.run(20)
    finally:
        stop_listening(heard)
    parts = {"playing", "learning", "handing over"}
    # The recorder replays a graph by calling what was captured.
    if captured:
        assert [names for names in heard.begun if len(names) == 1] == [("playing and learning",)]
        assert {names[1] for names in heard.begun if len(names) == 2} == parts
    else:
        assert {names[0] for names in heard.begun} == parts
    assert {names[-1] for names in heard.begun if len(names) > 1} - parts == {
        "storage", "gathering", "inference", "simulation", "learn", "hand over",
    }  # fmt: skip
