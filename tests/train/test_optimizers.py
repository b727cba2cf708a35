"""Adam in one kernel beside torch's, and what is kept of it: on a GPU, or interpreted on a CPU."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from cule.train.lowering.networks import load_optimizer
from cule.train.nn import optimizers
from cule.train.nn.models import ActorCritic
from cule.train.nn.weights import Weights

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
pytestmark = pytest.mark.gpu if torch.cuda.is_available() else []
RATE, EPSILON = 1e-3, 1e-5


@pytest.fixture(autouse=True)
def served(monkeypatch):
    monkeypatch.setattr(optimizers.kernels, "serve", lambda tensor: True)


def made(*, rounded=True):
    """Weights of a network, and their optimizer."""
    torch.manual_seed(3)
    net = ActorCritic(6, width=0.05).to(DEVICE, memory_format=torch.channels_last)
    weights = Weights([net], DEVICE, rounded=rounded)
    rate = torch.tensor(RATE, device=DEVICE)
    return weights, optimizers.Adam(weights.parameters, rate, EPSILON)


def steps(weights, optimizer, numbers):
    """Takes a step for each number, with gradients of its own, some of them 0 and some small."""
    for number in numbers:
        gradient = torch.randn(weights.gradient.shape, generator=torch.manual_seed(number))
        gradient *= torch.rand(gradient.shape) ** 8
        gradient[number % 7 :: 5] = 0
        weights.gradient.copy_(gradient)
        optimizer.step()


@pytest.mark.parametrize("rounded", [True, False])
def test_adam_takes_the_steps_of_torchs(rounded):
    weights, optimizer = made(rounded=rounded)
    assert optimizer._vectors is not None
    exact = [nn.Parameter(p.detach().double()) for p in weights.parameters]
    theirs = torch.optim.Adam(exact, lr=RATE, eps=EPSILON)
    before = [p.detach().clone() for p in exact]
    for number in range(60):
        steps(weights, optimizer, [number])
        for p, gradient in zip(exact, weights.gradients, strict=True):
            p.grad = gradient.double()
        theirs.step()
        if number in (0, 1, 59):
            for one, other, old in zip(weights.parameters, exact, before, strict=True):
                moved = (other.detach() - old).abs().max()
                assert (one.detach() - other.detach()).abs().max() <= 2e-5 * moved + 1e-7


def test_adam_goes_on_from_what_it_or_torch_has_kept():
    """Exactly from its own; of torch's the state has the same names and shapes."""
    weights, optimizer = made()
    steps(weights, optimizer, range(5))
    kept, numbers = copy.deepcopy(optimizer.state_dict()), weights.state_dict()
    numbers = [p.clone() for p in numbers]
    steps(weights, optimizer, range(5, 9))
    again, other = made()
    steps(again, other, range(2))
    again.load_state_dict(numbers)
    other.load_state_dict(copy.deepcopy(kept))
    steps(again, other, range(5, 9))
    for one, two in zip(weights.parameters, again.parameters, strict=True):
        assert torch.equal(one, two)
    plain = [nn.Parameter(p.detach().clone()) for p in numbers]
    theirs = torch.optim.Adam(plain, lr=torch.tensor(RATE), eps=EPSILON)
    theirs.load_state_dict(copy.deepcopy(kept))
    for name, value in theirs.state_dict()["state"][0].items():
        assert torch.equal(value, kept["state"][0][name])
    # What has no state yet begins anew.
    fresh, unused = made()
    other.load_state_dict(copy.deepcopy(unused.state_dict()))
    again.load_state_dict([p.clone() for p in fresh.state_dict()])
    steps(fresh, unused, range(3))
    steps(again, other, range(3))
    for one, two in zip(fresh.parameters, again.parameters, strict=True):
        assert torch.equal(one, two)


def test_parameters_that_are_no_vector_are_torchs(monkeypatch):
    parameters = [nn.Parameter(torch.ones(3, device=DEVICE)) for _ in range(2)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    optimizer = optimizers.Adam(parameters, torch.tensor(RATE, device=DEVICE), EPSILON)
    assert optimizer._vectors is None
    optimizer.step()
    assert all(torch.allclose(p, torch.full_like(p, 1 - RATE)) for p in parameters)


def test_an_optimizer_goes_on_on_another_kind_of_device():
    """A state of a GPU says that a CUDA graph can hold a step, which a CPU's optimizer refuses."""
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    one, other = (torch.optim.Adam([weight], lr=0.1) for _ in range(2))
    one.step()
    state = one.state_dict()
    state["param_groups"][0]["capturable"] = True
    load_optimizer(other, state)
    assert not other.param_groups[0]["capturable"]
    other.step()
    assert other.state[weight]["step"] == 2
