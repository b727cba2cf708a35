"""The random numbers that consoles take when they are turned on."""

from __future__ import annotations

import functools

import numpy as np

from cule import _core

# How many are tabulated. A reset takes one; with a Superchip it takes 129.
POWER_ON_NUMBERS = 1 << 20


@functools.cache
def power_on_numbers() -> np.ndarray:
    """(POWER_ON_NUMBERS,) uint32: the first numbers of ale-py's generator of power-on states."""
    return np.frombuffer(_core.power_on_numbers(POWER_ON_NUMBERS), dtype=np.uint32)
