"""The calls of a thread as columns instead of objects, for recordings of many events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from cule.scope.events import LEVELS, Call

_LEVEL_OF = {level: place for place, level in enumerate(LEVELS)}


class Calls:
    """Calls of a thread, in the order of their starts, outer ones first.

    Attributes:
        start: (n,) int64, nanoseconds, as all of Call.
        end: (n,) int64.
        level: (n,) int8, the place of its level in LEVELS.
        name: (n,) int32, the place of its name in `names`.
        correlation: (n,) int64.
        waits_until: (n,) int64.
        names: the names, each once.
    """

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        level: np.ndarray,
        name: np.ndarray,
        correlation: np.ndarray,
        waits_until: np.ndarray,
        names: list[str],
    ):
        self.start, self.end, self.level, self.name = start, end, level, name
        self.correlation, self.waits_until, self.names = correlation, waits_until, names

    @classmethod
    def of(cls, calls: Iterable[Call] | Calls) -> Calls:
        """The same calls as columns, in the same order."""
        if isinstance(calls, Calls):
            return calls
        number: dict[str, int] = {}
        rows = [
            (one.start, one.end, _LEVEL_OF[one.level], number.setdefault(one.name, len(number)),
             one.correlation, one.waits_until)
            for one in calls
        ]  # fmt: skip
        start, end, level, name, correlation, waits = zip(*rows, strict=True) if rows else [()] * 6
        return cls(
            np.array(start, np.int64), np.array(end, np.int64), np.array(level, np.int8),
            np.array(name, np.int32), np.array(correlation, np.int64), np.array(waits, np.int64),
            list(number),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[Call]:
        """Each of them; to change it changes nothing here."""
        columns = (self.start, self.end, self.level, self.name, self.correlation, self.waits_until)
        for start, end, level, name, correlation, waits in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            yield Call(start, end, LEVELS[level], self.names[name], correlation, waits)

    def take(self, which: np.ndarray) -> Calls:
        """Some of them, by their numbers or by a mask."""
        return Calls(
            self.start[which], self.end[which], self.level[which], self.name[which],
            self.correlation[which], self.waits_until[which], self.names,
        )  # fmt: skip

    def named(self, fits: Callable[[str], bool]) -> np.ndarray:
        """(n,) bool: whose name fits."""
        fitting = np.array([fits(name) for name in self.names], bool)
        return fitting[self.name] if len(self) else np.zeros(0, bool)

    def on(self, level: str) -> np.ndarray:
        """(n,) bool: which are on a level."""
        return self.level == _LEVEL_OF[level]


def joined(parts: Sequence[Iterable[Call] | Calls]) -> Calls:
    """All calls of several threads or files, in order."""
    some = [Calls.of(part) for part in parts]
    number: dict[str, int] = {}
    names = [
        np.array([number.setdefault(name, len(number)) for name in part.names], np.int32)[part.name]
        if len(part)
        else part.name
        for part in some
    ]

    def column(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in some])

    together = Calls(
        column("start"), column("end"), column("level"), np.concatenate(names),
        column("correlation"), column("waits_until"), list(number),
    )  # fmt: skip
    return together.take(np.lexsort((-together.end, together.start)))
