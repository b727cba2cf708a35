"""Which combinations of candidates are tried: the pruned search of GMI-DRL's Algorithm 2.

Wang et al., "GMI-DRL: Empowering Multi-GPU Deep Reinforcement Learning with GPU Spatial
Multiplexing" go through all layouts of a GPU and, for each, upwards through the numbers of envs.
They skip what cannot run, and stop where the throughput saturates. So does this search, for any
settings, with three changes:

- Saturation is a gain of less than GROWTH in PATIENCE candidates. The paper divides the gain by the
  growth of memory; memory costs nothing here as long as there is enough.
- Each layout starts at the numbers that were best so far, and is given up at once if it is much
  slower there. Several numbers, such as envs and chunks, are climbed in turn.
- The fastest are measured once more and longer, as each trial is short.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cule.train.tune.space import Space

GROWTH, PATIENCE = 0.03, 2
# A layout that is slower than this share of the best, at the same numbers, is given up.
HOPEFUL = 0.8
# The fastest that are measured again, and how much longer.
FINALISTS, LONGER = 3, 4
PASSES = 3


@dataclass(frozen=True)
class Trial:
    """A combination of settings and its measurement.

    Attributes:
        settings: the values of the searched settings, by name.
        fps: emulated frames per second; 0 if the trial failed.
        updates_per_second: updates of the networks.
        memory: bytes: the most that a GPU had allocated; on a CPU those that were planned.
        milliseconds: the time of each operation in an iteration, by name.
        seconds: the length of the measurement.
        problem: the error if the trial failed, else empty.
        no_memory: whether it failed for lack of memory.
    """

    settings: Mapping[str, Any]
    fps: float = 0.0
    updates_per_second: float = 0.0
    memory: int = 0
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    problem: str = ""
    no_memory: bool = False


def climbed(values: Any) -> bool:
    """Whether candidates are an order of numbers, of which more is more.

    A 0 often means "chosen automatically", and two candidates are no order.
    """
    plain = all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in values)
    return plain and len(values) > 2 and min(values) > 0


class Search:
    """A search for the fastest combination of settings.

    Args:
        space: settings with their candidates.
        start: the first combination; a value that is no candidate is replaced by the middle one.
        measure: measures a combination; its second argument multiplies the usual length.
        out_of_time: whether to stop.
        pointless: whether a combination need not be tried; numbers that are climbed do not matter.

    Attributes:
        trials: the newest trial of each combination, in their order.
    """

    def __init__(
        self,
        space: Space,
        start: Mapping[str, Any],
        measure: Callable[[Mapping[str, Any], int], Trial],
        out_of_time: Callable[[], bool],
        pointless: Callable[[Mapping[str, Any]], bool] = lambda point: False,
    ):
        self._space = {
            name: sorted(values) if climbed(values) else list(dict.fromkeys(values))
            for name, values in space.items()
        }
        self._climbed = [name for name, values in self._space.items() if climbed(values)]
        self._start = {
            name: start[name] if start.get(name) in values else values[len(values) // 2]
            if name in self._climbed else values[0]
            for name, values in self._space.items()
        }  # fmt: skip
        self._measure, self._out_of_time, self._pointless = measure, out_of_time, pointless
        self._known: dict[tuple[Any, ...], Trial] = {}

    @property
    def trials(self) -> list[Trial]:
        """See the class."""
        return list(self._known.values())

    @property
    def combinations(self) -> int:
        """Combinations of all candidates."""
        count = 1
        for values in self._space.values():
            count *= len(values)
        return count

    @property
    def best(self) -> Trial | None:
        """The fastest trial; None before one has worked."""
        working = [trial for trial in self._known.values() if not trial.problem]
        return max(working, key=lambda trial: trial.fps, default=None)

    def run(self) -> Trial | None:
        """Searches; returns the fastest trial, or None if none has worked."""
        for layout in self._layouts():
            if self._out_of_time():
                break
            best = self.best
            point = dict(best.settings if best else self._start) | layout
            trial = self._try(point)
            if best is None or trial.fps >= HOPEFUL * best.fps or trial.no_memory:
                self._climb(point)
        return self._final()

    def _layouts(self) -> Iterator[dict[str, Any]]:
        """All combinations of the settings that are not climbed, the start's first."""
        names = [name for name in self._space if name not in self._climbed]
        first = {name: self._start[name] for name in names}
        yield first
        for values in itertools.product(*(self._space[name] for name in names)):
            layout = dict(zip(names, values, strict=True))
            if layout != first and not self._pointless(self._start | layout):
                yield layout

    def _try(self, point: Mapping[str, Any], times: int = 1) -> Trial:
        key = tuple(point[name] for name in self._space)
        known = self._known.get(key)
        if known is None or times > 1:
            trial = self._measure({name: point[name] for name in self._space}, times)
            if known is None or not trial.problem:
                self._known[key] = trial
        return self._known[key]

    def _climb(self, point: dict[str, Any]) -> None:
        """Climbs along each number in turn, until that brings nothing."""
        for _ in range(PASSES):
            before = dict(point)
            for name in self._climbed:
                point[name] = self._climb_along(name, point)
            if point == before:
                return

    def _climb_along(self, name: str, point: Mapping[str, Any]) -> Any:
        """The best value of a number, found upwards, or else downwards."""
        start = self._try(point)
        best = start if start.no_memory else self._go(name, point, start, 1)
        if best is start:
            best = self._go(name, point, start, -1)
        return best.settings[name]

    def _go(self, name: str, point: Mapping[str, Any], start: Trial, step: int) -> Trial:
        """The best trial in one direction, until the throughput saturates."""
        values = self._space[name]
        place = values.index(point[name]) + step
        best, base, small = start, start, 0
        while 0 <= place < len(values) and small < PATIENCE and not self._out_of_time():
            trial = self._try({**point, name: values[place]})
            place += step
            if trial.no_memory and step > 0:
                break
            if trial.problem:
                continue
            if trial.fps > best.fps:
                best = trial
            if trial.fps > (1 + GROWTH) * base.fps:
                base, small = trial, 0
            else:
                small += 1
        return best

    def _final(self) -> Trial | None:
        """Measures the fastest once more, and longer; returns the fastest."""
        working = [trial for trial in self._known.values() if not trial.problem]
        fastest = sorted(working, key=lambda trial: -trial.fps)[:FINALISTS]
        final = []
        for trial in fastest:
            if len(fastest) > 1 and not self._out_of_time():
                final.append(self._try(trial.settings, LONGER))
        return max(final, key=lambda trial: trial.fps, default=self.best)
