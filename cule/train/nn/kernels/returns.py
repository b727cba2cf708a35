"""Returns and advantages, from the last step to the first; a lane of a kernel is an env.

The formulas are in cule/train/nn/returns.py, whose functions are the oracle.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

LANES = 64


@triton.jit
def _vtrace(
    log_ratios, rewards, discounts, values, targets, advantages, steps: tl.constexpr, width,
    rho_bar, c_bar, trace_decay, LANES: tl.constexpr,
):  # fmt: skip
    env = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = env < width
    following = tl.load(values + steps * width + env, there)
    target, excess = following, tl.zeros([LANES], tl.float32)
    for back in range(steps):
        at = (steps - 1 - back) * width + env
        ratio = tl.exp(tl.load(log_ratios + at, there))
        reward, discount = tl.load(rewards + at, there), tl.load(discounts + at, there)
        value = tl.load(values + at, there)
        rho, trace = tl.minimum(ratio, rho_bar), trace_decay * tl.minimum(ratio, c_bar)
        tl.store(advantages + at, rho * (reward + discount * target - value), there)
        delta = rho * (reward + discount * following - value)
        excess = delta + discount * trace * excess
        target = value + excess
        tl.store(targets + at, target, there)
        following = value


@triton.jit
def _gae(
    rewards, discounts, played, values, advantages, steps: tl.constexpr, width, decay,
    LANES: tl.constexpr,
):  # fmt: skip
    env = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = env < width
    following = tl.load(values + steps * width + env, there)
    advantage = tl.zeros([LANES], tl.float32)
    for back in range(steps):
        at = (steps - 1 - back) * width + env
        discount, value = tl.load(discounts + at, there), tl.load(values + at, there)
        delta = tl.load(rewards + at, there) + discount * following - value
        advantage = (delta + discount * decay * advantage) * tl.load(played + at, there)
        tl.store(advantages + at, advantage, there)
        following = value


@triton.jit
def _lambda_returns(
    rewards, discounts, played, values, targets, steps: tl.constexpr, width, decay,
    LANES: tl.constexpr,
):  # fmt: skip
    env = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = env < width
    following = tl.load(values + steps * width + env, there)
    target = following
    for back in range(steps):
        at = (steps - 1 - back) * width + env
        value = tl.load(values + at, there)
        rest = decay * target + (1 - decay) * following
        total = tl.load(rewards + at, there) + tl.load(discounts + at, there) * rest
        target = tl.where(tl.load(played + at, there) > 0, total, value)
        tl.store(targets + at, target, there)
        following = value


@triton.jit
def _discounted_returns(
    rewards, discounts, played, values, returns, steps: tl.constexpr, width, most: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """A program is some envs of one step: it sums at most `most` rewards from there on."""
    env = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = env < width
    begin = tl.program_id(1)
    total = tl.load(values + tl.minimum(begin + most, steps) * width + env, there)
    for back in range(most):
        step = begin + most - 1 - back
        at, known = step * width + env, there & (step < steps)
        following = tl.load(rewards + at, known, 0.0) + tl.load(discounts + at, known, 0.0) * total
        summed = tl.where(
            tl.load(played + at, known, 0.0) > 0, following, tl.load(values + at, known, 0.0)
        )
        total = tl.where(known, summed, total)
    tl.store(returns + begin * width + env, total, there)


def _grid(width: int) -> tuple[int]:
    return (triton.cdiv(width, LANES),)


def vtrace(
    log_ratios: torch.Tensor, rewards: torch.Tensor, discounts: torch.Tensor, values: torch.Tensor,
    rho_bar: float, c_bar: float, trace_decay: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Targets and advantages (T, B), as returns.vtrace."""
    steps, width = rewards.shape
    targets, advantages = torch.empty_like(rewards), torch.empty_like(rewards)
    _vtrace[_grid(width)](
        log_ratios.contiguous(), rewards.contiguous(), discounts.contiguous(),
        values.contiguous(), targets, advantages, steps, width,
        float(rho_bar), float(c_bar), float(trace_decay), LANES,
    )  # fmt: skip
    return targets, advantages


def _scan(kernel: Any, decay: float, *tensors: torch.Tensor) -> torch.Tensor:
    results = torch.empty_like(tensors[0], memory_format=torch.contiguous_format)
    steps, width = results.shape
    kernel[_grid(width)](
        *(tensor.contiguous() for tensor in tensors), results, steps, width, float(decay), LANES
    )
    return results


def gae(
    rewards: torch.Tensor, discounts: torch.Tensor, played: torch.Tensor, values: torch.Tensor,
    gae_lambda: float,
) -> torch.Tensor:  # fmt: skip
    """Advantages (T, B), as returns.gae."""
    return _scan(_gae, gae_lambda, rewards, discounts, played, values)


def lambda_returns(
    rewards: torch.Tensor, discounts: torch.Tensor, played: torch.Tensor, values: torch.Tensor,
    q_lambda: float,
) -> torch.Tensor:  # fmt: skip
    """Targets (T, B), as returns.lambda_returns."""
    return _scan(_lambda_returns, q_lambda, rewards, discounts, played, values)


def discounted_returns(
    rewards: torch.Tensor, discounts: torch.Tensor, played: torch.Tensor, values: torch.Tensor,
    steps: int | None,
) -> torch.Tensor:  # fmt: skip
    """Returns (T, B), as returns.discounted_returns."""
    returns = torch.empty_like(rewards, memory_format=torch.contiguous_format)
    count, width = returns.shape
    _discounted_returns[(*_grid(width), count)](
        rewards.contiguous(), discounts.contiguous(), played.contiguous(), values.contiguous(),
        returns, count, width, count if steps is None else min(steps, count), LANES,
    )  # fmt: skip
    return returns
