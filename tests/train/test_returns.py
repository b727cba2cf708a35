"""GAE, n-step returns and Q(lambda), against the sums that define them."""

from __future__ import annotations

import pytest
import torch

from cule.train.nn.returns import discounted_returns, explained_variance, gae, lambda_returns

T, B = 9, 4


@pytest.fixture
def steps():
    random = torch.Generator().manual_seed(0)

    def draw(count):
        return torch.randn(count, B, generator=random).double()

    discounts = 0.9 * (torch.rand(T, B, generator=random) > 0.2).double()
    played = (torch.rand(T, B, generator=random) > 0.2).double()
    assert (discounts == 0).any() and (played == 0).any()
    return draw(T), discounts, played, draw(T + 1)


def test_gae_is_the_sum_it_is_defined_as(steps):
    rewards, discounts, played, values = steps
    got = gae(rewards, discounts, played, values, 0.8)
    for env in range(B):
        for start in range(T):
            total, weight = 0.0, 1.0
            for t in range(start, T):
                if not played[t, env]:
                    break
                following = discounts[t, env] * values[t + 1, env]
                total += weight * (rewards[t, env] + following - values[t, env])
                weight *= 0.8 * discounts[t, env]
            torch.testing.assert_close(got[start, env], torch.as_tensor(total).double())


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("n", [None, 1, 3, 20])
def test_discounted_returns_are_the_sums_they_are_defined_as(steps, n, valued):
    rewards, discounts, played, values = steps
    got = discounted_returns(rewards, discounts, played, values if valued else None, n)
    worth = values if valued else torch.zeros_like(values)
    for env in range(B):
        for start in range(T):
            end = T if n is None else min(start + n, T)
            total, weight = 0.0, 1.0
            for t in range(start, end):
                if not played[t, env]:
                    total += weight * worth[t, env]
                    break
                total += weight * rewards[t, env]
                weight *= discounts[t, env]
            else:
                total += weight * worth[end, env]
            torch.testing.assert_close(got[start, env], torch.as_tensor(total).double())


def test_lambda_returns_mix_n_step_returns(steps):
    """With lambda 1 the returns of all steps, with 0 one-step targets; between, their recursion."""
    rewards, discounts, played, values = steps
    ones = torch.ones_like(played)
    whole = discounted_returns(rewards, discounts, ones, values)
    torch.testing.assert_close(lambda_returns(rewards, discounts, ones, values, 1.0), whole)
    single = rewards + discounts * values[1:]
    torch.testing.assert_close(lambda_returns(rewards, discounts, ones, values, 0.0), single)
    # G = (1 - l) sum of l^(n-1) R_n, the last one with all that is left of the weight.
    mixed = torch.zeros_like(rewards)
    for start in range(T):
        for n in range(1, T - start + 1):
            returns = discounted_returns(rewards, discounts, ones, values, n)[start]
            share = 0.6 ** (n - 1) * (1.0 if n == T - start else 0.4)
            mixed[start] += share * returns
    torch.testing.assert_close(lambda_returns(rewards, discounts, ones, values, 0.6), mixed)
    got = lambda_returns(rewards, discounts, played, values, 0.6)
    assert torch.equal(got[played == 0], values[:-1][played == 0])


def test_explained_variance_is_1_for_perfect_predictions_and_0_for_a_constant():
    targets = torch.randn(100)
    assert explained_variance(targets, targets) == 1
    torch.testing.assert_close(explained_variance(torch.zeros(100), targets), torch.tensor(0.0),
                               atol=1e-5, rtol=0)  # fmt: skip
