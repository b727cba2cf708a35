"""Whether a gradient may be computed in chunks: whether a loss is a mean over its rows.

The gradient of a mean is the mean of its chunks' gradients, whatever the chunks are. That of a loss
with a normalization inside, with batch norm or dropout, is not: what is learned would depend on the
memory that there is. So the gradient of a few rows at once is compared with the mean of those of
two rows each, in float32, and some times more with other weights and other rows: the first ones may
be such that a mean over rows changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Nets
from cule.train.batch import Rows

Parts = Mapping[str, torch.Tensor]
# The gradients of some rows' loss.
Gradients = Callable[[Parts], Sequence[torch.Tensor | None]]
# A fault is largest between few rows and fewer, and they need little memory and time.
MOST, PIECE = 16, 2
# The relative error of a rounding to float32.
ROUNDING = torch.finfo(torch.float32).eps
REMEDY = (
    "What is over all rows, such as their mean or a normalization, belongs in prepare or in "
    "Learning(normalize=...); with Learning(whole=True) there are no chunks"
)


def check(
    gradients: Gradients,
    nets: Nets,
    rows: Rows,
    names: Sequence[str],
    *,
    at_once: int,
    rewards: Sequence[float],
    seed: int,
) -> None:
    """Checks that chunks of an update's rows have the gradient of all of them.

    Random numbers, buffers and what else the loss changes are the caller's to restore.

    Args:
        gradients: of a loss, for parts of a batch.
        nets: the networks that it uses.
        rows: the update's.
        names: the parts of a batch that the loss uses.
        at_once: rows of a chunk.
        rewards: the values that a reward can have; empty: they are not known.
        seed: of the random changes to rows and weights.

    Raises:
        ValueError: the loss draws random numbers, or is no mean over rows.
    """
    # float32 needs twice the memory of bfloat16. Two rows there are room for, as they were tried.
    count = min(rows.count, MOST, max(PIECE, at_once // 2))
    alone = count < 2 * PIECE or 1 in (at_once, rows.count % at_once)
    each = 1 if alone else PIECE
    batch = rows.batch(0, count)
    real = {name: getattr(batch, name).clone() for name in names}
    split = f"its gradient is computed from {at_once:,} of {rows.count:,} rows at a time"
    random = torch.Generator().manual_seed(seed)
    # The fewer the rows, the likelier they are alike by chance.
    for noise in (0.0, *[1.0] * max(1, MOST // count)):
        parts = varied(real, rewards, rows.dimension, each, random) if noise else real
        with precise(parts), other_weights(nets, noise, random):
            if draws_random(gradients, parts):
                raise InvalidValue(
                    f"expected a loss without random numbers, such as dropout's, as {split}, each "
                    f"with numbers of its own; got one that draws them. {REMEDY}"
                )
            change = difference(gradients, parts, rows.dimension, each)
        if not change.is_rounding:
            raise InvalidValue(
                f"expected a loss that is a mean over its rows, as {split}, got one whose gradient "
                f"changes by {max(change.pieces, change.order):.2%} if {count} rows are taken in "
                f"pieces of {each}. {REMEDY}"
            )


class Difference(NamedTuple):
    """How gradients of the same rows differ, as shares of the pieces' mean norm.

    Attributes:
        pieces: that of all rows at once, and the mean of the pieces'.
        order: that of the rows, and of the rows in reverse order. For a mean it is rounding.
        finite: the gradient of the rows at once has finite numbers only.
    """

    pieces: float
    order: float
    finite: bool

    @property
    def is_rounding(self) -> bool:
        """Whether both are small: less than half-way from rounding to 1, on a logarithmic scale.

        A gradient of NaN says nothing, and ends a training by itself.
        """
        tolerance = math.sqrt(max(self.order, ROUNDING))
        both = self.pieces <= tolerance and self.order <= math.sqrt(ROUNDING)
        return both or not self.finite


def difference(gradients: Gradients, parts: Parts, dimension: int, each: int) -> Difference:
    """How gradients of the same rows differ.

    Args:
        gradients: of a loss.
        parts: of the rows' batch.
        dimension: of each part, over rows.
        each: rows of a piece.
    """
    count = next(iter(parts.values())).shape[dimension]
    whole = _vector(gradients(parts))
    backwards = _vector(gradients({n: part.flip(dimension) for n, part in parts.items()}))
    mean, scale = torch.zeros_like(whole), 0.0
    for begin in range(0, count, each):
        size = min(each, count - begin)
        some = {name: part.narrow(dimension, begin, size) for name, part in parts.items()}
        piece = _vector(gradients(some))
        mean.add_(piece, alpha=size / count)
        scale += float(piece.norm()) * size / count
    if scale == 0:
        scale = float(whole.norm()) or 1.0
    apart, order = float((whole - mean).norm()), float((whole - backwards).norm())
    return Difference(apart / scale, order / scale, bool(whole.isfinite().all()))


def _vector(gradients: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """The gradients of all weights that have one."""
    return torch.cat([one.float().flatten() for one in gradients if one is not None])


def draws_random(gradients: Gradients, parts: Parts) -> bool:
    """Whether a loss takes numbers from torch's generators."""

    def states() -> list[torch.Tensor]:
        devices = {part.device for part in parts.values() if part.is_cuda}
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(one) for one in devices)]

    before = states()
    gradients(parts)
    return not all(map(torch.equal, before, states()))


def varied(
    parts: Parts, rewards: Sequence[float], dimension: int, each: int, random: torch.Generator
) -> Parts:
    """A batch's parts with other numbers and rewards, and with more steps that were not played.

    The first of pieces of `each` rows loses none of its steps, and the second some. Numbers but
    observations keep their signs and get smaller, so that probabilities stay what they are.
    """
    others = {name: _other(part, name == "observations", random) for name, part in parts.items()}
    if "played" in parts:
        some = torch.rand(parts["played"].shape, generator=random) < 0.5
        some.narrow(dimension, 0, each).fill_(True)
        some.narrow(dimension, each, 1).fill_(False)
        others["played"] = parts["played"] & some.to(parts["played"].device)
    if "rewards" in parts and rewards:
        like = parts["rewards"]
        drawn = torch.randint(len(rewards), like.shape, generator=random)
        others["rewards"] = torch.tensor(rewards)[drawn].to(like)
    return others


def _other(part: torch.Tensor, observed: bool, random: torch.Generator) -> torch.Tensor:
    """A part with other numbers. Integers except pixels stay, as they may be indices."""
    if observed and part.dtype == torch.uint8:
        drawn = torch.randint(256, part.shape, generator=random, dtype=torch.uint8)
        return drawn.to(part.device)
    if not part.is_floating_point():
        return part
    other = part * (0.5 + 0.5 * torch.rand(part.shape, generator=random)).to(part)
    if observed:
        other += 0.1 * torch.randn(part.shape, generator=random).to(part)
    return other


@contextmanager
def other_weights(nets: Nets, noise: float, random: torch.Generator) -> Iterator[None]:
    """In a `with` block, weights are in float32, and noise is added to them.

    Args:
        nets: the networks.
        noise: its deviation, as a share of one with which a layer keeps its inputs' size.
        random: draws it.
    """
    own = [p for net in vars(nets).values() for p in net.parameters()]
    before = [p.data for p in own]
    try:
        for p in own:
            scale = noise / math.sqrt(max(1, p[0].numel())) if p.dim() > 1 else 0.1 * noise
            drawn = torch.randn(p.shape, generator=random).to(p.device)
            p.data = p.data.float() + scale * drawn
        yield
    finally:
        for p, data in zip(own, before, strict=True):
            p.data = data


@contextmanager
def precise(parts: Parts) -> Iterator[None]:
    """In a `with` block, a GPU computes float32 without rounding it to TF32."""
    if not any(part.is_cuda for part in parts.values()):
        yield
        return
    cudnn: Any = torch.backends.cudnn
    backends: Sequence[Any] = (cudnn.conv, cudnn.rnn, torch.backends.cuda.matmul)
    before = [one.fp32_precision for one in backends]
    try:
        for one in backends:
            one.fp32_precision = "ieee"
        yield
    finally:
        for one, was in zip(backends, before, strict=True):
            one.fp32_precision = was
