"""Losses with their gradients in one pass; cule/train/nn/losses.py has the formulas, the oracle.

A kernel writes the gradients of the loss, and each program's parts of the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from cule.train.nn.kernels.returns import LANES

BLOCK = 1024
# Launches a kernel with what is differentiable, the place of the gradients, and that of the sums.
Launch = Callable[..., None]


@triton.jit
def _vtrace_loss(
    log_pi, entropy, values, log_mu, rewards, discounts, played, gradients, sums,
    steps: tl.constexpr, width, vf_coef, ent_coef, rho_bar, c_bar, trace_decay,
    changing: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """A lane is an env. `gradients` has those of log_pi, entropy and values, in this order."""
    if changing:
        ent_coef = tl.load(ent_coef)
    env = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = env < width
    count = steps * width
    following = tl.load(values + count + env, there, 0.0)
    tl.store(gradients + 3 * count + env, tl.zeros([LANES], tl.float32), there)
    target, excess = following, tl.zeros([LANES], tl.float32)
    policy_sum, value_sum = tl.zeros([LANES], tl.float32), tl.zeros([LANES], tl.float32)
    entropy_sum, ratio_sum = tl.zeros([LANES], tl.float32), tl.zeros([LANES], tl.float32)
    square_sum = tl.zeros([LANES], tl.float32)
    for back in range(steps):
        at = (steps - 1 - back) * width + env
        chosen, value = tl.load(log_pi + at, there, 0.0), tl.load(values + at, there, 0.0)
        mask = tl.load(played + at, there, 0).to(tl.float32)
        ratio = tl.where(mask > 0, tl.exp(chosen - tl.load(log_mu + at, there, 0.0)), 0.0)
        reward, discount = tl.load(rewards + at, there, 0.0), tl.load(discounts + at, there, 0.0)
        rho, trace = tl.minimum(ratio, rho_bar), trace_decay * tl.minimum(ratio, c_bar)
        advantage = mask * rho * (reward + discount * target - value)
        delta = rho * (reward + discount * following - value)
        excess = delta + discount * trace * excess
        target, following = value + excess, value
        error = mask * (target - value)
        policy_sum -= advantage * chosen
        square_sum += advantage * advantage
        value_sum += 0.5 * error * error
        entropy_sum += mask * tl.load(entropy + at, there, 0.0)
        ratio_sum += ratio
        tl.store(gradients + at, -advantage / count, there)
        tl.store(gradients + count + at, -ent_coef * mask / count, there)
        tl.store(gradients + 2 * count + at, -vf_coef * error / count, there)
    policy, value = tl.sum(policy_sum) / count, tl.sum(value_sum) / count
    entropy_mean, row = tl.sum(entropy_sum) / count, sums + tl.program_id(0) * 6
    tl.store(row, policy + vf_coef * value - ent_coef * entropy_mean)
    tl.store(row + 1, policy)
    tl.store(row + 2, value)
    tl.store(row + 3, entropy_mean)
    tl.store(row + 4, tl.sum(ratio_sum) / count)
    tl.store(row + 5, tl.sum(square_sum) / count)


@triton.jit
def _clipped_loss(
    log_pi, entropy, values, log_mu, advantages, targets, played, gradients, sums, count,
    clip_coef, vf_coef, ent_coef, changing: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A lane is a step."""
    if changing:
        ent_coef = tl.load(ent_coef)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < count
    mask = tl.load(played + at, there, 0).to(tl.float32)
    log_ratio = tl.load(log_pi + at, there, 0.0) - tl.load(log_mu + at, there, 0.0)
    ratio = tl.exp(log_ratio)
    advantage = tl.load(advantages + at, there, 0.0)
    near = tl.minimum(tl.maximum(ratio, 1 - clip_coef), 1 + clip_coef)
    free, clipped = ratio * advantage, near * advantage
    better = tl.minimum(free, clipped)
    error = tl.load(values + at, there, 0.0) - tl.load(targets + at, there, 0.0)
    tl.store(gradients + at, -mask * tl.where(free <= clipped, free, 0.0) / count, there)
    tl.store(gradients + count + at, -ent_coef * mask / count, there)
    tl.store(gradients + 2 * count + at, vf_coef * mask * error / count, there)
    policy, value = -tl.sum(mask * better) / count, tl.sum(0.5 * mask * error * error) / count
    entropy_mean = tl.sum(mask * tl.load(entropy + at, there, 0.0)) / count
    far = (tl.abs(ratio - 1) > clip_coef).to(tl.float32)
    row = sums + tl.program_id(0) * 6
    tl.store(row, policy + vf_coef * value - ent_coef * entropy_mean)
    tl.store(row + 1, policy)
    tl.store(row + 2, value)
    tl.store(row + 3, entropy_mean)
    tl.store(row + 4, tl.sum(mask * ((ratio - 1) - log_ratio)) / count)
    tl.store(row + 5, tl.sum(mask * far) / count)


class _Loss(torch.autograd.Function):
    """A loss and its parts from a kernel; only the loss has a gradient."""

    @staticmethod
    def forward(
        ctx: Any, launch: Launch, sums: torch.Tensor, *differentiable: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        # The gradients of what is differentiable, one after the other.
        gradients = torch.empty(sum(one.numel() for one in differentiable), device=sums.device)
        launch(*(one.contiguous() for one in differentiable), gradients, sums)
        ctx.save_for_backward(gradients)
        ctx.shapes = [one.shape for one in differentiable]
        loss, *parts = (sums[0] if len(sums) == 1 else sums.sum(0)).unbind()
        ctx.mark_non_differentiable(*parts)
        ctx.set_materialize_grads(False)
        return loss, *parts

    @staticmethod
    def backward(ctx: Any, of_loss: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
        (gradients,) = ctx.saved_tensors
        parts = (gradients * of_loss).split([shape.numel() for shape in ctx.shapes])
        shaped = [part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True)]
        return None, None, *shaped


def vtrace_loss(
    log_pi: torch.Tensor, entropy: torch.Tensor, values: torch.Tensor, log_mu: torch.Tensor,
    rewards: torch.Tensor, discounts: torch.Tensor, played: torch.Tensor,
    vf_coef: float, ent_coef: float | torch.Tensor, rho_bar: float, c_bar: float,
    trace_decay: float, scale_ent: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """As losses.vtrace_loss. Only the loss has a gradient."""
    steps, width = log_pi.shape
    programs = triton.cdiv(width, LANES)
    read = [one.contiguous() for one in (log_mu, rewards, discounts, played.view(torch.uint8))]
    changing = isinstance(ent_coef, torch.Tensor)
    weights = float(vf_coef), ent_coef if changing else float(ent_coef)
    settings = *weights, *(float(one) for one in (rho_bar, c_bar, trace_decay)), changing

    def launch(*tensors: torch.Tensor) -> None:
        differentiable, (gradients, sums) = tensors[:3], tensors[3:]
        _vtrace_loss[(programs,)](
            *differentiable, *read, gradients, sums, steps, width, *settings, LANES
        )
        if scale_ent:
            # Known when all programs have ended.
            scale = sums[:, 5].sum().sqrt()
            count = log_pi.numel()
            gradients[count : 2 * count].mul_(scale)
            sums[:, 0].add_(ent_coef * (1 - scale) * sums[:, 3])

    sums = torch.empty((programs, 6), device=values.device)
    return _Loss.apply(launch, sums, log_pi, entropy, values)[:5]


def clipped_loss(
    log_pi: torch.Tensor, entropy: torch.Tensor, values: torch.Tensor, log_mu: torch.Tensor,
    advantages: torch.Tensor, targets: torch.Tensor, played: torch.Tensor,
    clip_coef: float, vf_coef: float, ent_coef: float | torch.Tensor,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """As losses.clipped_loss. Only the loss has a gradient."""
    count = log_pi.numel()
    programs = triton.cdiv(count, BLOCK)
    read = [one.contiguous() for one in (log_mu, advantages, targets, played.view(torch.uint8))]
    changing = isinstance(ent_coef, torch.Tensor)
    settings = float(clip_coef), float(vf_coef), ent_coef if changing else float(ent_coef), changing

    def launch(*tensors: torch.Tensor) -> None:
        differentiable, (gradients, sums) = tensors[:3], tensors[3:]
        _clipped_loss[(programs,)](*differentiable, *read, gradients, sums, count, *settings, BLOCK)

    sums = torch.empty((programs, 6), device=values.device)
    return _Loss.apply(launch, sums, log_pi, entropy, values)
