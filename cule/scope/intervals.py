"""Intervals of time as columns: which of several is the newest at a time, and whether there is one.

All times are int64 nanoseconds. What ends at a time has ended there, and what begins there has
begun, unless it says "before".
"""

from __future__ import annotations

import numpy as np


class Toggles:
    """When at least one of some intervals is on.

    Args:
        begins: (n,) int64.
        ends: (n,) int64, after the begins.

    Attributes:
        times: the begins and the ends, each in order.
    """

    def __init__(self, begins: np.ndarray, ends: np.ndarray):
        self.times = np.sort(begins), np.sort(ends)

    def on_at(self, times: np.ndarray) -> np.ndarray:
        """Whether one is on at each time: more have begun than ended."""
        begun, ended = (np.searchsorted(one, times, side="right") for one in self.times)
        return begun > ended

    def on_before(self, times: np.ndarray) -> np.ndarray:
        """Whether one is on right before what begins at each time, after what ends there."""
        begun = np.searchsorted(self.times[0], times, side="left")
        return begun > np.searchsorted(self.times[1], times, side="right")


class Nesting:
    """Intervals of which the newest that is on counts, in the order of their begins.

    They need not nest: calls of torch's own threads are among those of the thread that waits.

    Args:
        begins: (n,) int64, in order.
        ends: (n,) int64, after the begins.
    """

    def __init__(self, begins: np.ndarray, ends: np.ndarray):
        self.begins, self.ends = begins, ends
        number = np.arange(len(begins))
        # The newest one before each that ends later: it is on again when this one ends.
        self._around = self._beyond(number - 1, -1)
        self._times, self._tops = self._changes(number)

    def _beyond(self, first: np.ndarray, outside: int) -> np.ndarray:
        """For each interval the nearest on one side that ends later, or `outside`.

        All from `first` up to the one that is looked at end no later. So if that one ends no later
        either, the search goes on with what was found for it so far; each round doubles the way.
        """
        found = first.copy()
        left = np.flatnonzero(found != outside)
        while len(left):
            left = left[self.ends[found[left]] <= self.ends[left]]
            found[left] = found[found[left]]
            left = left[found[left] != outside]
        return found

    def _changes(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The times at which another one is the newest, and which: -1 is none."""
        count = len(number)
        # A later one that is still on: the end of this one changes nothing.
        later = self._beyond(number + 1, count)
        covered = np.zeros(count, bool)
        some = later < count
        covered[some] = self.begins[later[some]] < self.ends[some]
        times = np.concatenate([self.ends[~covered], self.begins])
        tops = np.concatenate([self._around[~covered], number])
        is_begin = np.repeat([0, 1], [count - covered.sum(), count])
        order = np.lexsort((is_begin, times))  # keeps the order of begins
        return times[order], tops[order]

    def top_at(self, times: np.ndarray) -> np.ndarray:
        """The number of the newest interval that is on at each time, -1 where there is none."""
        place = np.searchsorted(self._times, times, side="right") - 1
        return np.where(place < 0, -1, self._tops[place]) if len(self._tops) else place

    def top_before(self, counts: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The newest of the first `counts` intervals that has not ended at each time; -1: none."""
        found = counts - 1
        left = np.flatnonzero(found >= 0)
        while len(left):
            left = left[self.ends[found[left]] <= times[left]]
            found[left] = self._around[found[left]]
            left = left[found[left] >= 0]
        return found
