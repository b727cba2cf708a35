"""Calibration: measures the costs of book-keeping on this machine, and in a given program.

Small loops (loops.py) measure the cost of each instrument by itself. A program has colder caches
and other CUDA calls. So a command is run with one instrument more in each window of a turn
(RL-Scope, appendix C.1), and the costs of the added instrument are scaled until the corrected time
is that of the uninstrumented runs. Where an instrument changes the time by no more than noise, the
figure of the small loops stays.
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
from cule.scope.correction import corrected_seconds
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
    changes = _changes(before, after)
    middle = statistics.median(changes)
    deviation = statistics.median(abs(one - middle) for one in changes)
    return NOISE * deviation / len(changes) ** 0.5


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
    scales = {}
    for instrument, (before, after) in zip(_used(), itertools.pairwise(windows), strict=True):
        pair = [one.seconds for one in before], [one.seconds for one in after]
        if abs(change(*pair)) > noise(*pair):
            scales[instrument] = fit(after, plain, costs, instrument)
            costs = scaled(costs, instrument, scales[instrument])
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
