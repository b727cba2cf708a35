"""Targets and losses of distributions of returns, and Munchausen's policy.

B is the number of transitions.
"""

from __future__ import annotations

import torch
from torch.nn import functional


def projected(
    probabilities: torch.Tensor, positions: torch.Tensor, support: torch.Tensor
) -> torch.Tensor:
    """C51's projection of a distribution to atoms (Bellemare et al., 2017, equation 7).

    A position between two atoms gives each of them a share of its probability, the more the nearer
    it is; positions beyond the first or the last atom count as these.

    Args:
        probabilities: (B, M) float32.
        positions: (B, M) float32, where they are.
        support: (atoms,) float32, the atoms, at equal distances, two or more.

    Returns:
        (B, atoms) float32, the probabilities of atoms.
    """
    first, last = support[0], support[-1]
    step = (last - first) / (len(support) - 1)
    places = (torch.minimum(torch.maximum(positions, first), last) - first) / step
    numbers = torch.arange(len(support), device=support.device)
    shares = (1 - (places.unsqueeze(2) - numbers).abs()).clamp(min=0)
    return (shares * probabilities.unsqueeze(2)).sum(dim=1)


def cross_entropy(targets: torch.Tensor, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """C51's loss, and how far distributions are apart.

    Args:
        targets: (B, atoms) float32, probabilities.
        logits: (B, atoms) float32.

    Returns:
        (B,) float32 each: the cross entropy, and the divergence of Kullback and Leibler, which has
        the same gradient and is 0 for equal distributions. It is the priority of Rainbow.
    """
    loss = -(targets * logits.log_softmax(dim=1)).sum(dim=1)
    entropy = -torch.xlogy(targets, targets).sum(dim=1)
    return loss, (loss - entropy).detach().clamp(min=0)


def quantile_huber(
    quantiles: torch.Tensor, taus: torch.Tensor, targets: torch.Tensor, kappa: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """IQN's loss (Dabney et al., 2018a, equation 3), and absolute errors.

    Of an error d = target - quantile, the loss is |tau - (1 if d < 0 else 0)| L(d) / kappa, where
    L is Huber's loss: d^2 / 2 if |d| <= kappa, and else kappa (|d| - kappa / 2). It is the sum over
    quantiles of the mean over targets.

    Args:
        quantiles: (B, N) float32.
        taus: (B, N) float32, their fractions.
        targets: (B, M) float32, without a gradient.
        kappa: where Huber's loss becomes linear.

    Returns:
        (B,) float32 each: the loss, and |d|, summed and averaged likewise.
    """
    errors = targets.unsqueeze(1) - quantiles.unsqueeze(2)
    huber = functional.huber_loss(
        quantiles.unsqueeze(2).expand_as(errors), targets.unsqueeze(1).expand_as(errors),
        reduction="none", delta=kappa,
    )  # fmt: skip
    factors = (taus.unsqueeze(2) - (errors.detach() < 0).float()).abs()
    loss = (factors * huber / kappa).mean(dim=2).sum(dim=1)
    return loss, errors.detach().abs().mean(dim=2).sum(dim=1)


def scaled_log_policy(values: torch.Tensor, temperature: float) -> torch.Tensor:
    """The logarithm of Munchausen's policy (Vieillard et al., 2020), times its temperature.

    That is t log(softmax(values / t)). Its stable form is v - t log(sum(exp(v / t))), with v =
    values - max(values).

    Args:
        values: (B, num_actions) float32.
        temperature: t.

    Returns:
        (B, num_actions) float32.
    """
    shifted = values - values.amax(dim=1, keepdim=True)
    return shifted - temperature * (shifted / temperature).logsumexp(dim=1, keepdim=True)
