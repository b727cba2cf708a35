"""Learning: gradients of a loss, in chunks, and the optimizer's steps."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Nets
from cule.train.batch import Rows, Used
from cule.train.distributed.process_group import ProcessGroup
from cule.train.lowering import chunks
from cule.train.lowering.learning_checks import check_priorities
from cule.train.lowering.loss_probe import LossProbe
from cule.train.lowering.method_checks import check_loss, check_norm
from cule.train.lowering.networks import load_optimizer
from cule.train.lowering.parts import Parts
from cule.train.lowering.reading_ahead import ReadingAhead
from cule.train.lowering.sandbox import unchanged
from cule.train.plan import annotate
from cule.train.plan.work import Work


class Learner:
    """Computes gradients and updates networks.

    Args:
        parts: the parts of the algorithm's program.
        probe: what the loss reads and returns.
        work: the memory of a gradient, and how many rows are computed at once.
        turn: (1,) int64 on the device, updates modulo `turns`.
        turns: how many groups, or minibatches of an epoch, take turns.
        observations_each: how many observations a row has.

    Attributes:
        name: of the learning; "": the main one.
        names: the names of the numbers that are logged of each update.
        used: the names of the parts of a batch that the loss reads.
        metrics: (len(names),) float64 on the device: the sums of these numbers over updates; of a
            further learning also how many these were.
        priorities: (rows,) float32 on the device, those that the loss returned for the rows of the
            last update; None: nothing is sampled by priorities.
        wrong: () int64 on the device, how many of them were negative or not finite so far.
    """

    def __init__(
        self, parts: Parts, probe: LossProbe, work: Work, turn: torch.Tensor, turns: int,
        observations_each: int,
    ):  # fmt: skip
        self.algorithm, self.weights = parts.algorithm, parts.nets.weights
        self.sandbox, self.optimizer = parts.sandbox, parts.optimizer
        self.args, self.autocast = parts.algorithm.args, parts.autocast
        self.name, self.names = parts.phase.name, probe.names
        self.used, self.work = probe.used, work
        self.accumulate = parts.phase.learning.accumulate
        self.turn, self.turns, self.observations_each = turn, turns, observations_each
        self.loss: Any = parts.loss
        self._plain_loss = self.loss
        if self.args.compile:
            self.loss = torch.compile(parts.loss)
        # The weights that it trains, of all that there are.
        self._own = [p for name in parts.trains for p in parts.nets.trained[name].parameters()]
        # A further learning also counts its updates, as the last number.
        size = len(self.names) + bool(self.name)
        self.metrics = torch.zeros(size, dtype=torch.float64, device=turn.device)
        self.priorities: torch.Tensor | None = None
        self.wrong = torch.zeros((), dtype=torch.int64, device=turn.device)
        if parts.phase.learning.prioritized:
            self.priorities = torch.zeros(work.samples, device=turn.device)
        self._reading = ReadingAhead(turn.device)
        # The phase of learning in which chunks are checked next; whether they ever were.
        self._check_in: int | None = None
        self._checked = False

    @property
    def counts(self) -> list[torch.Tensor]:
        """What a gradient changes besides the gradient."""
        return [self.turn, self.metrics, self.wrong]

    def checks_in(self, phase: int) -> bool:
        """Whether the first gradient of a phase of learning checks that chunks are allowed.

        That of the first phase does, and those of phases 2, 4, 8, ..., as the loss gets other
        values then. Such a phase is not captured, as the host waits for the result.

        Args:
            phase: the number of the phase that comes next, from 1 on.
        """
        chunked = self.work.at_once < self.work.samples
        due = chunked and (not self._checked or phase & (phase - 1) == 0)
        self._check_in = phase if due else None
        return due

    def _check_chunks(self, nets: Nets, rows: Rows, at_once: int, phase: int) -> None:
        self._check_in, self._checked = None, True

        def gradients(parts: chunks.Parts) -> Sequence[torch.Tensor | None]:
            batch: Any = Used(**parts)
            values = self._plain_loss(nets, batch)
            return torch.autograd.grad(values["loss"], self._own, allow_unused=True)

        with self.sandbox():
            chunks.check(
                gradients, nets, rows, self.used, at_once=at_once, seed=phase,
                rewards=() if self.algorithm.brings_envs else (-1.0, 0.0, 1.0),
            )  # fmt: skip

    def compute_gradient(self, nets: Nets, rows: Rows, nth: torch.Tensor | None = None) -> None:
        """Computes this process's gradient of the rows' loss.

        Args:
            nets: the networks.
            rows: the rows.
            nth: (1,) int64 on the device, which of the update's gradients it is, of which the mean
                is taken; None: it is the only one.

        Raises:
            ValueError: it would be computed in chunks, and the loss is no mean over rows.
        """
        at_once = self.work.at_once
        if nth is not None:
            self.weights.gradient.masked_fill_(nth == 0, 0.0)
        if self._check_in is not None:
            self._check_chunks(nets, rows, at_once, self._check_in)
        for begin, end, batch in self._batches(rows):
            share = (end - begin) / rows.count / self.accumulate
            with self.autocast:
                values = self.loss(nets, batch)
            check_loss(values, self.names[:-1])
            check_priorities(values, end - begin, self.priorities is not None)
            if self.priorities is not None:
                given = values["priorities"].detach()
                self.priorities[begin:end].copy_(given)
                self.wrong.add_(((given >= 0) & given.isfinite()).logical_not().sum())
            loss = values["loss"] if share == 1 else values["loss"] * share
            gradients = torch.autograd.grad(loss, self._own, allow_unused=True)
            of = dict(zip(self._own, gradients, strict=True))
            self.weights.set_gradient(
                [of.get(p) for p in self.weights.used], add=begin > 0 or nth is not None
            )
            if len(self.names) > 1:
                logged = torch.stack([values[name].detach().float() for name in self.names[:-1]])
                # `+=` would copy the sum to itself once more.
                self.metrics[: len(logged)].add_(logged, alpha=share)
            del batch  # before the one after the next is read
        self.turn.add_(1).remainder_(self.turns)

    def _batches(self, rows: Rows) -> Iterator[tuple[int, int, Any]]:
        """The chunks of some rows: where each begins and ends, and what the loss reads of it."""
        at_once = self.work.at_once
        bounds = [(i, min(i + at_once, rows.count)) for i in range(0, rows.count, at_once)]
        batches = self._reading.each(
            [functools.partial(self._gathered, rows, begin, end) for begin, end in bounds],
            ahead=self.work.ahead,
        )
        for begin, end in bounds:
            yield begin, end, next(batches)

    def _gathered(self, rows: Rows, begin: int, end: int) -> Any:
        """What the loss reads of some rows, as plain attributes for torch.compile."""
        with annotate.operation("gathering"):
            batch = rows.batch(begin, end)
            return Used(**{name: getattr(batch, name) for name in self.used})

    @torch.no_grad()
    def apply_gradient(self) -> None:
        """Clips the gradient and takes a step of the optimizer."""
        gradient = self.weights.gradient
        norm = self.algorithm.norm(gradient, self.weights.gradients)
        check_norm(norm)
        self.metrics[len(self.names) - 1].add_(norm)
        if self.name:
            self.metrics[-1].add_(1)
        if self.args.max_grad_norm is not None:
            gradient.mul_((self.args.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        self.optimizer.step()
        self.weights.round()

    def try_step(self) -> None:
        """Takes a step of the optimizer and undoes it, so that its kernels are compiled and loaded.

        Weights, metrics and the optimizer's state have their old values again, in the same memory,
        which captured steps use.
        """
        state = self.optimizer.state
        before = {p: dict(values) for p, values in state.items()}
        changing = [*self.weights.parameters, self.metrics]
        for values in before.values():
            changing += [one for one in values.values() if isinstance(one, torch.Tensor)]
        with unchanged(changing):
            self.apply_gradient()
        self.weights.round()
        state.clear()
        state.update(before)

    def set_learning_rate(self, rate: float) -> None:
        """Sets the learning rate of the next steps.

        Raises:
            ValueError: the optimizer's rate is no tensor, so that captured steps would not see it.
        """
        for group in self.optimizer.param_groups:
            if not isinstance(group["lr"], torch.Tensor):
                raise InvalidValue(
                    "expected an optimizer whose learning rate is a tensor, as it changes, got "
                    f"{group['lr']!r}"
                )
            group["lr"].fill_(rate)

    @property
    def logged(self) -> list[str]:
        """`names` as they are in the log."""
        before = f"{self.name}_" if self.name else ""
        return [before + name for name in self.names]

    def means(self, sums: torch.Tensor, updates: int) -> dict[str, float | None]:
        """The means of logged numbers by their names in the log.

        Args:
            sums: of `take_metrics`, over all processes.
            updates: of the main learning meanwhile, in all processes.
        """
        count = float(sums[-1]) if self.name else updates
        return {
            name: float(total) / count if count else None
            for name, total in zip(self.logged, sums, strict=False)
        }

    def take_metrics(self) -> torch.Tensor:
        """The sums of metrics since the last call."""
        sums = self.metrics.clone()
        self.metrics.zero_()
        return sums

    def state_dict(self) -> dict[str, Any]:
        """The state that later updates depend on; networks' buffers are saved elsewhere."""
        return {
            # The main learning has all weights.
            "weights": [] if self.name else self.weights.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "turn": self.turn,
            "metrics": self.metrics,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned."""
        if not self.name:
            self.weights.load_state_dict(state["weights"])
        load_optimizer(self.optimizer, state["optimizer"])
        self.turn.copy_(state["turn"])
        self.metrics.copy_(state["metrics"])


def check_all_priorities(learners: Sequence[Learner], processes: ProcessGroup) -> None:
    """Checks the priorities that losses have returned; waits for the device.

    All processes have to call it.

    Raises:
        ValueError: some were negative, infinite or no numbers.
    """
    prioritized = [learner for learner in learners if learner.priorities is not None]
    if not prioritized:
        return
    wrong = sum(int(learner.wrong) for learner in prioritized)
    if processes.any(wrong > 0):
        raise InvalidValue(
            "expected priorities that are finite and at least 0, such as absolute errors, got "
            f"{wrong:,} others from the loss"
        )
