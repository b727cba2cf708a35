"""Losses with their gradients in one pass; cule/train/losses.py has the formulas, the oracle.

A kernel writes the gradients of the loss, and each program's parts of the sums.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from cule.train.kernels.returns import LANES

BLOCK = 1024


@triton.jit
def _vtrace_loss(
    log_pi, entropy, values, log_mu, rewards, discounts, played, gradients, sums,
    steps: tl.constexpr, width, vf_coef, ent_coef, rho_bar, c_bar, trace_decay,
    LANES: tl.constexpr,
):  # fmt: skip
    """A lane is an env. `gradients` has those of log_pi, entropy and values, in this order."""
    env = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = env < width
    count = steps * width
    following = tl.load(values + count + env, there, 0.0)
    tl.store(gradients + 3 * count + env, tl.zeros([LANES], tl.float32), there)
    target, excess = following, tl.zeros([LANES], tl.float32)
    policy_sum, value_sum = tl.zeros([LANES], tl.float32), tl.zeros([LANES], tl.float32)
    entropy_sum, ratio_sum = tl.zeros([LANES], tl.float32), tl.zeros([LANES], tl.float32)
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
        value_sum += 0.5 * error * error
        entropy_sum += mask * tl.load(entropy + at, there, 0.0)
        ratio_sum += ratio
        tl.store(gradients + at, -advantage / count, there)
        tl.store(gradients + count + at, -ent_coef * mask / count, there)
        tl.store(gradients + 2 * count + at, -vf_coef * error / count, there)
    policy, value = tl.sum(policy_sum) / count, tl.sum(value_sum) / count
    entropy_mean, row = tl.sum(entropy_sum) / count, sums + tl.program_id(0) * 5
    tl.store(row, policy + vf_coef * value - ent_coef * entropy_mean)
    tl.store(row + 1, policy)
    tl.store(row + 2, value)
    tl.store(row + 3, entropy_mean)
    tl.store(row + 4, tl.sum(ratio_sum) / count)


@triton.jit
def _clipped_loss(
    log_pi, entropy, values, log_mu, advantages, targets, played, gradients, sums, count,
    clip_coef, vf_coef, ent_coef, BLOCK: tl.constexpr,
):  # fmt: skip
    """A lane is a step."""
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


def _scalars(ctx: Any, sums: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The loss and its parts; only the loss has a gradient."""
    loss, *parts = (sums[0] if len(sums) == 1 else sums.sum(0)).unbind()
    ctx.mark_non_differentiable(*parts)
    ctx.set_materialize_grads(False)
    return loss, *parts


def _parts(ctx: Any, of_loss: torch.Tensor) -> list[torch.Tensor]:
    """The gradients that a kernel wrote, with their shapes."""
    (gradients,) = ctx.saved_tensors
    sizes = [shape.numel() for shape in ctx.shapes]
    parts = (gradients * of_loss).split(sizes)
    return [part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True)]


class _VTraceLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, log_pi: torch.Tensor, entropy: torch.Tensor, values: torch.Tensor, *others: Any
    ) -> tuple[torch.Tensor, ...]:
        *read, vf_coef, ent_coef, rho_bar, c_bar, trace_decay = others
        steps, width = log_pi.shape
        # Of log_pi (T, B), entropy (T, B) and values (T + 1, B), one after the other.
        gradients = torch.empty((3 * steps + 1) * width, device=values.device)
        programs = triton.cdiv(width, LANES)
        sums = torch.empty((programs, 5), device=values.device)
        _vtrace_loss[(programs,)](
            log_pi.contiguous(), entropy.contiguous(), values.contiguous(),
            *(tensor.contiguous() for tensor in read), gradients, sums, steps, width,
            *map(float, (vf_coef, ent_coef, rho_bar, c_bar, trace_decay)), LANES,
        )  # fmt: skip
        ctx.save_for_backward(gradients)
        ctx.shapes = log_pi.shape, entropy.shape, values.shape
        return _scalars(ctx, sums)

    @staticmethod
    def backward(ctx: Any, of_loss: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
        return *_parts(ctx, of_loss), *[None] * 9


class _ClippedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, log_pi: torch.Tensor, entropy: torch.Tensor, values: torch.Tensor, *others: Any
    ) -> tuple[torch.Tensor, ...]:
        *read, clip_coef, vf_coef, ent_coef = others
        count = log_pi.numel()
        gradients = torch.empty(3 * count, device=values.device)
        programs = triton.cdiv(count, BLOCK)
        sums = torch.empty((programs, 6), device=values.device)
        _clipped_loss[(programs,)](
            log_pi.contiguous(), entropy.contiguous(), values.contiguous(),
            *(tensor.contiguous() for tensor in read), gradients, sums, count,
            *map(float, (clip_coef, vf_coef, ent_coef)), BLOCK,
        )  # fmt: skip
        ctx.save_for_backward(gradients)
        ctx.shapes = log_pi.shape, entropy.shape, values.shape
        return _scalars(ctx, sums)

    @staticmethod
    def backward(ctx: Any, of_loss: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
        return *_parts(ctx, of_loss), *[None] * 7


def vtrace_loss(
    log_pi: torch.Tensor, entropy: torch.Tensor, values: torch.Tensor, log_mu: torch.Tensor,
    rewards: torch.Tensor, discounts: torch.Tensor, played: torch.Tensor,
    vf_coef: float, ent_coef: float, rho_bar: float, c_bar: float, trace_decay: float,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """As losses.vtrace_loss. Only the loss has a gradient."""
    return _VTraceLoss.apply(
        log_pi, entropy, values, log_mu, rewards, discounts, played.view(torch.uint8),
        vf_coef, ent_coef, rho_bar, c_bar, trace_decay,
    )  # fmt: skip


def clipped_loss(
    log_pi: torch.Tensor, entropy: torch.Tensor, values: torch.Tensor, log_mu: torch.Tensor,
    advantages: torch.Tensor, targets: torch.Tensor, played: torch.Tensor,
    clip_coef: float, vf_coef: float, ent_coef: float,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """As losses.clipped_loss. Only the loss has a gradient."""
    return _ClippedLoss.apply(
        log_pi, entropy, values, log_mu, advantages, targets, played.view(torch.uint8),
        clip_coef, vf_coef, ent_coef,
    )  # fmt: skip
