"""The archive of Go-Explore: for each cell the best way that was found to it, and its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

import cule


class Paths:
    """Ways from the start of a game: each is another one and the actions after it."""

    def __init__(self) -> None:
        self._before, self._actions = [-1], [b""]

    def add(self, before: int, actions: np.ndarray) -> int:
        """A new path: that with the number `before`, and then these actions, (n,) uint8."""
        self._before.append(before)
        self._actions.append(actions.astype(np.uint8).tobytes())
        return len(self._before) - 1

    def actions(self, path: int) -> np.ndarray:
        """All actions of a path, (steps,) uint8."""
        parts = []
        while path >= 0:
            parts.append(self._actions[path])
            path = self._before[path]
        return np.frombuffer(b"".join(reversed(parts)), dtype=np.uint8)


def states_at(states: cule.State, rows: torch.Tensor) -> cule.State:
    """Some of the states of one game, with the numbers `rows`, (n,) int64."""
    tensors = {name: part[rows.to(part.device)] for name, part in states.tensors.items()}
    return replace(states, games=states.games[:1] * len(rows), tensors=tensors)


class Archive:
    """Cells that were reached.

    Args:
        start: the state of one env at the start of a game.
        capacity: how many cells there can be; cells that are found later are left out.

    Attributes:
        scores: (cells,) float64, the most points with which a cell was reached.
        steps: (cells,) int64, the fewest steps in which it was with them.
        visits: (cells,) int64, how often an env was in it.
        paths: (cells,) int64, the numbers of the paths to them.
    """

    def __init__(self, start: cule.State, capacity: int):
        self.capacity, self._places = capacity, dict[int, int]()
        room = {
            name: part.new_empty(capacity, *part.shape[1:]) for name, part in start.tensors.items()
        }
        self._states = replace(start, tensors=room)
        self.scores = np.zeros(0)
        self.steps, self.visits, self.paths = (np.zeros(0, dtype=np.int64) for _ in range(3))

    def __len__(self) -> int:
        return len(self.scores)

    def see(self, cells: np.ndarray, scores: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Counts visits, and says who has reached a cell better than anybody before.

        Args:
            cells: (n,) int64, where each is.
            scores: (n,) float64, its points.
            steps: (n,) int64, its steps since the start of the game.

        Returns:
            The numbers of these, at most one for each cell.
        """
        best: dict[int, int] = {}
        # The best of each cell comes last.
        for number in np.lexsort((-steps, scores)).tolist():
            best[int(cells[number])] = number
        for cell, count in zip(*np.unique(cells, return_counts=True), strict=True):
            if (place := self._places.get(int(cell))) is not None:
                self.visits[place] += count
        room = self.capacity - len(self)
        found = []
        for cell, number in best.items():
            place = self._places.get(cell)
            if place is None:
                room -= 1
                if room >= 0:
                    found.append(number)
            elif (scores[number], -steps[number]) > (self.scores[place], -self.steps[place]):
                found.append(number)
        return np.array(sorted(found), dtype=np.int64)

    def put(
        self, cells: np.ndarray, scores: np.ndarray, steps: np.ndarray, paths: Sequence[int],
        states: cule.State,
    ) -> None:  # fmt: skip
        """Keeps how cells were reached, in place of what was known of them.

        Args:
            cells: (n,) int64, each once.
            scores: (n,) float64.
            steps: (n,) int64.
            paths: the numbers of the paths to them.
            states: the states there.
        """
        before = len(self)
        places = np.array([self._places.setdefault(int(c), len(self._places)) for c in cells])
        more = len(self._places) - before
        self.scores, self.steps, self.visits, self.paths = (
            np.concatenate([old, np.zeros(more, old.dtype)])
            for old in (self.scores, self.steps, self.visits, self.paths)
        )
        self.scores[places], self.steps[places], self.paths[places] = scores, steps, paths
        self.visits[places] = np.maximum(self.visits[places], 1)
        for name, part in states.tensors.items():
            self._states.tensors[name][torch.from_numpy(places).to(part.device)] = part

    def choose(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Cells to go on from, (count,) int64: those that were seldom visited more often."""
        weights = 1 / np.sqrt(self.visits + 1.0)
        return generator.choice(len(self), count, p=weights / weights.sum())

    def states(self, places: np.ndarray) -> cule.State:
        """The states of some cells."""
        return states_at(self._states, torch.from_numpy(places))

    def best(self) -> int:
        """The place of the cell with the most points, and of those the fewest steps."""
        return int(np.lexsort((-self.steps, self.scores))[-1])
