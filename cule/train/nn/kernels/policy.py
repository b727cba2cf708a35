"""Policies: log-probabilities and values, chosen actions, entropies, in one pass each way."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

ROWS = 32


@triton.jit
def _policy_and_value(
    outputs, log_pi, values, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """`width` actions; a row of outputs has one number more, the value."""
    row, a = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (row[:, None] < rows) & (a[None, :] < width)
    logit = tl.load(outputs + row[:, None] * (width + 1) + a[None, :], there, -float("inf"))
    logit = logit.to(tl.float32)
    logit -= tl.where(row < rows, tl.max(logit, 1), 0.0)[:, None]
    total = tl.where(row < rows, tl.sum(tl.exp(logit), 1), 1.0)
    tl.store(log_pi + row[:, None] * width + a[None, :], logit - tl.log(total)[:, None], there)
    value = tl.load(outputs + row * (width + 1) + width, row < rows, 0.0)
    tl.store(values + row, value.to(tl.float32), row < rows)


@triton.jit
def _policy_and_value_backward(
    log_pi, of_log_pi, of_values, gradients, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """The gradient of log-softmax is g - softmax sum(g)."""
    row, a = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (row[:, None] < rows) & (a[None, :] < width)
    at = row[:, None] * width + a[None, :]
    gradient = tl.load(of_log_pi + at, there, 0.0)
    p = tl.exp(tl.load(log_pi + at, there, 0.0))
    gradient -= p * tl.sum(gradient, 1)[:, None]
    place = gradients + row * (width + 1)
    kind = gradients.dtype.element_ty
    tl.store(place[:, None] + a[None, :], gradient.to(kind), there)
    of_value = tl.load(of_values + row, row < rows, 0.0)
    tl.store(place + width, of_value.to(kind), row < rows)


class _PolicyAndValue(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, width = outputs.shape[0], outputs.shape[1] - 1
        log_pi = torch.empty((rows, width), device=outputs.device)
        values = torch.empty(rows, device=outputs.device)
        _policy_and_value[(triton.cdiv(rows, ROWS),)](
            outputs, log_pi, values, rows, width, ROWS, triton.next_power_of_2(width)
        )
        ctx.save_for_backward(log_pi)
        ctx.dtype = outputs.dtype
        return log_pi, values

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (log_pi,) = ctx.saved_tensors
        rows, width = log_pi.shape
        of_outputs = torch.empty((rows, width + 1), dtype=ctx.dtype, device=log_pi.device)
        of_log_pi, of_values = (gradient.contiguous() for gradient in gradients)
        _policy_and_value_backward[(triton.cdiv(rows, ROWS),)](
            log_pi, of_log_pi, of_values, of_outputs, rows, width,
            ROWS, triton.next_power_of_2(width),
        )  # fmt: skip
        return of_outputs


def policy_and_value(outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As models.policy_and_value."""
    return _PolicyAndValue.apply(outputs.contiguous())


@triton.jit
def _first_to_ring(
    log_pi, clocks, actions, chosen, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    row, a = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (row[:, None] < rows) & (a[None, :] < width)
    at = row[:, None] * width + a[None, :]
    log_p = tl.load(log_pi + at, there, -float("inf"))
    sooner = log_p - tl.log(tl.load(clocks + at, there, 1.0))
    action = tl.argmax(sooner, 1)
    tl.store(actions + row, action.to(tl.int64), row < rows)
    taken = there & (a[None, :] == action[:, None])
    tl.store(chosen + row, tl.sum(tl.where(taken, log_p, 0.0), 1), row < rows)


def first_to_ring(log_pi: torch.Tensor, clocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The actions whose clocks, divided by the probabilities, ring first.

    Args:
        log_pi: log-probabilities (n, num_actions) float32.
        clocks: exponential variables of the same shape.

    Returns:
        The actions (n,) int64 and their log-probabilities (n,) float32.
    """
    rows, width = log_pi.shape
    actions = torch.empty(rows, dtype=torch.int64, device=log_pi.device)
    chosen = torch.empty(rows, device=log_pi.device)
    _first_to_ring[(triton.cdiv(rows, ROWS),)](
        log_pi.contiguous(), clocks, actions, chosen, rows, width, ROWS,
        triton.next_power_of_2(width),
    )  # fmt: skip
    return actions, chosen


@triton.jit
def _terms(log_pi, actions, chosen, entropy, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row, a = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (row[:, None] < rows) & (a[None, :] < width)
    log_p = tl.load(log_pi + row[:, None] * width + a[None, :], there, 0.0)
    p = tl.where(there, tl.exp(log_p), 0.0)
    action = tl.load(actions + row, row < rows, 0)
    taken = there & (a[None, :] == action[:, None])
    tl.store(chosen + row, tl.sum(tl.where(taken, log_p, 0.0), 1), row < rows)
    tl.store(entropy + row, -tl.sum(p * log_p, 1), row < rows)


@triton.jit
def _terms_backward(
    log_pi, actions, of_chosen, of_entropy, gradients, rows, width,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row, a = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (row[:, None] < rows) & (a[None, :] < width)
    at = row[:, None] * width + a[None, :]
    log_p = tl.load(log_pi + at, there, 0.0)
    action = tl.load(actions + row, row < rows, 0)
    taken = a[None, :] == action[:, None]
    first = tl.where(taken, tl.load(of_chosen + row, row < rows, 0.0)[:, None], 0.0)
    second = tl.load(of_entropy + row, row < rows, 0.0)[:, None] * tl.exp(log_p) * (log_p + 1)
    tl.store(gradients + at, first - second, there)


class _Terms(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, log_pi: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows, width = log_pi.shape
        chosen = torch.empty(rows, device=log_pi.device)
        entropy = torch.empty_like(chosen)
        _terms[(triton.cdiv(rows, ROWS),)](
            log_pi, actions, chosen, entropy, rows, width, ROWS, triton.next_power_of_2(width)
        )
        ctx.save_for_backward(log_pi, actions)
        return chosen, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        log_pi, actions = ctx.saved_tensors
        rows, width = log_pi.shape
        of_outputs = torch.empty_like(log_pi)
        of_chosen, of_entropy = (gradient.contiguous() for gradient in gradients)
        _terms_backward[(triton.cdiv(rows, ROWS),)](
            log_pi, actions, of_chosen, of_entropy, of_outputs, rows, width,
            ROWS, triton.next_power_of_2(width),
        )  # fmt: skip
        return of_outputs, None


def terms(log_pi: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As models.policy_terms, of log-probabilities (n, num_actions) float32 and actions (n,)."""
    return _Terms.apply(log_pi.contiguous(), actions.contiguous())
