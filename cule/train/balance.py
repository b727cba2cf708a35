"""How many multiprocessors emulate while the others learn, found while a training runs.

If games are slow, an iteration is as long as its emulation, which more multiprocessors make faster;
if they are fast, learning gains more from them. Which it is depends on the game, and on how far its
envs have got. Any number gives the same results. So now and then a training measures its FPS with
some numbers, each for about a second, and keeps the best.

FPS change as agents get better, by a tenth within seconds in some games. So the number that is kept
is measured before and after each other one, which costs nothing, as it is the best that is known.
"""

from __future__ import annotations

from collections.abc import Generator

# The numbers that are tried: so many eighths of all multiprocessors.
EIGHTHS = (2, 3, 4, 5, 6, 7)
# Seconds of training for which the FPS of a number are measured, and before the first time. From
# one time to the next there are so many times as many.
MEASURED, BEFORE, AGAIN = 1.0, 5.0, 2.0
# A number is taken only if it is so many times as fast, as small differences may be chance.
MARGIN = 1.01


class Balance:
    """Finds the number of multiprocessors that emulate.

    Args:
        all_: how many there are.
        first: how many emulate in the beginning.
        least: the fewest that hold all envs.

    Attributes:
        reserved: how many emulate.
    """

    def __init__(self, all_: int, first: int, least: int):
        eighths = {all_ * eighths // 8 for eighths in EIGHTHS}
        self._numbers = sorted({first} | {number for number in eighths if number >= least})
        self.reserved = self._kept = self._first = first
        self._round: Generator[int, float, None] | None = None  # None: not now
        self._begun: tuple[int, float] | None = None  # frames and seconds where measuring began
        self._next = BEFORE

    def refuse(self) -> None:
        """The number that `told` has just returned is impossible: the one before stays.

        So are those beyond it, as they differ more from what is possible.
        """
        impossible, kept = self.reserved, self._kept
        self._numbers = [
            number for number in self._numbers
            if (number < impossible if kept < impossible else number > impossible)
        ]  # fmt: skip
        self.reserved = kept
        self.disturbed()

    def disturbed(self) -> None:
        """What was measured this time does not count, as other code runs now."""
        self._round = self._begun = None

    def told(self, frames: int, seconds: float) -> int | None:
        """Takes note of how far the training is; returns another number if it shall be taken now.

        Args:
            frames: emulated so far.
            seconds: of training so far.
        """
        if seconds < self._next:
            return None
        if self._round is None:
            self._round = self._tried()
            return self._take(next(self._round))
        if self._begun is None:  # the time since the last call was partly with another number
            self._begun = frames, seconds
            return None
        if seconds - self._begun[1] < MEASURED:
            return None
        rate = (frames - self._begun[0]) / (seconds - self._begun[1])
        try:
            return self._take(self._round.send(rate))
        except StopIteration:
            self._round, self._next = None, AGAIN * seconds
            return self._take(self._kept)

    def _take(self, number: int) -> int | None:
        """Measures this number next; returns it if it is another one than now."""
        self._begun = None
        if number == self.reserved:
            return None
        self.reserved = number
        return number

    def _tried(self) -> Generator[int, float, None]:
        """Yields the numbers to measure one after another, is sent their FPS, and keeps the best.

        It goes on to the next larger or smaller number as long as that is faster. It also tries the
        first, as a number between that and the one that is kept may be slower than both.
        """
        before = yield self._kept
        done = {self._kept}
        while (number := self._untried(done)) is not None:
            done.add(number)
            rate = yield number
            after = yield self._kept
            if 2 * rate > MARGIN * (before + after):
                self._kept = number
                after = yield number
            before = after

    def _untried(self, done: set[int]) -> int | None:
        """What to measure next: a number beside the one that is kept, the larger first."""
        larger = [number for number in self._numbers if number > self._kept][:1]
        smaller = [number for number in self._numbers if number < self._kept][-1:]
        return next((n for n in (*larger, *smaller, self._first) if n not in done), None)
