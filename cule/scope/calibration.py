"""Calibration: measures the costs of book-keeping on this machine, and in a given program.

Small loops (loops.py) measure the cost of each instrument by itself. A program has colder caches
and other CUDA calls. So a command is run with one instrument more in each window of a turn
(RL-Scope, appendix C.1), and the costs of the added instrument are scaled until the corrected times
are those without it. RL-Scope compares the time of whole runs. An operation that calls much and
takes little time says more of a cost than one whose time scatters or that waits for a GPU: from the
second instrument on, each operation's time is compared, weighted by what it says. Where an
instrument changes the time by no more than noise, the figure of the small loops stays.
"""

from __future__ import annotations

import copy
import itertools
import math
import shlex
import statistics
from collections.abc import Callable, Sequence

import torch

from cule.devices.device import default_device
from cule.programs.results import commit, machine, now
from cule.scope.correction import corrected_operations, corrected_seconds
from cule.scope.costs import Costs
from cule.scope.events import Process
from cule.scope.instruments import INSTRUMENTS
from cule.scope.lanes import assemble
from cule.scope.loops import measure_loops
from cule.scope.windows import Kind, Program, measure, name_of

# The largest and smallest scale of the loops' figures, and the steps of the search, after which
# the scale is known to 1%.
LEAST_SCALE, MOST_SCALE, SEARCH_STEPS = 0.1, 10.0, 8
# A difference counts if it is larger than so many standard errors.
NOISE = 2.0
# The standard deviation of a normal distribution by its median deviation; and the least relative
# error of an operation's time, whatever few turns say.
NORMAL, LEAST_ERROR = 1.4826, 2e-3
_FIELDS = {
    "annotations": ("annotation",), "boundaries": ("boundary",), "activities": ("operator",),
    "cuda": ("api", "graph_node", "graph_node_gpu"),
}  # fmt: skip


def scaled(costs: Costs, instrument: str, scale: float) -> Costs:
    """A copy of costs in which those of one instrument are multiplied by `scale`."""
    changed = copy.deepcopy(costs)
    for name in _FIELDS[instrument]:
        setattr(changed, name, getattr(costs, name) * scale)
    if instrument == "cuda":
        changed.apis = {name: cost * scale for name, cost in costs.apis.items()}
    return changed


def _changes(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """The relative change of each turn; the windows of a turn see the machine in the same state."""
    return [b / a - 1 for a, b in zip(before, after, strict=True)]


def change(before: Sequence[float], after: Sequence[float]) -> float:
    """The relative change from one list to another, as the median over turns."""
    return statistics.median(_changes(before, after))


def interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of `change`, by the turns' ranks; of fewer than six turns their range.

    That is the interval of the sign test: each turn is as likely below the true median as above.
    """
    changes = sorted(_changes(before, after))
    count = len(changes)
    # The chance that so many turns or fewer are below the true median.
    chances = itertools.accumulate(math.comb(count, below) / 2**count for below in range(count))
    left_out = max(sum(chance <= 0.025 for chance in chances) - 1, 0)
    return changes[left_out], changes[-1 - left_out]


def noise(before: Sequence[float], after: Sequence[float]) -> float:
    """The error of `change`: NOISE standard errors, from the median deviation."""
    return NOISE * _error(_changes(before, after))


def _error(values: Sequence[float]) -> float:
    """The median deviation of values by the root of how many they are."""
    middle = statistics.median(values)
    return statistics.median(abs(one - middle) for one in values) / len(values) ** 0.5


def fit(
    processes: Sequence[Process], plain: Sequence[float], costs: Costs, instrument: str
) -> float:
    """The scale at which the corrected lengths of windows are those of uninstrumented ones.

    The corrected lengths fall as the costs grow.

    Args:
        processes: a window of each turn, with the instrument.
        plain: seconds of the uninstrumented window of each turn.
        costs: of the book-keeping.
        instrument: whose costs are scaled.

    Returns:
        The scale. 1 where the costs make no difference, as when a GPU covers them.
    """
    lanes = [assemble(one) for one in processes]

    def off(scale: float) -> float:
        changed = scaled(costs, instrument, scale)
        return change(plain, [
            corrected_seconds(one, of_it, changed)
            for one, of_it in zip(processes, lanes, strict=True)
        ])  # fmt: skip

    low, high = LEAST_SCALE, MOST_SCALE
    if off(low) - off(high) <= noise(plain, [one.seconds for one in processes]):
        return 1.0
    for _ in range(SEARCH_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if off(middle) > 0 else (low, middle)
    return (low * high) ** 0.5


def fit_operations(
    before: Sequence[Process], after: Sequence[Process], costs: Costs, instrument: str
) -> float | None:
    """The scale at which the corrected times of operations are those without an instrument.

    It is that of weighted least squares: an operation counts by the square of what the costs are in
    it, over that of the standard error of its time.

    Args:
        before: a window of each turn, with the operations, without the instrument.
        after: a window of each turn with it.
        costs: of the book-keeping.
        instrument: whose costs are scaled.

    Returns:
        The scale; None: it is not known, as no operation changes by more than noise.
    """
    without = [corrected_operations(one, assemble(one), costs) for one in before]
    lanes = [assemble(one) for one in after]
    kept, taken = (
        [corrected_operations(one, its, some) for one, its in zip(after, lanes, strict=True)]
        for some in (scaled(costs, instrument, 0.0), costs)
    )
    said = square = 0.0
    for name in set.intersection(*map(set, (*without, *kept))):
        turns = list(zip(without, kept, taken, strict=True))
        added = [more[name] - less[name] for less, more, _ in turns]
        cost = statistics.median(more[name] - rest.get(name, 0.0) for _, more, rest in turns)
        least = LEAST_ERROR * statistics.median(less[name] for less, _, _ in turns)
        if not cost or not least:
            continue
        weight = cost / ((NORMAL * _error(added)) ** 2 + least**2)
        said += weight * statistics.median(added)
        square += weight * cost
    # The standard error of said / square is the root of 1 / square.
    if square <= 0 or said <= NOISE * square**0.5:
        return None
    return min(max(said / square, LEAST_SCALE), MOST_SCALE)


def _used() -> Sequence[str]:
    """The instruments of this machine, in the order in which they are added."""
    return INSTRUMENTS if torch.cuda.is_available() else INSTRUMENTS[:-1]


def kinds() -> list[Kind]:
    """The windows of a turn that calibrates: each has one more of the instruments."""
    return [_used()[:count] for count in range(len(_used()) + 1)]


def costs_of_loops(progress: Callable[[str], None]) -> Costs:
    """The costs of book-keeping in small loops.

    Args:
        progress: called with a text that says which measurement comes next.
    """
    progress("small loops")
    costs = measure_loops()
    device = torch.device(default_device())
    costs.about = {
        "date": now(), "commit": commit(), **machine(device, torch.get_num_threads()),
        "loops": {"annotation": costs.annotation, "boundary": costs.boundary,
                  "operator": costs.operator},
    }  # fmt: skip
    return costs


def fitted(costs: Costs, program: Program, turns: Sequence[Sequence[Process]]) -> Costs:
    """The costs of book-keeping in a program.

    Args:
        costs: of small loops.
        program: the program.
        turns: of each turn the windows, as of `kinds`.
    """
    # Of each kind, the windows of all turns.
    windows = list(zip(*turns, strict=True))
    plain = [one.seconds for one in windows[0]]
    first, *others = _used()
    scales = {}
    marked = [one.seconds for one in windows[1]]
    if abs(change(plain, marked)) > noise(plain, marked):
        scales[first] = fit(windows[1], plain, costs, first)
        costs = scaled(costs, first, scales[first])
    for instrument, after in zip(others, windows[2:], strict=True):
        scale = fit_operations(windows[1], after, costs, instrument)
        if scale is not None:
            scales[instrument] = scale
            costs = scaled(costs, instrument, scale)
    costs.about |= {
        "command": shlex.join(program.command), "iterations": list(program.iterations),
        "together": program.together, "scales": scales,
        "seconds": {name_of(kind): [one.seconds for one in processes]
                    for kind, processes in zip(kinds(), windows, strict=True)},
    }  # fmt: skip
    return costs


def calibrate(program: Program | None, repeats: int, progress: Callable[[str], None]) -> Costs:
    """Measures the costs of book-keeping: in small loops, and in a program if there is one.

    Args:
        program: the program.
        repeats: how many windows it has with each set of instruments.
        progress: called with a text that says which measurement comes next.

    Raises:
        RuntimeError: the command fails.
    """
    costs = costs_of_loops(progress)
    if program is None:
        return costs
    return fitted(costs, program, list(measure(program, kinds(), repeats, progress)))
