"""Calls a loss before there is a plan, to see what it reads, returns and needs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Nets
from cule.train.batch import Rows
from cule.train.checks import described
from cule.train.lowering.learning_checks import check_priorities
from cule.train.lowering.method_checks import check_loss, strange_weights
from cule.train.lowering.parts import Parts


@dataclass(frozen=True)
class LossProbe:
    """The result of a first call of a loss.

    Attributes:
        names: what is logged of each update: what it returns besides "loss" and "priorities", and
            "grad_norm".
        used: the parts of a batch that it reads.
        bytes_each: bytes that a row's activations take.
    """

    names: tuple[str, ...]
    used: tuple[str, ...]
    bytes_each: int


def probe_loss(p: Parts, nets: Nets, rows: Rows) -> LossProbe:
    """Computes the loss and the gradient of a few rows.

    Raises:
        ValueError: the loss is not a scalar with a gradient, reads what there is not or changes it,
            or does not depend on all networks and on nothing else.
    """
    saved_bytes: dict[int, int] = {}

    def note_saved(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved_bytes[storage.data_ptr()] = storage.nbytes()
        return tensor

    count, used = min(rows.count, 2), p.nets.weights.used
    batch = rows.batch(0, count)
    hooks = torch.autograd.graph.saved_tensors_hooks(note_saved, lambda tensor: tensor)
    with p.autocast, hooks:
        values = p.loss(nets, batch)
        check_loss(values)
        check_priorities(values, count, p.phase.learning.prioritized)
        if others := strange_weights(values["loss"], used):
            raise InvalidValue(
                "expected the loss to depend on weights of networks() only, got one that needs "
                f"the gradient of {described(others[0])}, which nothing would train"
            )
        gradients = torch.autograd.grad(values["loss"], used, allow_unused=True)
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
    if batch.changed:
        raise InvalidValue(
            "expected loss not to change in place what it reads of a batch, got "
            f"{', '.join(batch.changed)} changed"
        )
    weights = {p.untyped_storage().data_ptr() for p in used}
    activations = sum(size for address, size in saved_bytes.items() if address not in weights)
    names = (*(name for name in values if name not in ("loss", "priorities")), "grad_norm")
    return LossProbe(names, tuple(sorted(batch.asked)), activations // count)
