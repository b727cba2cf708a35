"""How far acting may be ahead of learning, where some processes act and others learn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.distributed.process_group import ProcessGroup
from cule.train.layout import Layout
from cule.train.learning import Learning


def check_lag(layout: Layout, learning: Learning) -> None:
    """Checks that learning can go on while a layout's other parts act.

    Raises:
        ValueError: it has no lag, and with `apart` is not beside the steps either.
    """
    beside = learning.lag == 1 if layout.crosses else learning.beside
    if layout.lags and not beside:
        raise InvalidValue(
            f"expected a lag of 1 with the layout {layout}, where acting goes on while others "
            f"learn (--lag 1), got {learning.lag}"
        )


def iterations_ahead(
    algorithm: Algorithm[Any], learning: Learning, limit: int | None, num_envs: int
) -> int:
    """How many iterations a policy that acts may lag behind: 1 is exactly one.

    Args:
        algorithm: the algorithm.
        learning: when and from what it learns.
        limit: the most updates, `max_staleness`; None: those of an iteration.
        num_envs: the envs from which a process learns.

    Raises:
        ValueError: the limit is less than an iteration's updates, or it is more, and the algorithm
            does not correct for that.
    """
    if limit is None:
        return 1
    updates = learning.updates(num_envs)
    if limit < updates:
        raise InvalidValue(
            f"expected max_staleness to be at least the {updates} updates of an iteration, after "
            f"which those who act get new weights, got {limit}"
        )
    ahead = limit // updates
    if ahead > 1 and not algorithm.corrects and learning.replay is None:
        raise InvalidValue(
            f"expected an algorithm that corrects for older policies (Algorithm.corrects) with "
            f"max_staleness above {updates}, got {algorithm.name}, which would learn as if its "
            "newest policy had played"
        )
    return ahead


class Staleness:
    """How many iterations older a policy is than the networks that first learn from what it plays.

    Args:
        algorithm, learning, limit, num_envs: as of `iterations_ahead`, which see for errors, too.

    Attributes:
        ahead: the most that it may be.
        updates: of an iteration.
        total, count, most: the sum of iterations' staleness, how many they were, and the greatest.
        waited: seconds in which this process waited for those who learn.
    """

    def __init__(
        self, algorithm: Algorithm[Any], learning: Learning, limit: int | None, num_envs: int
    ):
        self.ahead = iterations_ahead(algorithm, learning, limit, num_envs)
        self.updates = learning.updates(num_envs)
        self._begin()

    def _begin(self) -> None:
        self.total = self.count = self.most = 0
        self.waited = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Adds the time of a block to `waited`."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - begun

    def note(self, iterations: int) -> None:
        """Notes that the next iteration is played by a policy that lags behind by so many."""
        self.total += iterations
        self.count += 1
        self.most = max(self.most, iterations)

    def take(self, processes: ProcessGroup, seconds: float) -> dict[str, float]:
        """What the log says of all iterations since the last call. All processes have to call it.

        Args:
            processes: the processes.
            seconds: since the last call.
        """
        if not processes.decoupled:
            return {}
        told = processes.gather((self.total, self.count, self.most, self.waited))
        self._begin()
        actors = [told[rank] for rank in processes.only("act")]
        total, count, _, waited = (sum(column) for column in zip(*actors, strict=True))
        share = waited / (seconds * len(actors))
        if not count:
            return {"actors_waited": share}
        most = max(one[2] for one in actors)
        return {
            "staleness": self.updates * total / count, "staleness_max": self.updates * most,
            "actors_waited": share,
        }  # fmt: skip
