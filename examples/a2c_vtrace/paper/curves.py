"""Scores of a training over time, as its row has them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from examples.a2c_vtrace.paper.rows import Row

Curve = list[tuple[float, float]]
# Points of a mean curve.
POINTS = 101


def curve_of(row: Row) -> Curve:
    """Seconds of training and mean score of each evaluation; empty if the row has none."""
    found = row.values.get("evaluations") or []
    return [(float(each["seconds"]), float(each["score"])) for each in found]


def at(curve: Curve, seconds: float) -> float:
    """The score at a time, on the line between the evaluations before and after it."""
    before = curve[0]
    for after in curve:
        if after[0] >= seconds:
            width = after[0] - before[0]
            share = (seconds - before[0]) / width if width > 0 else 1.0
            return before[1] + max(0.0, share) * (after[1] - before[1])
        before = after
    return before[1]


def mean_curve(curves: Sequence[Curve]) -> tuple[list[float], list[float], list[float]]:
    """Times, and mean and deviation of the scores then.

    A training that has ended at the goal stays at its last score. The times end with the last.
    """
    begin = max(curve[0][0] for curve in curves)
    end = max(curve[-1][0] for curve in curves)
    times = [begin + (end - begin) * i / (POINTS - 1) for i in range(POINTS)]
    scores = [[at(curve, time) for curve in curves] for time in times]
    return (
        times,
        [statistics.mean(of) for of in scores],
        [statistics.pstdev(of) for of in scores],
    )
