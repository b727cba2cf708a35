"""The random numbers that consoles take when they are turned on."""

from __future__ import annotations

import functools

import numpy as np

from cule import _core

# How many are tabulated: one a reset, 129 with a Superchip.
POWER_ON_NUMBERS = 1 << 20


@functools.cache
def power_on_numbers() -> np.ndarray:
    """(POWER_ON_NUMBERS,) uint32: what ale-py's generator of power-on states gives, in order."""
    return np.frombuffer(_core.power_on_numbers(POWER_ON_NUMBERS), dtype=np.uint32)
