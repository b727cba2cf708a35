"""Adam's step of one vector, in one pass."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _correction(steps, log_beta):
    """1 - beta^steps. Near 0 a series, as a difference of floats would be off by 1e-4 of it."""
    x = steps * log_beta
    series = -x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5))))
    return tl.where(x > -0.05, series, 1 - tl.exp(x))


@triton.jit
def _adam(
    parameters, gradients, first, second, steps, rate, size, beta_1, beta_2, log_beta_1, log_beta_2,
    epsilon, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < size
    gradient = tl.load(gradients + at, there, 0.0)
    mean = beta_1 * tl.load(first + at, there, 0.0) + (1 - beta_1) * gradient
    square = beta_2 * tl.load(second + at, there, 0.0) + (1 - beta_2) * gradient * gradient
    tl.store(first + at, mean, there)
    tl.store(second + at, square, there)
    step = tl.load(steps)
    size_of_step = tl.load(rate) / _correction(step, log_beta_1)
    root = tl.sqrt(square) / tl.sqrt(_correction(step, log_beta_2)) + epsilon
    parameter = tl.load(parameters + at, there, 0.0)
    tl.store(parameters + at, parameter - size_of_step * mean / root, there)


def adam(
    parameters: torch.Tensor, gradients: torch.Tensor, first: torch.Tensor, second: torch.Tensor,
    steps: torch.Tensor, rate: torch.Tensor, betas: tuple[float, float], epsilon: float,
) -> None:  # fmt: skip
    """A step of Adam (Kingma and Ba, 2015, algorithm 1) in place.

    Args:
        parameters: (n,) float32.
        gradients: (n,) float32.
        first: (n,) float32, the moving mean of gradients.
        second: (n,) float32, the moving mean of their squares.
        steps: () float32, the number of steps, with this one.
        rate: () float32, the learning rate.
        betas: the decays of `first` and of `second`.
        epsilon: is added to the denominator.
    """
    size = parameters.numel()
    _adam[(triton.cdiv(size, BLOCK),)](
        parameters, gradients, first, second, steps, rate, size, *betas, *map(math.log, betas),
        epsilon, BLOCK,
    )  # fmt: skip
