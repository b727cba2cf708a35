"""How far iterations that were recorded are off from those that were not, and how sure that is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from cule.scope.events import Process

# With fewer iterations on one side nothing is said.
LEAST_ITERATIONS = 5
CONFIDENCE = 0.95


def iteration_times(process: Process) -> list[float]:
    """The milliseconds of each iteration that begins in the window, up to the next one's begin."""
    begins = sorted(
        mark.time
        for thread in process.threads.values()
        for mark in thread.marks
        if mark.kind == "iteration" and mark.begins and process.start <= mark.time < process.end
    )
    ends = [*begins[1:], process.end]
    return [
        (end - begin - sum(b - a for a, b in process.pauses if begin <= a and b <= end)) / 1e6
        for begin, end in zip(begins, ends, strict=True)
    ]


def _student_t(probability: float, degrees: float) -> float:
    """The quantile of Student's t distribution.

    By the expansion of Abramowitz and Stegun (1964), 26.7.5, which for 4 degrees of freedom or more
    is within a hundredth.
    """
    z = statistics.NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / degrees**power for power, term in enumerate(terms))


def change(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float] | None:
    """By how many percent the mean has changed, and the ends of an interval around that.

    The interval is Welch's for the difference of two means (Biometrika 34, 1947), as if the first
    mean were known where it divides.

    Args:
        before: at least LEAST_ITERATIONS times.
        after: the same of the others.

    Returns:
        Percent: the change, and the least and the greatest that it may be; None: there are too few
        times.
    """
    if min(len(before), len(after)) < LEAST_ITERATIONS or statistics.fmean(before) <= 0:
        return None
    scale = 100 / statistics.fmean(before)
    difference = statistics.fmean(after) - statistics.fmean(before)
    parts = [statistics.variance(some) / len(some) for some in (before, after)]
    error = math.sqrt(sum(parts))
    if not error:
        return scale * difference, scale * difference, scale * difference
    # Welch and Satterthwaite's.
    degrees = error**4 / sum(
        part**2 / (len(some) - 1) for part, some in zip(parts, (before, after), strict=True)
    )
    margin = _student_t(0.5 + CONFIDENCE / 2, degrees) * error
    return scale * difference, scale * (difference - margin), scale * (difference + margin)
