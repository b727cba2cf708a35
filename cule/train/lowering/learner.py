"""Learning: gradients of a loss, in chunks, averaged over processes, and the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train import annotate
from cule.train.algorithm import Algorithm, Nets
from cule.train.batch import Batch, Rows, Used
from cule.train.distributed.reduction import Reduction
from cule.train.lowering import chunks
from cule.train.lowering.returned import (
    check_loss,
    check_norm,
    check_optimizer,
    described,
    strange_weights,
)
from cule.train.lowering.settings_read import OPTIMIZER, reading
from cule.train.lowering.trials import Trials, unchanged
from cule.train.nn.weights import Weights
from cule.train.plan.program import Work


class Learner:
    """Updates networks.

    Args:
        algorithm: whose loss and optimizer.
        weights: of the networks that are trained.
        trials: lets the loss be tried.

    Attributes:
        reduction: averages the gradients of several processes; None: one process learns.
        turn: (1,) int64 on the device, updates modulo `turns`.
        metrics: float64 on the device, sums over updates of `names`.
        unread: settings of the optimizer that the algorithm's own does not read.
    """

    def __init__(self, algorithm: Algorithm[Any], weights: Weights, trials: Trials):
        self.algorithm, self.weights, self.trials = algorithm, weights, trials
        self.reduction: Reduction | None = None
        self.args, device = algorithm.args, algorithm.device
        self.optimizer, self.unread = reading(
            algorithm, OPTIMIZER, lambda: algorithm.optimizer(weights.parameters)
        )
        check_optimizer(self.optimizer, weights.parameters)
        self.loss: Any = algorithm.loss
        if self.args.compile:
            self.loss = torch.compile(algorithm.loss)
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=self.args.bf16)
        self.turn = torch.zeros(1, dtype=torch.int64, device=device)
        self.turns = 1
        self.names: tuple[str, ...] = ()
        self.metrics = torch.zeros(0, dtype=torch.float64, device=device)
        self.used: tuple[str, ...] = ()
        self.work: Work | None = None
        # The phase of learning in which chunks are checked next; whether they ever were.
        self._check_in: int | None = None
        self._checked = False

    def try_out(self, nets: Nets, rows: Rows) -> int:
        """Computes the loss of a few rows, to know what it reads and returns.

        Returns:
            Bytes that a row's activations take.

        Raises:
            ValueError: the loss is not a scalar with a gradient, or reads what there is not.
        """
        kept: dict[int, int] = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        count = min(rows.count, 2)
        batch = rows.batch(0, count)
        weights = {p.untyped_storage().data_ptr() for p in self.weights.used}
        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with self.autocast, hooks:
            values = self.algorithm.loss(nets, batch)
            check_loss(values)
            if others := strange_weights(values["loss"], self.weights.used):
                raise InvalidValue(
                    "expected the loss to depend on weights of networks() only, got one that needs "
                    f"the gradient of {described(others[0])}, which nothing would train"
                )
            gradients = torch.autograd.grad(values["loss"], self.weights.used, allow_unused=True)
        reached = {
            p for p, one in zip(self.weights.used, gradients, strict=True) if one is not None
        }
        for name, net in vars(nets).items():
            own = [p for p in net.parameters() if p.requires_grad]
            if own and reached.isdisjoint(own):
                raise InvalidValue(
                    f"expected the loss to depend on each network's weights, but it does not on "
                    f"those of {name}"
                )
        if batch.changed:
            raise InvalidValue(
                "expected loss not to change in place what it reads of a batch, got "
                f"{', '.join(batch.changed)} changed"
            )
        self.names = (*(name for name in values if name != "loss"), "grad_norm")
        self.metrics = torch.zeros(len(self.names), dtype=torch.float64, device=self.turn.device)
        self.used = tuple(sorted(batch.asked))
        activations = sum(size for place, size in kept.items() if place not in weights)
        return activations // count

    def checks_in(self, phase: int) -> bool:
        """Whether the first gradient of this phase of learning checks that it may be in chunks.

        The first phase's does, and those of phases 2, 4, 8, ...: what the loss gets changes. It is
        not captured, as the host waits for what is found.
        """
        chunked = self.work is not None and self.work.at_once < self.work.samples
        due = chunked and (not self._checked or phase & (phase - 1) == 0)
        self._check_in = phase if due else None
        return due

    def _check_chunks(self, nets: Nets, rows: Rows, at_once: int, phase: int) -> None:
        self._check_in, self._checked = None, True
        own_envs = type(self.algorithm).environment is not Algorithm.environment

        def gradients(parts: chunks.Parts) -> Sequence[torch.Tensor | None]:
            batch: Any = Used(**parts)
            values = self.algorithm.loss(nets, batch)
            return torch.autograd.grad(values["loss"], self.weights.used, allow_unused=True)

        with self.trials():
            chunks.check(
                gradients, nets, rows, self.used, at_once=at_once, seed=phase,
                rewards=() if own_envs else (-1.0, 0.0, 1.0),
            )  # fmt: skip

    def compute_gradient(self, nets: Nets, rows: Rows) -> None:
        """Computes this process's gradient of the rows' loss.

        Raises:
            ValueError: it would be computed in chunks, and the loss is no mean over rows.
        """
        at_once = self.work.at_once if self.work is not None else rows.count
        if self._check_in is not None:
            self._check_chunks(nets, rows, at_once, self._check_in)
        for begin in range(0, rows.count, at_once):
            end = min(begin + at_once, rows.count)
            share = (end - begin) / rows.count
            with annotate.operation("gathering"):
                batch = self._gathered(rows.batch(begin, end))
            with self.autocast:
                values = self.loss(nets, batch)
            check_loss(values, self.names[:-1])
            loss = values["loss"] if share == 1 else values["loss"] * share
            gradients = torch.autograd.grad(loss, self.weights.used, allow_unused=True)
            self.weights.set_gradient(gradients, add=begin > 0)
            if len(self.names) > 1:
                told = torch.stack([values[name].detach().float() for name in self.names[:-1]])
                # `+=` would copy the sum to itself once more.
                self.metrics[:-1].add_(told, alpha=share)
        self.turn.add_(1).remainder_(self.turns)

    def _gathered(self, batch: Batch) -> Any:
        """What the loss uses of a batch, as plain attributes, which torch.compile understands."""
        return Used(**{name: getattr(batch, name) for name in self.used})

    @torch.no_grad()
    def apply_gradient(self) -> None:
        """Clips the gradient and takes a step of the optimizer."""
        gradient = self.weights.gradient
        norm = self.algorithm.norm(gradient, self.weights.gradients)
        check_norm(norm)
        self.metrics[-1].add_(norm)
        if self.args.max_grad_norm is not None:
            gradient.mul_((self.args.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        self.optimizer.step()
        self.weights.round()

    def try_step(self) -> None:
        """Applies the gradient and takes that back, so that what it needs is compiled and loaded.

        All that the next update reads is as before, and in the same memory, which captured steps
        use.
        """
        state = self.optimizer.state
        kept = {p: dict(values) for p, values in state.items()}
        changing = [*self.weights.parameters, self.metrics]
        for values in kept.values():
            changing += [one for one in values.values() if isinstance(one, torch.Tensor)]
        with unchanged(changing):
            self.apply_gradient()
        self.weights.round()
        state.clear()
        state.update(kept)

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

    def take_metrics(self) -> torch.Tensor:
        """The sums of metrics since the last call."""
        sums = self.metrics.clone()
        self.metrics.zero_()
        return sums

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next updates depend on, except the networks' buffers."""
        return {
            "weights": self.weights.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "turn": self.turn,
            "metrics": self.metrics,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned."""
        self.weights.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.turn.copy_(state["turn"])
        self.metrics.copy_(state["metrics"])


def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Copies weights and buffers. All weights of a dtype are one launch on a GPU."""
    kinds: dict[torch.dtype, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        for some, one in zip(kinds.setdefault(its.dtype, ([], [])), (mine, its), strict=True):
            some.append(one)
    with torch.no_grad():
        for targets, sources in kinds.values():
            torch._foreach_copy_(targets, sources)
        for buffer, its_buffer in zip(target.buffers(), source.buffers(), strict=True):
            buffer.copy_(its_buffer)


def by_name(names: Sequence[str], objects: Sequence[nn.Module]) -> Nets:
    """Networks by name, as attributes."""
    return Nets(**dict(zip(names, objects, strict=True)))
