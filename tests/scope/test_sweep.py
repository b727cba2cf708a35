"""The overlap sweep beside an oracle that looks at each instant by itself."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from cule.scope.events import NOBODY, Call, Key, Mark, Work
from cule.scope.lanes import Lane, Owners, assemble
from cule.scope.sweep import sweep
from tests.scope.made import MAIN, Thread, kernel, launch, marks, process, wait

LENGTH = 40
NAMES = ("a", "b", "c")


def nested(spans):
    """Those of the spans that nest with all before them, outer ones first."""
    kept = []
    for start, end, *what in spans:
        fits = all(
            end <= one[0] or start >= one[1] or (start >= one[0] and end <= one[1])
            or (one[0] >= start and one[1] <= end)
            for one in kept
        )  # fmt: skip
        if fits and start < end and not any((start, end) == one[:2] for one in kept):
            kept.append((start, end, *what))
    return sorted(kept, key=lambda one: (one[0], -one[1]))


span = st.tuples(st.integers(-3, LENGTH), st.integers(1, 20)).map(lambda s: (s[0], s[0] + s[1]))
operations = st.lists(st.tuples(span, st.sampled_from(NAMES)).map(lambda s: (*s[0], s[1])))
phases = st.lists(span.map(lambda s: (*s, "training")), max_size=2)
levels = st.sampled_from(("simulator", "backend", "cuda_api"))
calls = st.lists(
    st.tuples(span, levels, st.booleans()).map(lambda s: (*s[0], s[1], s[2] and s[1] == "cuda_api"))
)
works = st.lists(
    st.tuples(span, st.sampled_from((*NAMES, "")), st.integers(0, 2)).map(lambda s: (*s[0], *s[1:]))
)


def owner_at(time, of_operations, of_phases):
    """The innermost operation and phase at an instant."""
    found = {"operation": NOBODY.operation, "phase": NOBODY.phase}
    for kind, spans in (("operation", of_operations), ("phase", of_phases)):
        open_now = [one for one in spans if one[0] <= time < one[1]]
        if open_now:
            found[kind] = max(open_now, key=lambda one: (one[0], -one[1]))[2]
    return Key(found["phase"], found["operation"])


def coming_at(time, of_works):
    """Whose work the graphs that run at an instant wait for."""
    for number in {one[3] for one in of_works} - {0}:
        replay = sorted((one for one in of_works if one[3] == number), key=lambda one: one[0])
        running = any(one[0] <= time < one[1] for one in replay)
        later = [one for one in replay if one[0] > time]
        if replay[0][0] <= time and later and not running:
            yield Key("", later[0][2])


def oracle(of_operations, of_phases, of_calls, of_works):
    """Cells and hidden time, instant by instant."""
    cells, hidden = Counter(), Counter()
    for time in range(LENGTH):
        owner = owner_at(time, of_operations, of_phases)
        open_now = [one for one in of_calls if one[0] <= time < one[1]]
        level = max(open_now, key=lambda one: (one[0], -one[1]))[2] if open_now else "python"
        waits = any(one[3] for one in open_now)
        running = {Key("", one[2]) for one in of_works if one[0] <= time < one[1]}
        if not running and waits:
            coming = set(coming_at(time, of_works)) or {owner}
            for key in coming:
                cells[key, "none", level] += Fraction(1, len(coming))
        elif not running:
            cells[owner, "cpu", level] += 1
        elif owner in running and not waits:
            cells[owner, "both", level] += 1
        else:
            for key in running:
                cells[key, "gpu", ""] += Fraction(1, len(running))
            if not waits:
                hidden[owner, level] += 1
    return cells, hidden


@settings(max_examples=300, deadline=None)
@given(operations, phases, calls, works)
def test_sweep_agrees_with_an_oracle_at_each_instant(of_operations, of_phases, of_calls, of_works):
    of_operations, of_phases = nested(of_operations), nested(of_phases)
    of_calls = nested(of_calls)
    thread = Thread(
        MAIN,
        calls=[
            Call(start, end, level, "x", waits_until=end if waits else 0)
            for start, end, level, waits in of_calls
        ],
    )
    of_thread = marks(*of_operations) + marks(*of_phases, kind="phase")
    of_thread.sort(key=lambda mark: mark.time)
    lane = Lane("main", thread, Owners(of_thread, LENGTH))
    lane.work = [
        Work(s, e, "k", stream=n, key=Key("", name), correlation=n) for s, e, name, n in of_works
    ]
    cells = sweep(lane, 0, LENGTH)
    wanted, hidden = oracle(of_operations, of_phases, of_calls, of_works)
    assert dict(cells.nanoseconds) == dict(wanted)
    assert dict(cells.hidden) == dict(hidden)
    assert sum(cells.nanoseconds.values()) == LENGTH


def test_sweep_counts_transitions_between_levels():
    """Python to backend to CUDA and back, twice; a call of no length counts; one from before does
    not."""
    of_calls = [
        Call(-5, 2, "simulator", "before"),
        Call(3, 9, "backend", "aten::add"), launch(4, 5, 1), launch(6, 7, 2),
        Call(7, 8, "backend", "aten::inner"),
        Call(12, 12, "simulator", "quick"),
        Call(14, 18, "backend", "aten::mul"), launch(15, 16, 3),
    ]  # fmt: skip
    lane = assemble(process(20, marks((1, 10, "a"), (13, 19, "b")), of_calls))[0]
    a, b = Key("", "a"), Key("", "b")
    assert sweep(lane, 0, 20).transitions == {
        (a, "cpu", "python", "backend"): 1, (a, "cpu", "backend", "cuda_api"): 2,
        (NOBODY, "cpu", "python", "simulator"): 1, (b, "cpu", "python", "backend"): 1,
        (b, "cpu", "backend", "cuda_api"): 1,
    }  # fmt: skip


def test_sweep_gives_work_to_the_operation_that_launched_it():
    """Two operations are launched one after the other; then the CPU waits in a third."""
    of_calls = [launch(1, 2, 1), launch(11, 12, 2), wait(20, 60)]
    made = process(
        70, marks((0, 10, "play"), (10, 20, "learn"), (20, 65, "log")), of_calls,
        [kernel(5, 30, 1), kernel(30, 58, 2)],
    )  # fmt: skip
    lane = assemble(made)[0]
    cells = sweep(lane, 0, 70)
    play, learn, log = (Key("", name) for name in ("play", "learn", "log"))
    assert dict(cells.nanoseconds) == {
        (play, "cpu", "python"): 4, (play, "cpu", "cuda_api"): 1, (play, "both", "python"): 5,
        (play, "gpu", ""): 20, (learn, "gpu", ""): 28, (log, "none", "cuda_api"): 2,
        (log, "cpu", "python"): 5, (NOBODY, "cpu", "python"): 5,
    }  # fmt: skip
    assert dict(cells.hidden) == {(learn, "python"): 9, (learn, "cuda_api"): 1}


def test_gap_between_two_kernels_of_a_graph_belongs_to_the_second():
    """While the CPU works, it is the CPU's; before and after the graph it is, too."""
    of_calls = [Call(0, 100, "cuda_api", "wait", waits_until=100)]
    lane = assemble(process(120, marks((0, 110, "log")), of_calls))[0]
    lane.work = [
        Work(start, end, "k", correlation=7, key=Key("", name))
        for start, end, name in ((10, 20, "a"), (20, 30, "b"), (24, 27, "a"), (33, 40, "a"),
                                 (105, 106, "b"))
    ]  # fmt: skip
    a, b, log = (Key("", name) for name in ("a", "b", "log"))
    assert dict(sweep(lane, 0, 120).nanoseconds) == {
        (log, "none", "cuda_api"): 10, (a, "gpu", ""): 17 + Fraction(3, 2),
        (b, "gpu", ""): 8 + Fraction(3, 2), (a, "none", "cuda_api"): 3,
        (b, "none", "cuda_api"): 60, (log, "cpu", "python"): 9, (NOBODY, "cpu", "python"): 10,
    }  # fmt: skip


def test_copy_that_is_waited_for_waits_until_it_is_done():
    made = process(
        20, marks((0, 20, "a")), [Call(2, 12, "cuda_api", "cudaMemcpyAsync", 1, waits_until=9)],
        [kernel(4, 9, 1)],
    )  # fmt: skip
    cells = sweep(assemble(made)[0], 0, 20)
    a = Key("", "a")
    assert dict(cells.nanoseconds) == {
        (a, "cpu", "python"): 10, (a, "none", "cuda_api"): 2, (a, "gpu", ""): 5,
        (a, "cpu", "cuda_api"): 3,
    }  # fmt: skip


def test_backward_pass_on_another_thread_belongs_to_the_lane_that_waits_for_it():
    helper = [
        Call(-4, -2, "backend", "aten::x"), Call(4, 8, "backend", "aten::mm"), launch(5, 6, 1),
    ]  # fmt: skip
    made = process(
        20, marks((0, 12, "learn")), [Call(2, 10, "backend", "torch.autograd.run_backward")],
        [kernel(7, 15, 1)], helper,
    )  # fmt: skip
    lanes = assemble(made)
    assert [lane.name for lane in lanes] == ["main"]
    assert made.work[0].key == Key("", "learn")
    cells = sweep(lanes[0], 0, 20)
    learn = Key("", "learn")
    assert cells.nanoseconds[learn, "cpu", "cuda_api"] == 1
    assert cells.nanoseconds[learn, "cpu", "backend"] == 4
    assert cells.nanoseconds[learn, "both", "backend"] == 3
    assert cells.transitions[learn, "cpu", "backend", "cuda_api"] == 1


def test_threads_with_annotations_are_lanes_of_their_own():
    made = process(20, marks((0, 20, "train")), [Call(1, 5, "backend", "x")])
    made.threads[9] = Thread(9, "loader", marks((2, 6, "load")), [launch(3, 4, 5)])
    made.work = [kernel(5, 9, 5)]
    lanes = assemble(made)
    assert [lane.name for lane in lanes] == ["main", "main:loader"]
    assert [len(lane.work) for lane in lanes] == [0, 1]
    for lane in lanes:
        assert sum(sweep(lane, 0, 20).nanoseconds.values()) == 20


def test_operation_left_open_is_said_and_counts_up_to_the_end():
    made = process(20, [Mark(2, True, "operation", "a"), Mark(5, True, "operation", "b")])
    lanes = assemble(made)
    cells = sweep(lanes[0], 0, 20)
    assert cells.nanoseconds[Key("", "b"), "cpu", "python"] == 15
    assert [p.split(" to end")[0] for p in made.problems] == [
        "expected operation 'a'", "expected operation 'b'",
    ]  # fmt: skip


def test_operation_whose_inside_is_left_open_ends_it_there():
    of_main = [
        Mark(1, True, "operation", "a"), Mark(3, True, "operation", "b"),
        Mark(8, False, "operation", "a"), Mark(9, False, "operation", "stranger"),
    ]  # fmt: skip
    made = process(20, of_main)
    cells = sweep(assemble(made)[0], 0, 20)
    assert dict(cells.nanoseconds) == {
        (NOBODY, "cpu", "python"): 13, (Key("", "a"), "cpu", "python"): 2,
        (Key("", "b"), "cpu", "python"): 5,
    }  # fmt: skip
    assert len(made.problems) == 1
