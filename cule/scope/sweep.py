"""The overlap sweep: gives each instant of a lane to one operation, resource and level.

After RL-Scope, section 3.3. design/scope.md has the rules, and tests/scope/walk.py walks from event
to event as they say; this does the same with whole columns, which takes a small part of the time.
Times are integers, so that the cells of a lane add up to its window exactly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cule.scope.columns import Calls
from cule.scope.events import LEVELS, Key, Work
from cule.scope.intervals import Nesting, Toggles
from cule.scope.lanes import Lane, Owners


def _none() -> list[int]:
    return [0, 0]


@dataclass
class Cells:
    """The division of a lane's window.

    Attributes:
        nanoseconds: by operation, resource and level ("" where only the GPU works); they add up to
            the window.
        hidden: nanoseconds of CPU work, by operation and level, that another operation's GPU work
            covers.
        calls: how often each operation began.
        transitions: by operation, resource, the level from and the level to.
        apis: calls and nanoseconds of each CUDA call, by operation and name.
    """

    nanoseconds: dict[tuple[Key, str, str], int | Fraction] = field(
        default_factory=lambda: defaultdict(int)
    )
    hidden: dict[tuple[Key, str], int] = field(default_factory=lambda: defaultdict(int))
    calls: Counter[Key] = field(default_factory=Counter)
    transitions: Counter[tuple[Key, str, str, str]] = field(default_factory=Counter)
    apis: dict[tuple[Key, str], list[int]] = field(default_factory=lambda: defaultdict(_none))

    def add(self, other: Cells) -> None:
        """Adds the cells of another window of the same lane."""
        for place, spent in other.nanoseconds.items():
            self.nanoseconds[place] += spent
        for covered, spent in other.hidden.items():
            self.hidden[covered] += spent
        self.calls.update(other.calls)
        self.transitions.update(other.transitions)
        for api, (count, spent) in other.apis.items():
            entry = self.apis[api]
            entry[0] += count
            entry[1] += spent


def gaps_in_graphs(works: Iterable[Work]) -> Iterator[tuple[int, int, Key]]:
    """The times in which a CUDA graph runs, but none of its work: begin, end, next work's owner.

    The work of a graph's replay, and no other, shares a correlation.
    """
    replays: dict[int, list[Work]] = defaultdict(list)
    for work in works:
        if work.correlation:
            replays[work.correlation].append(work)
    for replay in replays.values():
        replay.sort(key=lambda work: work.start)
        ended = replay[0].end
        for work in replay:
            if work.start > ended:
                yield ended, work.start, work.key
            ended = max(ended, work.end)


class _Owned:
    """The owners of a lane's time, as numbers: the same owner has one, whenever it is open."""

    def __init__(self, owners: Owners, start: int, end: int):
        numbers: dict[Key, int] = {}
        self._times = np.array(owners.times, np.int64)
        self._of_change = np.array(
            [numbers.setdefault(key, len(numbers)) for key in owners.keys], np.int64
        )
        # Changes at the window's end are not seen by a call that begins there.
        before = (self._times < end) | (self._times <= start)
        self._times, self._of_change = self._times[before], self._of_change[before]
        self.keys = list(numbers)

    def within(self, start: int) -> np.ndarray:
        """The times at which the owner changes, after a time."""
        return self._times[self._times > start]

    def at(self, times: np.ndarray) -> np.ndarray:
        """The number of the owner at each of some times."""
        return self._of_change[np.searchsorted(self._times, times, side="right") - 1]


def _waits(calls: Calls, begins: np.ndarray, returns: np.ndarray) -> Toggles:
    """When the lane waits, in calls that are open."""
    for_process = calls.on("waiting")
    waiting = for_process | (calls.waits_until > begins)
    until = np.where(for_process, returns, np.minimum(calls.waits_until, returns))
    return Toggles(begins[waiting], until[waiting])


def _by_key(spans: Iterable[tuple[int, int, Key]], start: int, end: int) -> dict[Key, Toggles]:
    """When there is any of each owner's spans, within a window."""
    found: dict[Key, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for begins, ends, key in spans:
        begins, ends = max(begins, start), min(ends, end)
        if begins < ends:
            found[key][0].append(begins)
            found[key][1].append(ends)
    return {
        key: Toggles(np.array(begins, np.int64), np.array(ends, np.int64))
        for key, (begins, ends) in found.items()
    }


def _shares(
    owner: Key, level: str, waits: bool, running: Sequence[Key], coming: Sequence[Key]
) -> list[tuple[Key, str, str]]:
    """The owners of an instant, in equal parts: owner, resource and level."""
    if not running and waits:
        # Between two kernels of a graph, the CPU waits for the second.
        return [(key, "none", level) for key in coming or (owner,)]
    if not running:
        return [(owner, "cpu", level)]
    if owner in running and not waits:
        return [(owner, "both", level)]
    return [(key, "gpu", "") for key in running]


class _Sweep:
    """A lane in a window, as columns.

    Args:
        lane: its calls are in the order of their starts, outer ones first.
        start: the window's begin, nanoseconds.
        end: its end.
    """

    def __init__(self, lane: Lane, start: int, end: int):
        self.start, self.end = start, end
        calls = Calls.of(lane.thread.calls)
        begins, returns = np.maximum(calls.start, start), np.minimum(calls.end, end)
        self.owned = _Owned(lane.owners, start, end)
        is_open = begins < returns
        opened = calls.take(is_open)
        self.nesting = Nesting(begins[is_open], returns[is_open])
        self.levels = opened.level.astype(np.int64)
        self.waits = _waits(opened, self.nesting.begins, self.nesting.ends)
        self.running = _by_key(((work.start, work.end, work.key) for work in lane.work), start, end)
        self.coming = _by_key(gaps_in_graphs(lane.work), start, end)
        # Calls that begin in the window, also those of no length, with how many open before them.
        enters = (begins <= returns) & (calls.start >= start)
        self.entering = calls.take(enters)
        self.open_before = (np.cumsum(is_open) - is_open)[enters]

    def _level_at(self, times: np.ndarray) -> np.ndarray:
        top = self.nesting.top_at(times)
        return np.where(top < 0, 0, self.levels[top]) if len(self.levels) else np.zeros_like(top)

    def cells(self) -> Cells:
        """The division of the window."""
        cells = Cells()
        if self.start < self.end:
            self._add_times(cells)
        self._add_transitions(cells)
        return cells

    def _add_times(self, cells: Cells) -> None:
        """Adds the time of each state, which lasts from one change to the next."""
        of_gpu = [*self.running.values(), *self.coming.values()]
        changes = [self.nesting.begins, self.nesting.ends, self.owned.within(self.start)]
        changes += [one for toggles in (self.waits, *of_gpu) for one in toggles.times]
        times = np.sort(np.concatenate([np.array([self.start], np.int64), *changes]))
        times = times[(times >= self.start) & (times < self.end)]
        times = times[np.diff(times, prepend=-1) != 0]
        lengths = np.diff(times, append=self.end)
        states = _Numbered()
        states.add(self.owned.at(times))
        states.add(self._level_at(times))
        states.add(self.waits.on_at(times).astype(np.int64))
        for toggles in of_gpu:
            states.add(toggles.on_at(times).astype(np.int64))
        for (owner, level, waits, *on), (spent,) in states.sums(lengths):
            present = [key for key, one in zip((*self.running, *self.coming), on, strict=True)
                       if one]  # fmt: skip
            count = sum(on[: len(self.running)])
            self._add_state(
                cells, spent, self.owned.keys[owner], LEVELS[level], bool(waits), present[:count],
                present[count:],
            )  # fmt: skip

    @staticmethod
    def _add_state(
        cells: Cells, spent: int, owner: Key, level: str, waits: bool, running: list[Key],
        coming: list[Key],
    ) -> None:  # fmt: skip
        shares = _shares(owner, level, waits, running, coming)
        for cell in shares:
            # An exact number whatever the parts.
            cells.nanoseconds[cell] += spent if len(shares) == 1 else Fraction(spent, len(shares))
        # The CPU's work is covered by another operation's on the GPU.
        if running and not waits and owner not in running:
            cells.hidden[owner, level] += spent

    def _add_transitions(self, cells: Cells) -> None:
        """Counts the calls that begin, by the level from which they do."""
        calls, now = self.entering, self.entering.start
        if not len(calls):
            return
        owner = self.owned.at(now)
        around = self.nesting.top_before(self.open_before, now)
        level = np.where(around < 0, 0, self.levels[around]) if len(self.levels) else around * 0
        works = np.zeros(len(calls), bool)
        for key, toggles in self.running.items():
            if key in self.owned.keys:
                its = owner == self.owned.keys.index(key)
                works[its] = toggles.on_before(now[its])
        resource = np.where((calls.waits_until != 0) | calls.on("waiting"), 2, works)
        changes = calls.level != level
        states = _Numbered()
        for column in (owner, resource, level, calls.level):
            states.add(column[changes].astype(np.int64))
        for (of, what, source, target), (count,) in states.sums(np.ones(changes.sum(), np.int64)):
            place = (self.owned.keys[of], ("cpu", "both", "none")[what], LEVELS[source],
                     LEVELS[target])  # fmt: skip
            cells.transitions[place] += count
        apis, of_apis = calls.on("cuda_api"), _Numbered()
        of_apis.add(owner[apis])
        of_apis.add(calls.name[apis].astype(np.int64))
        of_api = calls.take(apis)
        ones = np.ones(len(of_api), np.int64)
        for (of, name), sums in of_apis.sums(ones, of_api.end - of_api.start):
            cells.apis[self.owned.keys[of], of_api.names[name]] = sums


# Numbers of states above this are replaced by those that there are.
_MANY = 1 << 16


class _Numbered:
    """States of several columns, each different one with a number."""

    def __init__(self) -> None:
        self._columns: list[np.ndarray] = []

    def add(self, column: np.ndarray) -> None:
        """Adds a column of whole numbers from 0 on."""
        self._columns.append(column)

    def sums(self, *amounts: np.ndarray) -> list[tuple[tuple[int, ...], list[int]]]:
        """Each different state, with the sums of its amounts, which are exact below 2**53."""
        if not len(amounts[0]):
            return []
        number = np.zeros(len(amounts[0]), np.int64)
        for column in self._columns:
            number = number * (int(column.max()) + 1) + column
            if number.max() >= _MANY:
                number = np.unique(number, return_inverse=True)[1]
        first = np.zeros(number.max() + 1, np.int64)
        first[number] = np.arange(len(number))
        totals = [np.bincount(number, weights=one) for one in amounts]
        return [
            (
                tuple(int(column[first[place]]) for column in self._columns),
                [int(total[place]) for total in totals],
            )
            for place in np.flatnonzero(np.bincount(number))
        ]


def sweep(lane: Lane, start: int, end: int) -> Cells:
    """The cells of a lane in a window.

    Args:
        lane: its calls are in the order of their starts, outer ones first.
        start: the window's begin, nanoseconds.
        end: its end.
    """
    cells = _Sweep(lane, start, end).cells()
    cells.calls.update(key for time, key in lane.owners.calls if start <= time <= end)
    return cells
