"""Losses of policies and values: V-trace's and PPO's.

A kernel computes each with its gradient where there is one; what it computes stands here in torch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from cule.train.nn import kernels
from cule.train.nn.returns import vtrace


class VTraceLoss(NamedTuple):
    """The loss, with a gradient, and what it is made of; all are scalars.

    It is that of Espeholt et al. (2018), "IMPALA", section 4.2.

    Attributes:
        loss: policy_loss + vf_coef value_loss - ent_coef entropy; with scale_ent, ent_coef times
            the root mean square of A.
        policy_loss: the mean of -A_s log pi(a_s | x_s).
        value_loss: the mean of (v_s - V(x_s))^2 / 2.
        entropy: the mean entropy of the policy.
        ratio: the mean of pi(a_s | x_s) / mu(a_s | x_s).
    """

    loss: torch.Tensor
    policy_loss: torch.Tensor
    value_loss: torch.Tensor
    entropy: torch.Tensor
    ratio: torch.Tensor


def vtrace_loss(
    log_pi: torch.Tensor,
    entropy: torch.Tensor,
    values: torch.Tensor,
    log_mu: torch.Tensor,
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    played: torch.Tensor,
    *,
    vf_coef: float = 0.5,
    ent_coef: float | torch.Tensor = 0.01,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    trace_decay: float = 1.0,
    scale_ent: bool = False,
) -> VTraceLoss:
    """The loss of T steps of B envs. A step that was not played counts as 0 in each mean.

    Args:
        log_pi: (T, B) log pi(a_s | x_s), with a gradient.
        entropy: (T, B) of the policy, with a gradient.
        values: (T + 1, B) V(x_s), with a gradient except of the last row.
        log_mu: (T, B) log mu(a_s | x_s), where mu is the policy that acted.
        rewards: (T, B).
        discounts: (T, B).
        played: (T, B) bool; False: the step reset the env.
        vf_coef: weight of the value's loss.
        ent_coef: weight of the entropy; also a scalar on the device, which may change.
        rho_bar: see returns.vtrace.
        c_bar: see returns.vtrace.
        trace_decay: see returns.vtrace.
        scale_ent: multiply ent_coef by the root mean square of these steps' advantages. They are
            as large as a game's rewards are and its values wrong, a hundred times larger in one
            game than in another, and only the entropy's gradient does not grow with them.
    """
    if kernels.serve(values):
        from cule.train.nn.kernels import losses as fused

        return VTraceLoss(*fused.vtrace_loss(
            log_pi, entropy, values, log_mu, rewards, discounts, played,
            vf_coef, ent_coef, rho_bar, c_bar, trace_decay, scale_ent,
        ))  # fmt: skip
    log_ratios = (log_pi - log_mu).detach().masked_fill(~played, -torch.inf)
    corrected = vtrace(
        log_ratios, rewards, discounts, values.detach(),
        rho_bar=rho_bar, c_bar=c_bar, trace_decay=trace_decay,
    )  # fmt: skip
    mask = played.float()
    advantages = corrected.advantages * mask
    policy_loss = -(advantages * log_pi).mean()
    value_loss = (0.5 * (corrected.targets - values[:-1]).square() * mask).mean()
    entropy = (entropy * mask).mean()
    weight = ent_coef * advantages.square().mean().sqrt() if scale_ent else ent_coef
    loss = policy_loss + vf_coef * value_loss - weight * entropy
    return VTraceLoss(loss, policy_loss, value_loss, entropy, log_ratios.exp().mean())


class ClippedLoss(NamedTuple):
    """The loss, with a gradient, and what it is made of; all are scalars.

    It is that of Schulman et al. (2017), "Proximal policy optimization algorithms", section 3,
    with r the ratio pi(a | x) / mu(a | x).

    Attributes:
        loss: policy_loss + vf_coef value_loss - ent_coef entropy.
        policy_loss: the mean of -min(r A, clip(r, 1 - clip_coef, 1 + clip_coef) A).
        value_loss: the mean of (G - V(x))^2 / 2.
        entropy: the mean entropy of the policy.
        approx_kl: the mean of r - 1 - log r, an estimate of KL(mu, pi) (Schulman, 2020).
        clip_fraction: the share of steps whose ratio is outside of the clip.
    """

    loss: torch.Tensor
    policy_loss: torch.Tensor
    value_loss: torch.Tensor
    entropy: torch.Tensor
    approx_kl: torch.Tensor
    clip_fraction: torch.Tensor


def clipped_loss(
    log_pi: torch.Tensor,
    entropy: torch.Tensor,
    values: torch.Tensor,
    log_mu: torch.Tensor,
    advantages: torch.Tensor,
    targets: torch.Tensor,
    played: torch.Tensor,
    *,
    clip_coef: float = 0.1,
    vf_coef: float = 0.5,
    ent_coef: float | torch.Tensor = 0.01,
) -> ClippedLoss:
    """PPO's loss of n steps. A step that was not played counts as 0 in each mean.

    Args:
        log_pi: (n,) log pi(a | x), with a gradient.
        entropy: (n,) of the policy, with a gradient.
        values: (n,) V(x), with a gradient.
        log_mu: (n,) log mu(a | x), where mu is the policy that acted.
        advantages: (n,) A.
        targets: (n,) G.
        played: (n,) bool; False: the step reset the env.
        clip_coef: how far from 1 a ratio may be.
        vf_coef: weight of the value's loss.
        ent_coef: weight of the entropy; also a scalar on the device, which may change.
    """
    if kernels.serve(values):
        from cule.train.nn.kernels import losses as fused

        return ClippedLoss(*fused.clipped_loss(
            log_pi, entropy, values, log_mu, advantages, targets, played,
            clip_coef, vf_coef, ent_coef,
        ))  # fmt: skip
    mask = played.float()
    log_ratio = log_pi - log_mu
    ratio = log_ratio.exp()
    near = ratio.clamp(1 - clip_coef, 1 + clip_coef)
    policy_loss = -(torch.minimum(ratio * advantages, near * advantages) * mask).mean()
    value_loss = (0.5 * (values - targets).square() * mask).mean()
    entropy = (entropy * mask).mean()
    loss = policy_loss + vf_coef * value_loss - ent_coef * entropy
    approx_kl = (((ratio - 1) - log_ratio) * mask).mean()
    clip_fraction = (((ratio - 1).abs() > clip_coef) * mask).mean()
    return ClippedLoss(loss, policy_loss, value_loss, entropy, approx_kl, clip_fraction)
