"""Which iterations of a program are recorded."""

from __future__ import annotations

from typing import Any

from cule.errors import InvalidValue

# Iterations between the start of torch's profiler and the window: the first are slower.
WARM_ITERATIONS = 1


def check_iterations(iterations: Any) -> tuple[int, int] | None:
    """The first iteration to record and the first not to record; None: all.

    Raises:
        ValueError: they are no number of at least 1 and no such pair.
    """
    if iterations is None:
        return None
    pair = iterations if isinstance(iterations, tuple) else (0, iterations)
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in pair)
    if not whole or len(pair) != 2 or not 0 <= pair[0] < pair[1]:
        raise InvalidValue(
            "expected iterations to be a number of at least 1, or a pair (first, end) with "
            f"0 <= first < end, got {iterations!r}"
        )
    if not isinstance(iterations, tuple):
        return WARM_ITERATIONS, WARM_ITERATIONS + pair[1]
    return pair
