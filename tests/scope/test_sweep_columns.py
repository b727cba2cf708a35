"""The sweep of whole columns beside the walk from event to event; intervals beside each instant."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cule.scope.columns import Calls, joined
from cule.scope.events import LEVELS, Call, Key, Thread, Work
from cule.scope.intervals import Nesting, Toggles
from cule.scope.lanes import Lane, Owners
from cule.scope.sweep import Cells, sweep
from tests.scope.made import marks
from tests.scope.walk import walk

LENGTH = 30
NAMES = ("a", "b", "c")
span = st.tuples(st.integers(-4, LENGTH), st.integers(0, 20)).map(lambda s: (s[0], s[0] + s[1]))
calls = st.lists(
    st.builds(
        lambda s, level, name, waits: Call(*s, level, name, waits_until=max(0, s[0] + waits)),
        span, st.sampled_from(LEVELS[1:]), st.sampled_from(("x", "y")), st.integers(-40, 22),
    ),
    max_size=14,
)  # fmt: skip
works = st.lists(
    st.builds(
        lambda s, name, replay: Work(*s, "k", correlation=replay, key=Key("", name)),
        span, st.sampled_from(NAMES), st.integers(0, 3),
    ),
    max_size=8,
)  # fmt: skip
operations = st.lists(
    st.tuples(span, st.sampled_from(NAMES)).map(lambda s: (*s[0], s[1])), max_size=8
)


def in_order(found):
    return sorted(found, key=lambda call: (call.start, -call.end))


def lane_of(of_operations, of_calls, of_works):
    """A lane whose calls need not nest, as those of torch's threads are among them."""
    thread = Thread(1, "MainThread", marks(*of_operations), in_order(of_calls))
    return Lane("main", thread, Owners(thread.marks, LENGTH), of_works)


def same(cells: Cells, expected: Cells):
    assert dict(cells.nanoseconds) == dict(expected.nanoseconds)
    assert dict(cells.hidden) == dict(expected.hidden)
    assert cells.transitions == expected.transitions
    assert dict(cells.apis) == dict(expected.apis)


@settings(max_examples=300, deadline=None)
@given(operations, calls, works, st.integers(0, 12), st.integers(0, 30))
def test_columns_give_what_the_walk_gives(of_operations, of_calls, of_works, start, length):
    lane = lane_of(of_operations, of_calls, of_works)
    same(sweep(lane, start, start + length), walk(lane, start, start + length))


@given(operations, calls, works, st.lists(st.integers(1, LENGTH - 1), unique=True))
def test_windows_side_by_side_add_up_to_one(of_operations, of_calls, of_works, cuts):
    lane, edges = lane_of(of_operations, of_calls, of_works), [0, *sorted(cuts), LENGTH]
    together = Cells()
    for start, end in itertools.pairwise(edges):
        together.add(sweep(lane, start, end))
    whole = sweep(lane, 0, LENGTH)
    assert dict(together.nanoseconds) == dict(whole.nanoseconds)
    assert dict(together.hidden) == dict(whole.hidden)


def test_many_owners_and_works_have_their_time():
    """More than a word has bits."""
    names = [f"operation {number}" for number in range(90)]
    spans = [(place, place + 1, name) for place, name in enumerate(names)]
    works = [
        Work(place, 91 + place % 7, "k", correlation=place + 1, key=Key("", name))
        for place, name in enumerate(names)
    ]
    thread = Thread(1, "", marks(*spans), [Call(3, 60, "cuda_api", "wait", waits_until=50)])
    lane = Lane("main", thread, Owners(thread.marks, 99), works)
    same(sweep(lane, 0, 99), walk(lane, 0, 99))
    assert len(walk(lane, 0, 99).nanoseconds) > 90


@given(calls)
def test_columns_are_the_calls(of_calls):
    columns = Calls.of(of_calls)
    assert [*columns] == of_calls and len(columns) == len(of_calls)
    halves = [of_calls[: len(of_calls) // 2], Calls.of(of_calls[len(of_calls) // 2 :])]
    assert [*joined(halves)] == in_order(of_calls)


positive = st.lists(span.filter(lambda s: s[0] < s[1]).map(lambda s: (s[0] + 4, s[1] + 4)))


@given(positive)
def test_the_newest_interval_is_found_at_each_time(spans):
    spans.sort(key=lambda one: (one[0], -one[1]))
    columns = [np.array(column, np.int64) for column in zip(*spans, strict=True)] or [
        np.zeros(0, np.int64)
    ] * 2
    nesting, toggles = Nesting(*columns), Toggles(*columns)
    times = np.arange(LENGTH + 30)
    for time, top, on, before in zip(
        times, nesting.top_at(times), toggles.on_at(times), toggles.on_before(times), strict=True
    ):
        open_now = [place for place, one in enumerate(spans) if one[0] <= time < one[1]]
        assert top == max(open_now, default=-1)
        assert on == bool(open_now)
        assert before == any(one[0] < time < one[1] for one in spans)
    for count in range(len(spans) + 1):
        counts = np.full(len(times), count)
        for time, top in zip(times, nesting.top_before(counts, times), strict=True):
            left = [place for place in range(count) if spans[place][1] > time]
            assert top == max(left, default=-1)
