"""Tunes how emulation runs beside learning, while a training runs.

If games are slow, an iteration is as long as its emulation, which more multiprocessors make faster;
if they are fast, learning gains more from them. Where envs do different things, playing those
together that are alike is faster. Which it is depends on the game, and on how far its envs have
got. All ways give the same results. So now and then a training measures its FPS in some ways, each
for about a second, and goes on in the best.

FPS change as agents get better, by a tenth within seconds in some games. So the best way is
measured again before and after each other one, which costs nothing, as no faster one is known.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

# The numbers that are tried: so many eighths of all multiprocessors.
EIGHTHS = (2, 3, 4, 5, 6, 7)
# Seconds of training for which the FPS of a way are measured, and before the first time. From one
# time to the next there are so many times as many.
MEASURED, BEFORE, AGAIN = 1.0, 5.0, 2.0
# Another way is taken only if it is so many times as fast, as small differences may be chance.
MARGIN = 1.01


class Way(NamedTuple):
    """A way to emulate beside learning (AtariEnv.reserve)."""

    multiprocessors: int
    ordered: bool


class SmAutotuner:
    """Finds the fastest way to emulate.

    Args:
        all_: how many multiprocessors the training may use.
        first: how many of them emulate in the beginning, with envs in order.
        least: the fewest multiprocessors that hold all envs.

    Attributes:
        way: the way in which envs are emulated now.
    """

    def __init__(self, all_: int, first: int, least: int):
        eighths = {all_ * eighths // 8 for eighths in EIGHTHS}
        self._numbers = sorted({first} | {number for number in eighths if number >= least})
        self._first = first
        self.way = self._best = Way(first, ordered=True)
        self._round: Generator[Way, float, None] | None = None  # None: not now
        self._begun: tuple[int, float] | None = None  # frames and seconds where measuring began
        self._next = BEFORE

    def refuse(self) -> None:
        """Says that the way that `observe` has just returned is impossible: the best one stays.

        Numbers of multiprocessors beyond it are impossible, too.
        """
        number, best = self.way.multiprocessors, self._best.multiprocessors
        self._numbers = [n for n in self._numbers if (n < number if best < number else n > number)]
        self.way = self._best
        self.disturbed()

    def disturbed(self) -> None:
        """Discards the measurements of this round, as other code runs now."""
        self._round = self._begun = None

    def observe(self, frames: int, seconds: float) -> Way | None:
        """Takes note of how far the training is; returns another way if it shall be taken now.

        Args:
            frames: emulated so far.
            seconds: of training so far.
        """
        if seconds < self._next:
            return None
        if self._round is None:
            self._round = self._tried()
            return self._take(next(self._round))
        if self._begun is None:  # the time since the last call was partly in another way
            self._begun = frames, seconds
            return None
        if seconds - self._begun[1] < MEASURED:
            return None
        rate = (frames - self._begun[0]) / (seconds - self._begun[1])
        try:
            return self._take(self._round.send(rate))
        except StopIteration:
            self._round, self._next = None, AGAIN * seconds
            return self._take(self._best)

    def _take(self, way: Way) -> Way | None:
        """Measures this way next; returns it if it is another one than now."""
        self._begun = None
        if way == self.way:
            return None
        self.way = way
        return way

    def _tried(self) -> Generator[Way, float, None]:
        """Yields the ways to measure one after another, is sent their FPS, and notes the best.

        As long as that is faster, it goes on to more or fewer multiprocessors. It also tries the
        first number, as one between that and the best number may be slower than both.
        """
        before = yield self._best
        done = {self._best}
        while (way := self._untried(done)) is not None:
            done.add(way)
            rate = yield way
            after = yield self._best
            if 2 * rate > MARGIN * (before + after):
                self._best = way
                after = yield way
            before = after

    def _untried(self, done: set[Way]) -> Way | None:
        """A way to measure that differs in one thing from the best; None: all of them are done."""
        best, ordered = self._best
        more = [number for number in self._numbers if number > best][:1]
        fewer = [number for number in self._numbers if number < best][-1:]
        # The order comes first, once each time, as it may matter most. Then fewer multiprocessors:
        # of 57 games 21 were fastest with fewer than half of all, 10 with more.
        other = [Way(best, not ordered)] if len(done) == 1 else []
        numbers = [Way(number, ordered) for number in (*fewer, *more, self._first)]
        return next((way for way in (*other, *numbers) if way not in done), None)
