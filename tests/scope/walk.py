"""The sweep as design/scope.md says it: one walk from left to right over all events."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from cule.scope.events import Call, Key
from cule.scope.lanes import Lane
from cule.scope.sweep import Cells, gaps_in_graphs

# The order of changes at the same time: what ends, owners, what begins.
_END, _OWNER, _BEGIN = range(3)
_Change = tuple[int, int, str, Any]


def _changes(lane: Lane, start: int, end: int) -> list[_Change]:
    """All changes in the window: (time, order, kind, what)."""
    changes: list[_Change] = []
    for call in lane.thread.calls:
        begins, returns = max(call.start, start), min(call.end, end)
        if begins == returns:
            changes.append((begins, _BEGIN, "instant", call))
        elif begins < returns:
            changes.append((begins, _BEGIN, "call", call))
            changes.append((returns, _END, "return", call))
            if call.waits_until and begins < call.waits_until < returns:
                changes.append((call.waits_until, _END, "waited", call))
    for work in lane.work:
        begins, ends = max(work.start, start), min(work.end, end)
        if begins < ends:
            changes.append((begins, _BEGIN, "work", work.key))
            changes.append((ends, _END, "done", work.key))
    for begins, ends, key in gaps_in_graphs(lane.work):
        begins, ends = max(begins, start), min(ends, end)
        if begins < ends:
            changes.append((begins, _BEGIN, "gap", key))
            changes.append((ends, _END, "no gap", key))
    for time, key in zip(lane.owners.times, lane.owners.keys, strict=True):
        if start < time < end:
            changes.append((time, _OWNER, "owner", key))
    # The sort is stable: calls that begin together stay as they nest.
    changes.sort(key=lambda change: change[:2])
    return changes


class _State:
    """The state of a lane at the present time of the walk."""

    def __init__(self, owner: Key):
        self.owner = owner
        self.now = 0
        self.open: dict[int, Call] = {}
        self.waiting: set[int] = set()
        self.running: dict[Key, int] = {}
        self.coming: dict[Key, int] = {}

    @property
    def level(self) -> str:
        return next(reversed(self.open.values())).level if self.open else "python"

    def shares(self) -> Iterator[tuple[Key, str, str]]:
        """The owners of this instant, in equal parts: owner, resource and level."""
        if not self.running and self.waiting:
            # Between two kernels of a graph, the CPU waits for the second.
            for key in self.coming or (self.owner,):
                yield key, "none", self.level
        elif not self.running:
            yield self.owner, "cpu", self.level
        elif self.owner in self.running and not self.waiting:
            yield self.owner, "both", self.level
        else:
            for key in self.running:
                yield key, "gpu", ""

    @property
    def hides(self) -> bool:
        """Whether the CPU's work is covered by another operation's on the GPU."""
        return bool(self.running) and not self.waiting and self.owner not in self.running

    def enter(self, call: Call, cells: Cells) -> None:
        """Counts a call that begins now."""
        if call.level != self.level:
            resource = "both" if self.owner in self.running else "cpu"
            if call.waits_until or call.level == "waiting":
                resource = "none"
            cells.transitions[self.owner, resource, self.level, call.level] += 1
        if call.level == "cuda_api":
            entry = cells.apis[self.owner, call.name]
            entry[0] += 1
            entry[1] += call.end - call.start

    def change(self, kind: str, what: Any) -> None:
        """Applies a change to the state."""
        if kind == "call":
            self.open[id(what)] = what
            if what.waits_until > self.now or what.level == "waiting":
                self.waiting.add(id(what))
        elif kind == "return":
            self.open.pop(id(what))
            self.waiting.discard(id(what))
        elif kind == "waited" and what.level != "waiting":
            self.waiting.discard(id(what))
        elif kind == "owner":
            self.owner = what
        elif kind in ("work", "gap"):
            counts = self.running if kind == "work" else self.coming
            counts[what] = counts.get(what, 0) + 1
        elif kind in ("done", "no gap"):
            counts = self.running if kind == "done" else self.coming
            counts[what] -= 1
            if not counts[what]:
                del counts[what]


def walk(lane: Lane, start: int, end: int) -> Cells:
    """The cells of a lane in a window.

    Args:
        lane: its calls are in the order of their starts, outer ones first.
        start: the window's begin, nanoseconds.
        end: its end.
    """
    cells = Cells()
    state = _State(lane.owners.at(start))
    now = start
    for time, _, kind, what in [*_changes(lane, start, end), (end, _END, "", None)]:
        if time > now:
            shares = list(state.shares())
            for cell in shares:
                # An exact number whatever the parts.
                cells.nanoseconds[cell] += (
                    time - now if len(shares) == 1 else Fraction(time - now, len(shares))
                )
            if state.hides:
                cells.hidden[state.owner, state.level] += time - now
            now = time
        if kind in ("call", "instant") and what.start >= start:
            state.enter(what, cells)
        state.now = time
        state.change(kind, what)
    return cells
