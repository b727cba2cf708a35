"""Muon beside torch's, and what it does to a matrix."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from cule.train.nn import optimizers
from cule.train.nn.models import ActorCritic
from cule.train.nn.optimizers import Muon
from cule.train.nn.weights import Weights

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
pytestmark = pytest.mark.gpu if torch.cuda.is_available() else []
RATE, MOMENTUM, EPSILON = 1e-3, 0.9, 1e-5


@pytest.fixture(autouse=True, params=["torch", "kernels"])
def served(request, monkeypatch):
    """With and without kernels, which are interpreted where there is no GPU."""
    if request.param == "kernels":
        pytest.importorskip("triton")
    monkeypatch.setattr(optimizers.kernels, "serve", lambda tensor: request.param == "kernels")
    return request.param


def orthogonal(matrices, least=1e-12):
    """What a step takes of matrices."""
    least = torch.full((len(matrices), 1, 1), least, device=matrices.device, dtype=matrices.dtype)
    found, shares = optimizers.orthogonal(matrices, least)
    return found * shares.view(-1, 1, 1)


def made(*, channels_last=True):
    """Weights of a network, and their optimizer."""
    torch.manual_seed(3)
    net = ActorCritic(6, width=0.25)
    if channels_last:
        net = net.to(memory_format=torch.channels_last)
    weights = Weights([net.to(DEVICE)], DEVICE, rounded=False)
    rate = torch.tensor(RATE, device=DEVICE)
    return weights, Muon(weights.parameters, rate, MOMENTUM, EPSILON)


def steps(weights, optimizer, numbers):
    """Takes a step for each number, with gradients of its own."""
    for number in numbers:
        for i, gradient in enumerate(weights.gradients):
            random = torch.randn(gradient.shape, generator=torch.manual_seed(100 * number + i))
            gradient.copy_(random * 10.0 ** (number % 3))
        optimizer.step()


def test_singular_values_become_alike():
    torch.manual_seed(0)
    matrices = torch.randn(3, 12, 40, dtype=torch.float64) * torch.logspace(0, -1, 12)[:, None]
    matrices = matrices.to(DEVICE)
    turned, values, other = torch.linalg.svd(matrices, full_matrices=False)
    found = orthogonal(matrices)
    found_turned = turned.mT @ found @ other.mT
    assert (values.amax(1) > 5 * values.amin(1)).all()
    diagonal = found_turned.diagonal(dim1=1, dim2=2)
    assert (diagonal > 0.7).all() and (diagonal < 1.3).all()
    assert (found_turned - torch.diag_embed(diagonal)).abs().max() < 1e-9


def test_zeros_around_a_matrix_change_nothing(served):
    matrix = torch.randn(1, 5, 9, dtype=torch.float64, generator=torch.manual_seed(1))
    matrix = matrix.to(DEVICE)
    padded = torch.zeros(1, 8, 20, dtype=torch.float64, device=DEVICE)
    padded[:, :5, :9] = matrix
    found = orthogonal(padded)
    # The kernel's factors are float32.
    near = 1e-12 if served == "torch" else 1e-6
    assert torch.allclose(found[:, :5, :9], orthogonal(matrix), atol=near)
    assert not found[:, 5:].any() and not found[:, :, 9:].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_matrices_of_any_size_become_alike(dtype):
    matrix = torch.randn(1, 6, 30, generator=torch.manual_seed(2)).to(DEVICE, dtype)
    found = orthogonal(matrix)
    for size in (2.0**-24, 2.0**-12, 2.0**20, 2.0**40):
        assert torch.allclose(orthogonal(size * matrix), found, rtol=0.02, atol=0.02)
    assert not orthogonal(0 * matrix).any()


@pytest.mark.parametrize("rank", [1, 2, 8, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounding_does_not_let_values_grow(rank, dtype):
    random = torch.manual_seed(rank)
    for power in range(-30, 4, 3):
        left, right = (torch.randn(*s, generator=random) for s in ((64, rank), (rank, 576)))
        matrix = (left @ right * 10.0**power).to(DEVICE, dtype)[None]
        found = orthogonal(matrix).float()
        assert torch.linalg.matrix_norm(found, 2).item() < 1.7


@pytest.mark.slow
def test_a_gradient_that_ends_lets_steps_end(served):
    """However small the mean becomes that it has left."""
    if served == "kernels" and DEVICE.type == "cpu":
        pytest.skip("1,500 steps take the interpreter minutes; sizes are in the tests above")
    weights, optimizer = made()
    steps(weights, optimizer, range(3))
    weights.gradient.zero_()
    moved = []
    for _ in range(1500):
        before = weights.parameters[0].detach().clone()
        optimizer.step()
        moved.append((weights.parameters[0].detach() - before).norm().item())
    assert all(torch.isfinite(p).all() for p in weights.parameters)
    assert moved[0] > 1e-3 and max(moved) < 1.5 * moved[0] and moved[600] < 1e-6 * moved[0]


@pytest.mark.parametrize("channels_last", [True, False])
def test_muon_takes_the_steps_of_torchs(channels_last):
    """Torch's brings singular values as near to 1, but otherwise. Adam's steps are torch's."""
    weights, optimizer = made(channels_last=channels_last)
    starts = [p.detach().clone() for p in weights.parameters]
    layers = [nn.Parameter(p.flatten(1).clone()) for p in starts if p.dim() > 1]
    others = [nn.Parameter(p.clone()) for p in starts if p.dim() < 2]
    muon = torch.optim.Muon(
        layers, lr=RATE, weight_decay=0.0, momentum=MOMENTUM, adjust_lr_fn="match_rms_adamw"
    )
    adam = torch.optim.Adam(others, lr=RATE, eps=EPSILON)
    for number in range(4):
        steps(weights, optimizer, [number])
        kept = iter(layers), iter(others)
        for gradient in weights.gradients:
            next(kept[gradient.dim() < 2]).grad = (
                gradient.flatten(1) if gradient.dim() > 1 else gradient
            ).clone()
        muon.step()
        adam.step()
    kept = iter(layers), iter(others)
    for p, start in zip(weights.parameters, starts, strict=True):
        theirs = next(kept[p.dim() < 2]).view(p.shape) - start
        ours = p.detach() - start
        assert theirs.norm() > 0
        if p.dim() < 2:
            assert (ours - theirs).norm() <= 1e-4 * theirs.norm()
        else:
            # All values may be 0.7 to 1.3 times too large, and torch's 0.7 to 1.15.
            assert 0.7 < ours.norm() / theirs.norm() < 1.5
            assert (ours * theirs).sum() > 0.93 * ours.norm() * theirs.norm()


@pytest.mark.parametrize("served", ["kernels"], indirect=True)
def test_kernels_take_the_steps_that_torch_takes(served, monkeypatch):
    """Also of a matrix with more rows than columns, and after a change of what is kept."""
    results = []
    for serve in (False, True):
        monkeypatch.setattr(optimizers.kernels, "serve", lambda tensor, serve=serve: serve)
        torch.manual_seed(5)
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last), nn.Linear(40, 90),
            nn.Linear(20, 6),
        )  # fmt: skip
        weights = Weights([net.to(DEVICE)], DEVICE, rounded=True)
        rate = torch.tensor(0.1, device=DEVICE)
        optimizer = Muon(weights.parameters, rate, MOMENTUM, EPSILON)
        assert (optimizer._vectors is not None) == serve
        steps(weights, optimizer, range(2))
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        steps(weights, optimizer, range(2, 4))
        kept = optimizer.state_dict()["state"].values()
        results.append(
            [p.detach().clone() for p in weights.parameters]
            + [tensor.clone() for state in kept for tensor in state.values()]
        )
    near = {"rtol": 1e-5, "atol": 1e-5} if DEVICE.type == "cpu" else {"rtol": 0.02, "atol": 0.01}
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, **near)


def test_a_step_is_as_large_as_adams():
    weights, optimizer = made()
    before = [p.detach().clone() for p in weights.parameters]
    steps(weights, optimizer, [1])
    for p, start in zip(weights.parameters, before, strict=True):
        size = (p.detach() - start).square().mean().sqrt() / RATE
        assert 0.1 < size < 1.1


def test_muon_goes_on_from_what_it_has_kept():
    weights, optimizer = made()
    steps(weights, optimizer, range(3))
    kept = copy.deepcopy(optimizer.state_dict())
    numbers = [p.clone() for p in weights.state_dict()]
    steps(weights, optimizer, range(3, 6))
    again, other = made()
    steps(again, other, range(9, 11))
    again.load_state_dict(numbers)
    other.load_state_dict(kept)
    steps(again, other, range(3, 6))
    for one, two in zip(weights.parameters, again.parameters, strict=True):
        assert torch.equal(one, two)


def test_its_rate_can_change():
    weights, optimizer = made()
    for group in optimizer.param_groups:
        group["lr"].fill_(0.0)
    before = [p.detach().clone() for p in weights.parameters]
    steps(weights, optimizer, [0])
    for one, two in zip(weights.parameters, before, strict=True):
        assert torch.equal(one, two)
