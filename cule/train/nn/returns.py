"""V-trace targets, from the definition in Espeholt et al. (2018), "IMPALA", section 4.1.

Symbols, with T steps of B envs, and x_t the observation at which action a_t was taken:

    mu, pi       the policy that acted, and the one that is learning
    V(x_t)       the value that is learning
    gamma_t      the discount of step t: 0 where x_{t+1} is terminal
    rho_t      = min(rho_bar, pi(a_t | x_t) / mu(a_t | x_t))
    c_t        = lambda min(c_bar, pi(a_t | x_t) / mu(a_t | x_t))
    delta_t V  = rho_t (r_t + gamma_t V(x_{t+1}) - V(x_t))
    v_s        = V(x_s) + sum over t = s .. T-1 of
                     (product over i = s .. t-1 of gamma_i c_i) delta_t V

It is computed from the last step to the first, as in the paper's remark 1:

    v_s - V(x_s) = delta_s V + gamma_s c_s (v_{s+1} - V(x_{s+1})),   v_T = V(x_T)

A ratio of 0 (a log ratio of minus infinity) makes v_s = V(x_s). This leaves out a step that was not
played but reset the env. The step before it, if truncated, then bootstraps from its own final
observation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from cule.errors import InvalidValue
from cule.train.nn import kernels


class VTrace(NamedTuple):
    """The results of V-trace, without gradients.

    Attributes:
        targets: (T, B) float32, v_s, the targets of V(x_s).
        advantages: (T, B) float32, rho_s (r_s + gamma_s v_{s+1} - V(x_s)), the weights of the
            policy gradient.
    """

    targets: torch.Tensor
    advantages: torch.Tensor


@torch.no_grad()
def vtrace(
    log_ratios: torch.Tensor,
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    values: torch.Tensor,
    *,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    trace_decay: float = 1.0,
) -> VTrace:
    """V-trace targets and advantages.

    Args:
        log_ratios: (T, B) log pi(a_t | x_t) - log mu(a_t | x_t); minus infinity leaves a step out.
        rewards: (T, B) r_t.
        discounts: (T, B) gamma_t.
        values: (T + 1, B) V(x_t), the last row for bootstrapping.
        rho_bar: the threshold of the ratios in delta and in the policy gradient.
        c_bar: the threshold of the ratios in the trace.
        trace_decay: lambda, from 0 to 1.

    Raises:
        ValueError: the shapes do not match.
    """
    steps, width = log_ratios.shape
    if (
        rewards.shape != (steps, width)
        or discounts.shape != (steps, width)
        or values.shape != (steps + 1, width)
    ):
        raise InvalidValue(
            f"expected rewards and discounts of shape {(steps, width)}, as log_ratios, and values "
            "of shape "
            f"{(steps + 1, width)}, got {tuple(rewards.shape)}, {tuple(discounts.shape)} and "
            f"{tuple(values.shape)}"
        )
    if kernels.serve(values):
        from cule.train.nn.kernels import returns as fused

        return VTrace(*fused.vtrace(
            log_ratios, rewards, discounts, values, rho_bar, c_bar, trace_decay
        ))  # fmt: skip
    ratios = log_ratios.exp()
    rhos, traces = ratios.clamp(max=rho_bar), trace_decay * ratios.clamp(max=c_bar)
    deltas = rhos * (rewards + discounts * values[1:] - values[:-1])
    decays = discounts * traces
    excess = torch.zeros_like(values[0])
    excesses = []
    for step in reversed(range(steps)):
        excess = deltas[step] + decays[step] * excess
        excesses.append(excess)
    targets = values[:-1] + torch.stack(excesses[::-1])
    following = torch.cat([targets[1:], values[-1:]])
    return VTrace(targets, rhos * (rewards + discounts * following - values[:-1]))


@torch.no_grad()
def gae(
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    played: torch.Tensor,
    values: torch.Tensor,
    gae_lambda: float,
) -> torch.Tensor:
    """Generalized advantage estimation (Schulman et al., 2016).

        delta_t = r_t + gamma_t V(x_{t+1}) - V(x_t)
        A_t     = delta_t + gamma_t lambda A_{t+1},   0 for a step that was not played

    A termination makes gamma_t 0. A truncation does not: its step bootstraps from the final
    observation's value. The trace ends there, as the next step was not played.

    Args:
        rewards: (T, B).
        discounts: (T, B).
        played: (T, B), 1 or 0.
        values: (T + 1, B).
        gae_lambda: lambda, from 0 to 1.

    Returns:
        (T, B).
    """
    if kernels.serve(values):
        from cule.train.nn.kernels import returns as fused

        return fused.gae(rewards, discounts, played, values, gae_lambda)
    deltas = rewards + discounts * values[1:] - values[:-1]
    advantage = torch.zeros_like(values[0])
    advantages = torch.empty_like(rewards)
    for step in reversed(range(len(rewards))):
        advantage = (deltas[step] + discounts[step] * gae_lambda * advantage) * played[step]
        advantages[step] = advantage
    return advantages


@torch.no_grad()
def discounted_returns(
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    played: torch.Tensor,
    values: torch.Tensor | None = None,
    steps: int | None = None,
) -> torch.Tensor:
    """Sums of discounted rewards: of all steps, or of the next few, n-step returns.

    Args:
        rewards: (T, B).
        discounts: (T, B).
        played: (T, B), 1 or 0; the sum ends before a step that was not played.
        values: (T + 1, B), what follows the last step of a sum is worth; None: nothing.
        steps: n, the most rewards in a sum; None: all until the end.

    Returns:
        (T, B).
    """
    count = len(rewards)
    if values is None:
        values = rewards.new_zeros((count + 1, *rewards.shape[1:]))
    if kernels.serve(values):
        from cule.train.nn.kernels import returns as fused

        return fused.discounted_returns(rewards, discounts, played, values, steps)
    returns = torch.empty_like(rewards)

    def sum_from(step: int, rest: torch.Tensor) -> torch.Tensor:
        following = rewards[step] + discounts[step] * rest
        return torch.where(played[step] > 0, following, values[step])

    if steps is None:
        total = values[-1]
        for step in reversed(range(count)):
            returns[step] = total = sum_from(step, total)
        return returns
    for begin in range(count):
        end = min(begin + steps, count)
        total = values[end]
        for step in reversed(range(begin, end)):
            total = sum_from(step, total)
        returns[begin] = total
    return returns


@torch.no_grad()
def lambda_returns(
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    played: torch.Tensor,
    values: torch.Tensor,
    q_lambda: float,
) -> torch.Tensor:
    """Peng's Q(lambda) (1994): targets of the values of actions.

        G_t = r_t + gamma_t (lambda G_{t+1} + (1 - lambda) V(x_{t+1})),   G_T = V(x_T)

    where V(x) is the maximum over actions. Before a step that was not played G is V.

    Args:
        rewards: (T, B).
        discounts: (T, B).
        played: (T, B), 1 or 0.
        values: (T + 1, B), V.
        q_lambda: lambda, from 0 to 1.

    Returns:
        (T, B).
    """
    if kernels.serve(values):
        from cule.train.nn.kernels import returns as fused

        return fused.lambda_returns(rewards, discounts, played, values, q_lambda)
    target, targets = values[-1], torch.empty_like(rewards)
    for step in reversed(range(len(rewards))):
        following = q_lambda * target + (1 - q_lambda) * values[step + 1]
        target = torch.where(
            played[step] > 0, rewards[step] + discounts[step] * following, values[step]
        )
        targets[step] = target
    return targets


@torch.no_grad()
def explained_variance(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """1 less the share of the targets' variance that predictions leave; 1 is perfect."""
    left = (targets - predictions).var(correction=0)
    return 1 - left / (targets.var(correction=0) + 1e-8)
