"""Muon's work before and after it makes matrices orthogonal, for all of them in one pass each.

Weights of layers are matrices in a vector. A matrix in a stack has zeros around it, and may be
transposed there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from cule.train.nn.matrices import Place

BLOCK = 1024


def table_of(places: Sequence[Place], device: torch.device) -> torch.Tensor:
    """The table of the kernels' programs, (programs, 8) int64; each has up to BLOCK numbers.

    The columns: `begin`, the first of its numbers, how many the matrix has, `columns`, `to`, `row`,
    `column` and the matrix' number.
    """
    lines = [
        (place.begin, first, place.rows * place.columns, place.columns, place.to, place.row,
         place.column, number)
        for number, place in enumerate(places)
        for first in range(0, place.rows * place.columns, BLOCK)
    ]  # fmt: skip
    return torch.tensor(lines, dtype=torch.int64, device=device)


@triton.jit
def _places(table, BLOCK: tl.constexpr):
    """Of a program's numbers: where they are in the vectors and in the stacks, and which exist."""
    line = table + tl.program_id(0) * 8
    index = tl.load(line + 1) + tl.arange(0, BLOCK)
    columns = tl.load(line + 3)
    inside = index // columns * tl.load(line + 5) + index % columns * tl.load(line + 6)
    return tl.load(line) + index, tl.load(line + 4) + inside, index < tl.load(line + 2)


@triton.jit
def _directions(gradients, means, stacks, table, momentum, BLOCK: tl.constexpr):
    at, to, there = _places(table, BLOCK)
    gradient = tl.load(gradients + at, there, 0.0)
    mean = tl.load(means + at, there, 0.0)
    mean += (1 - momentum) * (gradient - mean)
    tl.store(means + at, mean, there)
    ahead = gradient + momentum * (mean - gradient)
    tl.store(stacks + to, ahead.to(stacks.dtype.element_ty), there)


@triton.jit
def _move(parameters, stacks, table, sizes, rate, BLOCK: tl.constexpr):
    at, to, there = _places(table, BLOCK)
    matrix = tl.load(table + tl.program_id(0) * 8 + 7)
    size = tl.load(sizes + matrix) * tl.load(rate)
    step = tl.load(stacks + to, there, 0.0).to(tl.float32)
    parameter = tl.load(parameters + at, there, 0.0)
    tl.store(parameters + at, parameter - size * step, there)


@triton.jit
def _bounds(grams, least, factors, shares, rows, BLOCK: tl.constexpr):
    """A program is a matrix."""
    gram = grams + tl.program_id(0).to(tl.int64) * rows * rows
    trace = tl.zeros([BLOCK], tl.float32)
    for first in range(0, rows, BLOCK):
        at = first + tl.arange(0, BLOCK)
        trace += tl.load(gram + at * (rows + 1), at < rows, 0.0).to(tl.float32)
    norm = tl.sqrt(tl.sum(trace))
    size = norm + tl.load(least + tl.program_id(0)).to(tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, rows * rows, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(gram + at, at < rows * rows, 0.0).to(tl.float32) / (size * size)
        total += value * value
    bound = 1.02 * tl.maximum(tl.sqrt(tl.sqrt(tl.sum(total))), 0.05)
    # The second is of the first as it was rounded: the polynomials are steep.
    factor = (1 / (size * bound)).to(factors.dtype.element_ty).to(tl.float32)
    tl.store(factors + 2 * tl.program_id(0), factor)
    tl.store(factors + 2 * tl.program_id(0) + 1, factor * factor)
    tl.store(shares + tl.program_id(0), norm / size)


def directions(
    gradients: torch.Tensor, means: torch.Tensor, stacks: torch.Tensor, table: torch.Tensor,
    momentum: float,
) -> None:  # fmt: skip
    """Updates the means of gradients, and writes Nesterov's look-ahead of them into the stacks.

    Args:
        gradients: (n,) float32.
        means: (n,) float32, changed in place.
        stacks: the memory of all stacks, float32 or bfloat16.
        table: the result of `table_of`.
        momentum: the decay of the means.
    """
    _directions[(len(table),)](gradients, means, stacks, table, momentum, BLOCK)


def move(
    parameters: torch.Tensor, stacks: torch.Tensor, table: torch.Tensor, sizes: torch.Tensor,
    rate: torch.Tensor,
) -> None:  # fmt: skip
    """Subtracts from each matrix its direction in a stack, times its size and the rate.

    Args:
        parameters: (n,) float32, changed in place.
        stacks: the memory of all stacks, float32 or bfloat16.
        table: the result of `table_of`.
        sizes: (matrices,) float32.
        rate: () float32, the learning rate.
    """
    _move[(len(table),)](parameters, stacks, table, sizes, rate, BLOCK)


def bounds(grams: torch.Tensor, least: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The factors of matrices after which no singular value is above 1.

    Args:
        grams: (k, m, m), each matrix times its transpose.
        least: k norms; the result of a matrix with a far smaller norm stays small.

    Returns:
        (k, 2, 1, 1) in the dtype of `grams`: the factors of the matrices and of `grams`; and (k,)
        float32, a matrix' norm by the sum of it and the least one.
    """
    grams = grams.contiguous()
    factors = grams.new_empty((len(grams), 2, 1, 1))
    shares = torch.empty(len(grams), device=grams.device)
    _bounds[(len(grams),)](grams, least, factors, shares, grams.shape[1], 4 * BLOCK)
    return factors, shares
