"""Values of observations for learning: `evaluate`, for all steps of a phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Nets
from cule.train.declaration import parts_of
from cule.train.lowering.chunks import ROUNDING, other_weights, precise
from cule.train.lowering.loops import Loops
from cule.train.lowering.method_checks import check_dtypes, check_tensors
from cule.train.lowering.networks import by_name
from cule.train.lowering.parts import Parts
from cule.train.lowering.peak_bytes import PeakBytes
from cule.train.plan.program import Recurrent
from cule.train.plan.work import Work

# Steps that are evaluated at once and one by one, to see whether that makes a difference, and the
# most envs of each.
TRIED, ROWS = 3, 8


class Evaluation:
    """Calls `evaluate` for the observations of several steps.

    The plan merges calls with acting's where the network was the same, and makes the rest at once,
    if `evaluate` treats each observation for itself: then several steps are one batch.

    Args:
        p: the parts of the program.
        at_once: gets the bytes that an observation needs; how many there is memory for.

    Raises:
        ValueError: `evaluate` returns something else than numbers for each env.
    """

    def __init__(self, p: Parts, at_once: Callable[[int], int]):
        self.p, self.at_once = p, at_once
        self.names = list(p.trained)
        self.kinds = {name: parts_of(kind) for name, kind in p.evaluates.items()}
        self.dimensions = len(self._blank().shape)
        nets = by_name(self.names, list(p.nets.trained.values()))
        self.work = self._probe(nets)
        self.row_by_row = self._is_row_by_row(nets)

    def _blank(self) -> torch.Tensor:
        """Zeros like the observations of a step: (num_envs, ...)."""
        return self.p.zeros(self.p.declaration.observation[self.p.t])

    @torch.no_grad()
    def _probe(self, nets: Nets) -> Work:
        """Checks what `evaluate` returns for zeros; returns the memory that it needs for a step."""
        p, peak = self.p, PeakBytes()
        with peak, p.autocast:
            values = self._evaluated(nets, self._blank(), self._before())
        check_tensors("evaluate", values, p.evaluates)
        for name, (_, shape) in self.kinds.items():
            if tuple(values[name].shape) != (p.num_envs, *shape):
                raise InvalidValue(
                    f"expected evaluate to return {name} with a value for each of {p.num_envs} "
                    f"envs, {(p.num_envs, *shape)}, got {tuple(values[name].shape)}"
                )
        check_dtypes("evaluate", values, {name: kind[0] for name, kind in self.kinds.items()})
        return peak.work_of(p.num_envs)

    @torch.no_grad()
    def _is_row_by_row(self, nets: Nets) -> bool:
        """Whether several steps at once have the values of each of them, but for rounding.

        Tried with the weights that there are, and with others, as the first ones may be zeros.
        """
        some = torch.stack([self._noise(seed) for seed in range(TRIED)])
        random = torch.Generator().manual_seed(0)
        for noise in (0.0, 1.0):
            with precise({"observations": some}), other_weights(nets, noise, random):
                if not self._are_alike(nets, some):
                    return False
        return True

    def _are_alike(self, nets: Nets, some: torch.Tensor) -> bool:
        try:
            before = [one[: some.shape[1]] for one in self._before()]
            each = [self._evaluated(nets, one, before) for one in some]
            steps = [torch.stack([one] * len(some)) for one in before]
            whole = self._evaluated(nets, some.flatten(0, 1), steps)
        except Exception:
            # It asks for all observations of one step, as it may.
            return False
        for name in self.p.evaluates:
            found, wanted = whole.get(name), torch.cat([values[name] for values in each])
            if not isinstance(found, torch.Tensor) or found.shape != wanted.shape:
                return False
            scale = float(wanted.double().abs().max()) or 1.0
            apart = float((found.double() - wanted.double()).abs().max())
            if not apart <= math.sqrt(ROUNDING) * scale:
                return False
        return True

    def _noise(self, seed: int) -> torch.Tensor:
        """Random observations of a few envs at a step."""
        blank, random = self._blank()[:ROWS], torch.Generator().manual_seed(seed)
        if blank.is_floating_point():
            return torch.randn(blank.shape, generator=random).to(blank)
        most = 256 if blank.dtype == torch.uint8 else 2
        return torch.randint(most, blank.shape, generator=random).to(blank)

    def declare(self, loops: Loops) -> dict[str, Recurrent]:
        """Appends the operations; returns the values of each observation by name.

        Of a round all observations are evaluated, also that after its last step.

        Args:
            loops: says when rounds are, and of which steps.
        """
        p, program, loop, count = self.p, self.p.program, loops.round, loops.steps + 1
        round_, at = program.u // count, loops.first + program.j
        versions = round_ * p.updates // loops.accumulate
        evaluated = {
            name: program.recurrent(name, (p.num_envs, *shape), dtype, over="update")
            for name, (dtype, shape) in self.kinds.items()
        }
        program.operation(
            f"evaluate {', '.join(evaluated)}", self._values, role="learn", **loop.when,
            times=count, batched=self.row_by_row, work=self.work,
            reads=[
                p.declaration.observation[at],
                *(net[p.version(other, versions)] for other, net in p.trained.items()),
                *p.memories.before(at),
            ],
            writes=[replace(one[program.u], same=name) for name, one in evaluated.items()],
        )  # fmt: skip
        return evaluated

    def _before(self) -> list[torch.Tensor]:
        """Zeros like the states of memories before a step."""
        return [self.p.zeros(access) for access in self.p.memories.before(self.p.t)]

    def _evaluated(
        self, nets: Nets, observations: torch.Tensor, before: Sequence[torch.Tensor]
    ) -> Mapping[str, torch.Tensor]:
        """What `evaluate` returns, with the states of memories before the step or steps."""
        with self.p.memories.step(nets, before):
            return self.p.algorithm.evaluate(nets, observations)

    @torch.no_grad()
    def _values(self, observations: torch.Tensor, *read: Any) -> tuple[torch.Tensor, ...]:
        """The values of a step, (num_envs, ...) each, or of several, (steps, num_envs, ...)."""
        p, nets = self.p, by_name(self.names, read[: len(self.names)])
        before = read[len(self.names) :]
        with p.autocast:
            if observations.dim() == self.dimensions:
                values = self._evaluated(nets, observations, before)
                return tuple(values[name] for name in self.kinds)
            steps = max(1, self.at_once(self.work.bytes_each) // p.num_envs)
            parts = []
            for first in range(0, len(observations), steps):
                last = first + steps
                some = [one[first:last] for one in before]
                rows = observations[first:last].flatten(0, 1)
                parts.append(self._evaluated(nets, rows, some))
        whole = (torch.cat([part[name] for part in parts]) for name in self.kinds)
        return tuple(one.unflatten(0, (len(observations), p.num_envs)) for one in whole)
