"""`train.tune`: searches settings, and saves the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from cule.errors import InvalidValue
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.watchdog import Watchdog
from cule.train.layout import Layout
from cule.train.lowering.making import preview
from cule.train.lowering.settings_read import Make
from cule.train.settings import begin
from cule.train.tune.cache import Tuned, claimed, key_of, load, save
from cule.train.tune.search import Search, Trial
from cule.train.tune.space import Space, check_space, default_space, reserves_for_nothing
from cule.train.tune.trial import SECONDS, measure

# The end of the sentence of a process whose partner in the search has ended.
ADVICE = "start the search again"


@contextmanager
def searching(args: Any) -> Iterator[ProcessGroup]:
    """The processes that search together, which all end if one of them does.

    Args:
        args: a training's settings.

    Raises:
        ValueError: the device or the layout is wrong.
    """
    processes = ProcessGroup.join(args.device, Layout.parse(args.layout), args.timeout)
    try:
        with Watchdog(processes, ADVICE):
            yield processes
    finally:
        processes.leave()


def tune(
    make: Make,
    args: Any,
    search: Space | None = None,
    *,
    budget_seconds: float = 120.0,
    again: bool = False,
    on_trial: Callable[[Trial], object] = lambda trial: None,
) -> Tuned:
    """Finds the settings with the most frames per second on this device, and saves them.

    They are saved by algorithm, game, device, number of processes and version of cule, for
    `--tuned`. Under torchrun all processes search together.

    Args:
        make: makes the algorithm from settings and a context, as its class does.
        args: the settings.
        search: names of settings, each with its candidates; None: tune.space.default_space.
        budget_seconds: about how long to search.
        again: search even if there is a result of the same search.
        on_trial: called with each trial, in process 0.

    Returns:
        The best trial, all trials, and how the search went.

    Raises:
        ValueError: a setting or a candidate is wrong, no combination has worked, or another process
            searches for the same.
    """
    if budget_seconds <= 0:
        raise InvalidValue(f"expected budget_seconds to be above 0, got {budget_seconds}")
    deadline = time.monotonic() + budget_seconds
    begin(args)
    with searching(args) as processes, ExitStack() as alone:
        filled = args.on(processes.device)
        space = search
        if space is None:
            space = default_space(make, filled, processes.device, processes.size)
        check_space(space, type(args))
        space = {name: list(values) for name, values in space.items()}
        key = key_of(preview(make, filled, processes.device), processes)
        cached = load(key)
        if cached is not None and cached.space == space and not again:
            return cached
        alone.enter_context(claimed(key, processes))
        done, best = _searched(
            make, filled, space, processes, deadline, on_trial, all_=search is not None
        )
        seconds = budget_seconds - (deadline - time.monotonic())
        tuned = Tuned(
            best, done.trials, space, key.device_name, processes.size, done.combinations,
            round(seconds, 3), complete=seconds < budget_seconds,
        )  # fmt: skip
        if processes.rank == 0:
            save(key, tuned)
        return tuned


def _searched(
    make: Make,
    args: Any,
    space: Space,
    processes: ProcessGroup,
    deadline: float,
    on_trial: Callable[[Trial], object],
    *,
    all_: bool,
) -> tuple[Search, Trial]:
    """Searches a space; returns the search and the best trial.

    Args:
        make: makes the algorithm from settings and a context.
        args: the settings, for the device.
        space: names of settings, each with its candidates.
        processes: this process among the others.
        deadline: when to end, as time.monotonic() says it.
        on_trial: called with each trial.
        all_: whether combinations that cannot gain anything are tried, too.

    Raises:
        ValueError: no combination has worked.
    """

    def left() -> float:
        return deadline - time.monotonic()

    def measured(settings: Mapping[str, Any], times: int) -> Trial:
        # However slow it is, one has to come to an end.
        patience = left if search.best else lambda: math.inf
        seconds = times * SECONDS
        trial = measure(make, args, settings, processes, seconds=seconds, left=patience)
        if processes.rank == 0:
            on_trial(trial)
        return trial

    def pointless(settings: Mapping[str, Any]) -> bool:
        return not all_ and reserves_for_nothing(make, args, settings, processes.device)

    search = Search(space, vars(args), measured, lambda: processes.any(left() <= 0), pointless)
    best = search.run()
    if best is None:
        first = search.trials[0]
        raise InvalidValue(
            f"expected a combination of settings that works, got {len(search.trials)} that do not; "
            f"the first: {first.problem}"
        )
    return search, best
