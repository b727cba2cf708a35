"""How many multiprocessors emulate while the others learn, found while a training runs.

If games are slow, an iteration is as long as its emulation, which more multiprocessors make faster;
if they are fast, learning gains more from them. Which it is depends on the game, and on how far its
envs have got. Any number gives the same results. So now and then a training measures its FPS with
some numbers, each for about a second, and takes the best: it goes to the next larger or smaller
number as long as that is faster.
"""

from __future__ import annotations

# The numbers that are tried: so many eighths of all multiprocessors. It begins with half of them.
EIGHTHS, FIRST = (2, 3, 4, 5, 6, 7), 4
# Seconds of training for which the FPS of a number are measured, and before the first time. From
# one time to the next there are so many times as many.
MEASURED, BEFORE, AGAIN = 1.0, 5.0, 2.0
# A number is taken only if it is so many times as fast, as small differences may be chance.
MARGIN = 1.01


class Balance:
    """Finds the number of multiprocessors that emulate.

    Args:
        all_: how many there are.
        least: the fewest that hold all envs.

    Attributes:
        reserved: how many emulate.
    """

    def __init__(self, all_: int, least: int):
        self._numbers = [all_ * eighths // 8 for eighths in EIGHTHS if all_ * eighths // 8 >= least]
        self.reserved = self._before = all_ * FIRST // 8
        self._rates: dict[int, float] = {}  # by number, of this time
        self._refused: set[int] = set()
        self._begun: tuple[int, float] | None = None  # frames and seconds where measuring began
        self._next = BEFORE

    def refuse(self) -> None:
        """The number that `told` has just returned is impossible: the one before stays."""
        self._refused.add(self.reserved)
        self.reserved = self._before
        self._begun = None

    def disturbed(self) -> None:
        """What was measured this time does not count, as other code runs now."""
        self._rates.clear()
        self._begun = None

    def told(self, frames: int, seconds: float) -> int | None:
        """Takes note of how far the training is; returns another number if it shall be taken now.

        Args:
            frames: emulated so far.
            seconds: of training so far.
        """
        if seconds < self._next:
            return None
        if self._begun is None:  # the time since the last call was partly with another number
            self._begun = frames, seconds
            return None
        if seconds - self._begun[1] < MEASURED:
            return None
        self._rates[self.reserved] = (frames - self._begun[0]) / (seconds - self._begun[1])
        best = self._best()
        number = self._neighbour(best)
        if number is None:
            self._rates.clear()
            self._next, number = AGAIN * seconds, best
        self._begun = None
        if number == self.reserved:
            return None
        self._before, self.reserved = self.reserved, number
        return number

    def _best(self) -> int:
        """The fastest number; of two that are as fast, the one that was measured first."""
        best = next(iter(self._rates))
        for number, rate in self._rates.items():
            if rate > MARGIN * self._rates[best]:
                best = number
        return best

    def _neighbour(self, best: int) -> int | None:
        """What to measure next: a number beside the best, the larger first; None: nothing."""
        larger = [number for number in self._numbers if number > best][:1]
        smaller = [number for number in self._numbers if number < best][-1:]
        for number in larger + smaller:
            if number not in self._rates and number not in self._refused:
                return number
        return None
