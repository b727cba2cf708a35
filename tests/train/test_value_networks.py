"""Networks of action values beside their formulas in loops: noise, quantiles, norms, pooling."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from cule.train.nn.layers import PixelConv
from cule.train.nn.models import Residual
from cule.train.nn.value_networks import (
    AdaptiveMaxPool,
    Branch,
    NoisyLinear,
    SpectralConv,
    ValueNetwork,
)


def random_images(count):
    return torch.randint(
        256, (count, 4, 84, 84), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )


def network(**more):
    torch.manual_seed(1)
    return ValueNetwork(3, width=more.pop("width", 0.1), **more)


def randomize(net):
    """Gives all weights other values, so that none is 0."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape) / math.sqrt(parameter[0].numel()))


def signed_root(number):
    return math.copysign(math.sqrt(abs(number)), number)


@pytest.mark.parametrize("shared", [False, True])
def test_noisy_layer_has_the_weights_of_the_outer_product(shared):
    torch.manual_seed(0)
    layer, values = NoisyLinear(3, 4).double(), torch.randn(5, 2, 3, dtype=torch.float64)
    randomize(layer)
    noise = torch.randn(1 if shared else 5, 7, dtype=torch.float64)
    found = layer(values, noise)
    for row in range(5):
        own = noise[0 if shared else row].tolist()
        into, out = [[signed_root(x) for x in part] for part in (own[:3], own[3:])]
        weights = layer.mean.weight + layer.deviation.weight * torch.outer(
            torch.tensor(out, dtype=torch.float64), torch.tensor(into, dtype=torch.float64)
        )
        bias = layer.mean.bias + layer.deviation.bias * torch.tensor(out, dtype=torch.float64)
        for place in range(2):
            torch.testing.assert_close(found[row, place], weights @ values[row, place] + bias)
    assert torch.equal(layer(values), layer.mean(values))
    # Noise of 0 is none.
    torch.testing.assert_close(layer(values, torch.zeros(1, 7)), layer.mean(values))


def test_noisy_layer_begins_as_published():
    layer = NoisyLinear(400, 100, sigma=0.5)
    assert layer.noise_size == 500
    for mean in (layer.mean.weight, layer.mean.bias):
        assert mean.abs().max() <= 1 / 20 and mean.abs().max() > 0.9 / 20
    for deviation in (layer.deviation.weight, layer.deviation.bias):
        assert torch.equal(deviation, torch.full_like(deviation, 0.5 / 20))


def test_each_layer_of_a_branch_has_noise_of_its_own():
    torch.manual_seed(0)
    branch, values = Branch((3, 4, 2), sigma=0.5).double(), torch.randn(6, 3, dtype=torch.float64)
    noise = torch.randn(6, 13, dtype=torch.float64)
    hidden = branch.hidden(values, noise[:, :7]).clamp(min=0)
    assert torch.equal(branch(values, noise), branch.output(hidden, noise[:, 7:]))


def test_noise_reaches_all_layers_of_a_dueling_network():
    net = network(sigma=0.5)
    net.eval().requires_grad_(False)
    noise = torch.randn(2, net.noise_size)
    images = random_images(2)
    before = net(images, noise)
    begin = 0
    for size in (*net.advantage.noise_sizes, *net.value.noise_sizes):
        other = noise.clone()
        other[1, begin : begin + size] += 1
        after = net(images, other)
        # The other row has its own noise.
        torch.testing.assert_close(after[0], before[0])
        assert (after[1] - before[1]).abs().max() > 1e-6
        begin += size
    assert begin == net.noise_size


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("quantiles", ["none", "c51", "iqn"])
@torch.no_grad()
def test_values_are_those_of_loops(quantiles, dueling):
    net = network(quantiles=quantiles, dueling=dueling, atoms=5, limits=(-1.0, 3.0)).double()
    randomize(net)
    images, taus = random_images(2), torch.rand(2, 4, dtype=torch.float64)
    found = net.outputs(images, taus=taus if quantiles == "iqn" else None)
    features, each = net.trunk(images), {"none": 1, "c51": 5, "iqn": 4}[quantiles]
    for row in range(2):
        for one in range(each):
            own, atom = features[row], one if quantiles == "c51" else 0
            if quantiles == "iqn":
                cosines = [math.cos(math.pi * i * float(taus[row, one])) for i in range(64)]
                bias, weight = net.embedding.bias, net.embedding.weight
                embedded = weight @ torch.tensor(cosines, dtype=torch.float64) + bias
                own = own * embedded.clamp(min=0)
            atoms = 5 if quantiles == "c51" else 1
            advantages = net.advantage.output(net.advantage.hidden(own).clamp(min=0))
            wanted = [advantages[action * atoms + atom] for action in range(3)]
            if dueling:
                value = net.value.output(net.value.hidden(own).clamp(min=0))[atom]
                mean = sum(wanted) / 3
                wanted = [value + advantage - mean for advantage in wanted]
            got = found[row] if quantiles == "none" else found[row, :, one]
            np.testing.assert_allclose(got, [float(x) for x in wanted], rtol=2e-5, atol=2e-6)


def test_values_are_means_of_distributions():
    net, images = network(quantiles="c51", atoms=5, limits=(-1.0, 3.0)), random_images(2)
    chances = net.outputs(images).softmax(dim=2)
    wanted = sum(place * chances[:, :, i] for i, place in enumerate((-1, 0, 1, 2, 3)))
    torch.testing.assert_close(net(images), wanted)
    net = network(quantiles="iqn", fractions=4)
    taus = torch.tensor([[0.125, 0.375, 0.625, 0.875]])
    torch.testing.assert_close(net(images), net.outputs(images, taus=taus).mean(dim=2))


def test_spectral_norm_is_that_of_a_loop_by_hand():
    torch.manual_seed(0)
    layer = SpectralConv(4, 6, 3, padding=1)
    randomize(layer)
    left = layer.left.clone()
    matrix = layer.weight.detach().reshape(6, 36)
    for _ in range(3):
        before = left.clone()
        layer.power_iteration()
        right = matrix.T @ left
        right = right / right.norm().clamp(min=1e-12)
        left = matrix @ right
        left = left / left.norm().clamp(min=1e-12)
        assert torch.equal(layer.left, left) and not torch.equal(before, left)
    sigma = (matrix.T @ left).norm()
    assert torch.equal(layer.sigma(), sigma)
    right = (matrix.T @ left) / sigma
    assert float(left @ matrix @ right) == pytest.approx(float(sigma))
    images = torch.randn(2, 4, 5, 5)
    wanted = functional.conv2d(images, layer.weight / sigma, layer.bias, padding=1)
    assert torch.equal(layer(images), wanted)
    assert torch.equal(layer.left, left)  # a pass does not change it


def test_largest_singular_value_is_1():
    """After many iterations; after one, as near as its vectors are; at first exactly."""
    torch.manual_seed(0)
    layer = Residual(8, SpectralConv).layers[1]

    def largest():
        return np.linalg.svd((layer.weight / layer.sigma()).detach().reshape(8, 72))[1].max()

    assert largest() == pytest.approx(1, abs=1e-5)  # orthogonal weights
    randomize(layer)
    _, values, _ = np.linalg.svd(layer.weight.detach().reshape(8, 72))
    before = largest()
    layer.power_iteration()
    # An iteration never makes the estimate smaller, and it is never above the value itself.
    assert 1 - 1e-5 <= largest() < before
    for _ in range(100):
        layer.power_iteration()
    assert largest() == pytest.approx(1, abs=1e-4)
    assert float(layer.sigma()) == pytest.approx(values.max(), rel=1e-4)


def test_gradient_of_spectral_norm_is_that_of_constant_vectors():
    torch.manual_seed(0)
    layer, images = SpectralConv(2, 3, 3), torch.randn(1, 2, 3, 3)
    randomize(layer)
    (found,) = torch.autograd.grad(layer(images).square().sum(), layer.weight)
    right = functional.normalize(layer.weight.detach().reshape(3, 18).T @ layer.left, dim=0)

    def loss(weight):
        sigma = layer.left @ (weight.reshape(3, 18) @ right)
        return functional.conv2d(images, weight / sigma, layer.bias).square().sum()

    (wanted,) = torch.autograd.grad(loss(layer.weight), layer.weight)
    torch.testing.assert_close(found, wanted)


def test_all_residual_convolutions_and_no_others_are_normalized():
    net = network(model="impala", width=0.25, spectral_norm=True)
    kinds = [type(m) for m in net.trunk.modules() if isinstance(m, nn.Conv2d)]
    assert kinds == [PixelConv, *[SpectralConv] * 4, *[nn.Conv2d, *[SpectralConv] * 4] * 2]
    vectors = [m.left for m in net.modules() if isinstance(m, SpectralConv)]
    before = copy.deepcopy(vectors)
    randomize(net)
    net.power_iteration()
    assert not any(map(torch.equal, vectors, before))
    plain = network(model="impala", spectral_norm=False)
    assert not any(isinstance(m, SpectralConv) for m in plain.modules())


@pytest.mark.parametrize(("size", "sides"), [(6, (11, 11)), (4, (11, 7)), (3, (3, 6)), (5, (4, 9))])
def test_pooling_is_torchs_with_its_gradient(size, sides, device):
    generator = torch.Generator().manual_seed(0)
    # Whole numbers, many of them equal: of those one is chosen, and sums are exact in any order.
    shape = (3, 4, *sides)
    images = torch.randint(3, shape, generator=generator).float().to(device)
    weights = torch.randint(9, (3, 4, size, size), generator=generator).float().to(device)
    found = []
    for pool in (nn.AdaptiveMaxPool2d(size), AdaptiveMaxPool(size)):
        given = images.clone().requires_grad_()
        pooled = pool(given)
        (pooled * weights).sum().backward()
        found.append((pooled.detach(), given.grad))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize(("pool", "side"), [(6, 6), (4, 4), (0, 11)])
def test_pooling_has_the_shape_that_is_asked_for(pool, side):
    net = network(model="impala", width=0.25, pool=pool)
    images, blocks = (
        random_images(2),
        next(i for i, m in enumerate(net.trunk) if isinstance(m, nn.ReLU)),
    )
    pixels = net.trunk[: blocks + 1](images)
    assert pixels.shape == (2, 8, 11, 11)
    wanted = pixels.new_empty(2, 8, side, side)
    for i in range(side):
        for j in range(side):
            (top, bottom), (left, right) = (
                (math.floor(k * 11 / side), math.ceil((k + 1) * 11 / side)) for k in (i, j)
            )
            wanted[:, :, i, j] = pixels[:, :, top:bottom, left:right].amax(dim=(2, 3))
    assert torch.equal(net.trunk(images), wanted.flatten(1))
    assert net.advantage.hidden.in_features == 8 * side * side


@pytest.mark.parametrize(
    ("more", "features", "hidden"),
    [
        ({"model": "nature", "width": 1.0}, 64 * 7 * 7, 512),
        ({"model": "impala", "width": 2.0}, 64 * 6 * 6, 512),
    ],
)
def test_layers_have_the_published_sizes(more, features, hidden):
    net = network(**more, quantiles="iqn")
    assert net.trunk(random_images(1)).shape == (1, features)
    assert net.embedding.weight.shape == (features, 64)
    for branch, outputs in ((net.advantage, 3), (net.value, 1)):
        assert branch.hidden.weight.shape == (hidden, features)
        assert branch.output.weight.shape == (outputs, hidden)


def test_networks_that_there_are_not_are_refused():
    with pytest.raises(ValueError, match="expected model to be nature or impala, got 'lstm'"):
        network(model="lstm")
    with pytest.raises(ValueError, match="quantiles to be one of none, c51, iqn, got 'qr'"):
        network(quantiles="qr")
