"""V-trace against its definition, sums and products written out."""

from __future__ import annotations

import math

import pytest
import torch

from cule.train.nn.losses import vtrace_loss
from cule.train.nn.returns import vtrace


def defined(log_ratios, rewards, discounts, values, rho_bar, c_bar, trace_decay):
    """v_s and the policy gradient's weights as Espeholt et al. (2018) define them, one env and one
    number at a time."""
    steps, width = log_ratios.shape
    targets = [[0.0] * width for _ in range(steps)]
    advantages = [[0.0] * width for _ in range(steps)]
    for b in range(width):
        ratio = [math.exp(log_ratios[t, b]) for t in range(steps)]
        rho = [min(rho_bar, ratio[t]) for t in range(steps)]
        c = [trace_decay * min(c_bar, ratio[t]) for t in range(steps)]
        gamma = [float(discounts[t, b]) for t in range(steps)]
        value = [float(values[t, b]) for t in range(steps + 1)]
        reward = [float(rewards[t, b]) for t in range(steps)]

        def target(s, rho=rho, c=c, gamma=gamma, value=value, reward=reward):
            total = value[s]
            for t in range(s, steps):
                delta = rho[t] * (reward[t] + gamma[t] * value[t + 1] - value[t])
                total += math.prod(gamma[i] * c[i] for i in range(s, t)) * delta
            return total

        for s in range(steps):
            targets[s][b] = target(s)
            following = target(s + 1) if s + 1 < steps else value[steps]
            advantages[s][b] = rho[s] * (reward[s] + gamma[s] * following - value[s])
    return torch.tensor(targets, dtype=torch.float64), torch.tensor(advantages, dtype=torch.float64)


def make_inputs(steps, width, spread, seed):
    generator = torch.Generator().manual_seed(seed)
    log_ratios = spread * torch.randn((steps, width), dtype=torch.float64, generator=generator)
    rewards = torch.randint(-1, 2, (steps, width), generator=generator).double()
    discounts = 0.99 * (torch.rand((steps, width), dtype=torch.float64, generator=generator) > 0.15)
    values = torch.randn((steps + 1, width), dtype=torch.float64, generator=generator)
    return log_ratios, rewards, discounts, values


@pytest.mark.parametrize("steps, width", [(1, 1), (5, 3), (20, 7)])
@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
@pytest.mark.parametrize(
    "rho_bar, c_bar", [(1.0, 1.0), (2.0, 0.5), (0.7, 1.5), (math.inf, math.inf)]
)
@pytest.mark.parametrize("trace_decay", [1.0, 0.9])
def test_vtrace_is_what_the_paper_defines(steps, width, spread, rho_bar, c_bar, trace_decay):
    inputs = make_inputs(steps, width, spread, seed=steps)
    got = vtrace(*inputs, rho_bar=rho_bar, c_bar=c_bar, trace_decay=trace_decay)
    targets, advantages = defined(*inputs, rho_bar, c_bar, trace_decay)
    torch.testing.assert_close(got.targets, targets, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(got.advantages, advantages, rtol=1e-12, atol=1e-12)


def test_vtrace_inputs_lie_on_both_sides_of_the_thresholds():
    ratios = make_inputs(20, 7, 2.0, seed=20)[0].exp()
    for threshold in (0.5, 0.7, 1.0, 1.5, 2.0):
        assert (ratios < threshold).sum() > 20 and (ratios > threshold).sum() > 20


def test_vtrace_on_policy_is_the_n_step_return():
    _, rewards, discounts, values = make_inputs(6, 4, 0.0, seed=1)
    returns, following = [], values[-1]
    for t in reversed(range(6)):
        following = rewards[t] + discounts[t] * following
        returns.append(following)
    got = vtrace(torch.zeros_like(rewards), rewards, discounts, values)
    torch.testing.assert_close(got.targets, torch.stack(returns[::-1]))
    torch.testing.assert_close(got.advantages, torch.stack(returns[::-1]) - values[:-1])


def test_vtrace_leaves_steps_of_ratio_zero_out():
    """A truncated step bootstraps from its final observation, whatever follows it."""
    log_ratios, rewards, discounts, values = make_inputs(6, 4, 0.3, seed=2)
    discounts[:] = 0.99
    log_ratios[3] = -math.inf
    got = vtrace(log_ratios, rewards, discounts, values)
    alone = vtrace(log_ratios[:3], rewards[:3], discounts[:3], values[:4])
    torch.testing.assert_close(got.targets[:3], alone.targets)
    torch.testing.assert_close(got.advantages[:3], alone.advantages)
    torch.testing.assert_close(got.targets[3], values[3])
    assert not got.advantages[3].any()


def test_vtrace_refuses_shapes_that_do_not_fit():
    log_ratios, rewards, discounts, values = make_inputs(5, 3, 0.3, seed=3)
    with pytest.raises(
        ValueError, match=r"values of shape \(6, 3\), got \(5, 3\), \(5, 3\) and \(5, 3\)"
    ):
        vtrace(log_ratios, rewards, discounts, values[:-1])


def test_a_scaled_entropy_weighs_as_much_in_games_of_any_size():
    """Gradients of a game with rewards and values 100 times as large are 100 times as large."""
    made = torch.manual_seed(4)
    log_pi, log_mu, entropy, rewards = torch.randn(4, 6, 5, generator=made).double()
    values = torch.randn(7, 5, generator=made).double()
    discounts, played = torch.full((6, 5), 0.9).double(), torch.rand(6, 5, generator=made) > 0.2
    found = {}
    for size in (1.0, 100.0):
        differentiable = [one.clone().requires_grad_() for one in (log_pi, entropy)]
        found[size] = [
            (result, torch.autograd.grad(result.loss, differentiable))
            for scale_ent in (True, False)
            for result in [vtrace_loss(
                *differentiable, size * values, log_mu, size * rewards, discounts, played,
                scale_ent=scale_ent,
            )]
        ]  # fmt: skip
    (small, (small_pi, small_entropy)), (_, (_, fixed)) = found[1.0]
    (_, (large_pi, large_entropy)), (_, (_, large_fixed)) = found[100.0]
    torch.testing.assert_close(large_pi, 100 * small_pi)
    torch.testing.assert_close(large_entropy, 100 * small_entropy)
    torch.testing.assert_close(large_fixed, fixed)
    advantages = vtrace(
        (log_pi - log_mu).masked_fill(~played, -torch.inf), rewards, discounts, values
    ).advantages
    root = advantages.square().mean().sqrt()
    torch.testing.assert_close(small_entropy, root * fixed)
    parts = small.policy_loss + 0.5 * small.value_loss - 0.01 * root * small.entropy
    torch.testing.assert_close(small.loss, parts)
