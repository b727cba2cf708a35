"""Calls a loss before there is a plan, to see what it reads, returns and needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Nets
from cule.train.batch import Batch, Rows
from cule.train.checks import described
from cule.train.lowering.learning_checks import check_priorities
from cule.train.lowering.method_checks import check_loss, strange_weights
from cule.train.lowering.parts import Parts
from cule.train.lowering.peak_bytes import PeakBytes, bytes_each, held

# The rows of the two calls of a loss by which the memory of a row is measured.
FEW, MORE = 2, 4


@dataclass(frozen=True)
class LossProbe:
    """The result of a first call of a loss.

    Attributes:
        names: what is logged of each update: what it returns besides "loss" and "priorities", and
            "grad_norm".
        used: the parts of a batch that it reads.
        bytes_each: the most bytes in use of a row, at any moment of the loss and its gradient.
        gathered_each: bytes of the parts that it reads of a row.
        in_place_each: those of stacks among them that are read where they are, which are no bytes
            in use.
    """

    names: tuple[str, ...]
    used: tuple[str, ...]
    bytes_each: int
    gathered_each: int
    in_place_each: int


def probe_loss(p: Parts, nets: Nets, rows: Rows) -> LossProbe:
    """Computes the loss and the gradient of a few rows, and of more.

    Raises:
        ValueError: the loss is not a scalar with a gradient, reads what there is not or changes it,
            or does not depend on all networks and on nothing else.
    """
    few, more = min(rows.count, FEW), min(rows.count, MORE)
    batch, needs = rows.batch(0, few), PeakBytes()
    values, gradients = _computed(p, nets, batch, needs)
    check_priorities(values, few, p.phase.learning.prioritized)
    _check_reached(p, nets, gradients)
    if batch.changed:
        raise InvalidValue(
            "expected loss not to change in place what it reads of a batch, got "
            f"{', '.join(batch.changed)} changed"
        )
    each = -(-needs.peak // few)
    if more > few:
        needs_more = PeakBytes()
        _computed(p, nets, rows.batch(0, more), needs_more)
        each = bytes_each(needs, needs_more, more - few)
    names = (*(name for name in values if name not in ("loss", "priorities")), "grad_norm")
    parts: list[torch.Tensor] = [getattr(batch, name) for name in batch.asked]
    gathered = sum(part.nbytes for part in parts) // few
    in_place = sum(part.nbytes for part in parts if held(part) is None) // few
    return LossProbe(names, tuple(sorted(batch.asked)), each, gathered, in_place)


def _computed(
    p: Parts, nets: Nets, batch: Batch, needs: PeakBytes
) -> tuple[Mapping[str, Any], list[torch.Tensor | None]]:
    """What the loss returns, and the gradients of the weights that are used."""
    used = p.nets.weights.used
    with needs, p.autocast, needs.saving():
        values = p.loss(nets, batch)
        check_loss(values)
        if others := strange_weights(values["loss"], used):
            raise InvalidValue(
                "expected the loss to depend on weights of networks() only, got one that needs "
                f"the gradient of {described(others[0])}, which nothing would train"
            )
        return values, list(torch.autograd.grad(values["loss"], used, allow_unused=True))


def _check_reached(p: Parts, nets: Nets, gradients: Sequence[torch.Tensor | None]) -> None:
    """Checks that there are gradients for each network that is trained."""
    used = p.nets.weights.used
    reached = {p for p, gradient in zip(used, gradients, strict=True) if gradient is not None}
    for name, net in vars(nets).items():
        if name in p.trained and name not in p.trains:
            continue  # another learning trains it
        own = [p for p in net.parameters() if p.requires_grad]
        if own and reached.isdisjoint(own):
            raise InvalidValue(
                f"expected the loss to depend on each network's weights, but it does not on those "
                f"of {name}"
            )
