"""The chosen actions' log-probabilities and the policies' entropy, in one pass each way."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

ROWS = 32


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
        made = torch.empty_like(log_pi)
        of_chosen, of_entropy = (gradient.contiguous() for gradient in gradients)
        _terms_backward[(triton.cdiv(rows, ROWS),)](
            log_pi, actions, of_chosen, of_entropy, made, rows, width,
            ROWS, triton.next_power_of_2(width),
        )  # fmt: skip
        return made, None


def terms(log_pi: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As models.policy_terms, of log-probabilities (n, num_actions) float32 and actions (n,)."""
    return _Terms.apply(log_pi.contiguous(), actions.contiguous())
