"""Distributions of returns: targets and losses beside their definitions in loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cule.train.nn.distributions import (
    cross_entropy,
    projected,
    quantile_huber,
    scaled_log_policy,
)

RANDOM = torch.Generator().manual_seed(0)


def normal(*shape):
    return torch.randn(*shape, generator=RANDOM)


def projection_by_loops(chances, positions, lowest, highest, atoms):
    """Algorithm 1 of Bellemare et al. (2017), for one distribution."""
    step, found = (highest - lowest) / (atoms - 1), [0.0] * atoms
    for chance, position in zip(chances, positions, strict=True):
        place = (min(max(position, lowest), highest) - lowest) / step
        lower, upper = math.floor(place), math.ceil(place)
        if lower == upper:
            found[lower] += chance
        else:
            found[lower] += chance * (upper - place)
            found[upper] += chance * (place - lower)
    return found


@pytest.mark.parametrize(("lowest", "highest", "atoms"), [(-10.0, 10.0, 51), (-1.0, 2.0, 4)])
def test_projection_is_that_of_the_algorithm(lowest, highest, atoms):
    support = torch.linspace(lowest, highest, atoms)
    rewards, discounts = normal(40, 1) * 5, torch.rand(40, 1, generator=RANDOM)
    discounts[:5] = 0  # terminal: one position
    rewards[:2], rewards[2:4] = highest + 3, lowest - 3
    discounts[5:8], rewards[5:8] = 1, 0  # exactly on the atoms
    chances = normal(40, atoms).softmax(dim=1)
    positions = rewards + discounts * support
    found = projected(chances, positions, support)
    for row in range(40):
        wanted = projection_by_loops(
            chances[row].tolist(), positions[row].tolist(), lowest, highest, atoms
        )
        np.testing.assert_allclose(found[row], wanted, atol=1e-5)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(40))
    torch.testing.assert_close(found[5:8], chances[5:8], atol=1e-5, rtol=0)


def test_cross_entropy_and_divergence():
    targets, logits = normal(6, 5).softmax(dim=1), normal(6, 5).requires_grad_()
    with torch.no_grad():
        targets[0] = torch.tensor([0.0, 0, 1, 0, 0])
        logits[1] = targets[1].log()
    loss, divergence = cross_entropy(targets, logits)
    for row in range(6):
        own = logits[row].detach().double()
        chances = [math.exp(x) / sum(math.exp(y) for y in own) for x in own]
        wanted = -sum(float(p) * math.log(q) for p, q in zip(targets[row], chances, strict=True))
        apart = sum(
            float(p) * math.log(float(p) / q) for p, q in zip(targets[row], chances, strict=True)
            if p
        )  # fmt: skip
        assert float(loss[row]) == pytest.approx(wanted, rel=1e-5)
        assert float(divergence[row]) == pytest.approx(apart, abs=1e-6)
    assert not divergence.requires_grad and divergence.min() >= 0
    assert float(divergence[1]) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("kappa", [1.0, 0.5])
def test_quantile_huber_is_that_of_loops(kappa):
    quantiles, targets = normal(4, 3).requires_grad_(), normal(4, 5)
    taus = torch.rand(4, 3, generator=RANDOM)
    found, errors = quantile_huber(quantiles, taus, targets, kappa)
    for row in range(4):
        total = absolute = 0.0
        for i in range(3):
            for j in range(5):
                error = float(targets[row, j] - quantiles[row, i])
                huber = error**2 / 2 if abs(error) <= kappa else kappa * (abs(error) - kappa / 2)
                total += abs(float(taus[row, i]) - (error < 0)) * huber / kappa / 5
                absolute += abs(error) / 5
        assert float(found[row]) == pytest.approx(total, rel=1e-5)
        assert float(errors[row]) == pytest.approx(absolute, rel=1e-5)
    assert not errors.requires_grad


def test_quantiles_that_learn_are_those_of_what_is_seen():
    """Of the numbers 0 to 99 the loss is least where a share tau of them is below."""
    seen = torch.arange(100.0).expand(3, -1)
    taus = torch.tensor([0.1, 0.5, 0.9]).unsqueeze(1)
    quantiles = torch.full((3, 1), 50.0, requires_grad=True)
    optimizer = torch.optim.SGD([quantiles], lr=20.0)
    for _ in range(500):
        optimizer.zero_grad()
        quantile_huber(quantiles, taus, seen)[0].sum().backward()
        optimizer.step()
    assert quantiles.flatten().tolist() == pytest.approx([9.5, 49.5, 89.5], abs=1)


@pytest.mark.parametrize("temperature", [0.03, 1.0])
def test_log_policy_is_that_of_a_softmax(temperature):
    values = normal(6, 4)
    values[0] += 1000
    found = scaled_log_policy(values, temperature)
    for row in range(6):
        own = values[row].double() / temperature
        largest = max(own.tolist())
        total = math.fsum(math.exp(x - largest) for x in own.tolist())
        wanted = [temperature * (x - largest - math.log(total)) for x in own.tolist()]
        np.testing.assert_allclose(found[row], wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close((found / temperature).exp().sum(dim=1), torch.ones(6))
