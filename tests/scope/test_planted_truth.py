"""A program that spends known times: the breakdown finds them."""

from __future__ import annotations

from collections import Counter

import pytest

from cule import scope
from tests.scope.planted import Ledger, iterate

ITERATIONS = 12


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The program's own ledger, and its recording."""
    ledger = Ledger()
    folder = tmp_path_factory.mktemp("planted")
    with scope.record(
        folder, iterations=ITERATIONS, boundaries=["tests.scope.planted_simulator"]
    ) as recording:
        for iteration in range(ITERATIONS + 1):
            with scope.iteration():
                if iteration == 1:
                    ledger = Ledger()
                    ledger.at(scope.UNATTRIBUTED, "python")
                iterate(ledger)
                ledger.at(scope.UNATTRIBUTED, "python")
    return ledger, recording


def test_each_cell_is_found_within_two_percent(planted):
    """Or 0.2 ms for each iteration's cell, where that is more."""
    ledger, recording = planted
    del ledger.seconds["", ""]
    found = Counter()
    for row in recording.breakdown():
        found[row.operation, row.level] += row.seconds
    assert found.keys() == ledger.seconds.keys()
    for cell, seconds in ledger.seconds.items():
        assert found[cell] == pytest.approx(seconds, rel=0.02, abs=0.2e-3 * ITERATIONS), cell


def test_phases_calls_and_transitions_are_found(planted):
    _, recording = planted
    rows = recording.breakdown()
    assert {row.phase for row in rows if row.operation == "learn"} == {"learning"}
    assert {row.phase for row in rows if row.operation in ("search", "expand")} == {""}
    calls = {row.operation: row.calls for row in rows}
    assert calls == {
        "search": ITERATIONS, "expand": 2 * ITERATIONS, "learn": ITERATIONS, scope.UNATTRIBUTED: 0,
    }  # fmt: skip
    counted = {(t.operation, t.source, t.target): t.count for t in recording.transitions()}
    assert counted == {
        ("search", "python", "simulator"): ITERATIONS,
        ("expand", "python", "simulator"): 2 * ITERATIONS,
        ("expand", "python", "backend"): 2 * ITERATIONS,
        ("learn", "python", "backend"): 3 * ITERATIONS,
    }


def test_rows_add_up_to_the_wall_clock(planted):
    _, recording = planted
    (found,) = recording.processes
    assert found.process.iterations == ITERATIONS
    total = sum(row.seconds for row in recording.breakdown())
    assert total == pytest.approx(found.seconds, rel=1e-6)
    assert recording.problems == []
    assert recording.complete
