"""A program that spends known times: the breakdown finds them.

Each iteration is compared with what the program's own clock says of it. On a busy machine another
process may run in the microsecond between the program's clock and the recording's, in some of the
iterations: so the median iteration counts, for each cell.
"""

from __future__ import annotations

import statistics

import pytest

from cule import scope
from tests.scope.planted import Ledger, cells_of_iterations, iterate

ITERATIONS = 15


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The program's own ledger of each iteration, and its recording."""
    ledgers = []
    folder = tmp_path_factory.mktemp("planted")
    with scope.record(
        folder, iterations=ITERATIONS, boundaries=["tests.scope.planted_simulator"]
    ) as recording:
        for _ in range(ITERATIONS + 1):
            with scope.iteration():
                ledgers.append(Ledger())
                ledgers[-1].at(scope.UNATTRIBUTED, "python")
                iterate(ledgers[-1])
                ledgers[-1].at("", "")
    return ledgers[1:], recording


def test_each_cell_is_found_within_two_percent_or_a_fifth_of_a_millisecond(planted):
    ledgers, recording = planted
    found = cells_of_iterations(recording.processes[0])[-ITERATIONS:]
    cells = {cell for ledger in ledgers for cell in ledger.seconds} - {("", "")}
    assert len(cells) == 8
    assert {cell for of_iteration in found for cell in of_iteration} == cells
    for cell in cells:
        wanted = statistics.median(ledger.seconds[cell] for ledger in ledgers)
        differences = [
            of_iteration[cell] - ledger.seconds[cell]
            for of_iteration, ledger in zip(found, ledgers, strict=True)
        ]
        assert abs(statistics.median(differences)) <= max(0.02 * wanted, 0.2e-3), cell


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
