"""The networks: what they compute, not how well they play."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from cule.train.nn.layers import PixelConv, patches
from cule.train.nn.models import ActorCritic, sample


def random_images(count):
    return torch.randint(
        256, (count, 4, 84, 84), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )


def test_patches_are_those_of_pixel_unshuffle():
    images = random_images(3)
    assert torch.equal(patches(images), functional.pixel_unshuffle(images.float(), 4).byte())


@pytest.mark.parametrize(
    "options", [{"kernel_size": 8, "stride": 4}, {"kernel_size": 3, "padding": 1}], ids=str
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_pixel_conv_is_a_convolution_of_scaled_bytes_around_their_mean(options, layout):
    ours, plain = PixelConv(4, 8, **options).double(), nn.Conv2d(4, 8, **options).double()
    plain.load_state_dict(ours.state_dict())
    images = random_images(3)
    images[1] //= 2
    centred = images.double() - images.double().mean(dim=(1, 2, 3), keepdim=True).round()
    torch.testing.assert_close(ours.to(memory_format=layout)(images), plain(centred / 256))


def convolution(before, channels, size):
    return (before * size * size + 1) * channels


NATURE = (
    convolution(4, 32, 8)
    + convolution(32, 64, 4)
    + convolution(64, 64, 3)
    + (64 * 7 * 7 + 1) * 512
    + 513 * 7
)
IMPALA = (
    sum(
        convolution(before, n, 3) + 4 * convolution(n, n, 3)
        for before, n in ((4, 16), (16, 32), (32, 32))
    )
    + (32 * 11 * 11 + 1) * 256
    + 257 * 7
)

# A weight and a bias for each number that a layer gives.
NORMALIZED = NATURE + 2 * (32 * 20 * 20 + 64 * 9 * 9 + 64 * 7 * 7 + 512)


@pytest.mark.parametrize(
    "name, parameters", [("nature", NATURE), ("nature-norm", NORMALIZED), ("impala", IMPALA)]
)
def test_actor_critic_has_the_published_layers(name, parameters):
    model = ActorCritic(6, name)
    assert sum(p.numel() for p in model.parameters()) == parameters
    log_probabilities, values = model(torch.zeros(2, 4, 84, 84, dtype=torch.uint8))
    assert log_probabilities.shape == (2, 6) and values.shape == (2,)
    torch.testing.assert_close(log_probabilities.exp().sum(dim=1), torch.ones(2))


def test_actor_critic_gives_the_same_channels_last():
    torch.manual_seed(0)
    model = ActorCritic(6, "nature", width=0.25)
    observations = random_images(3)
    wanted = model(observations)
    for got, want in zip(
        model.to(memory_format=torch.channels_last)(observations), wanted, strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_actor_critic_refuses_an_unknown_network():
    with pytest.raises(
        ValueError, match="to be one of nature, nature-norm, lstm, impala, got 'vgg'"
    ):
        ActorCritic(6, "vgg")


def test_sample_draws_from_the_distribution():
    chances = torch.tensor([0.1, 0.6, 0.0, 0.3])
    actions = sample(chances.log().expand(20_000, 4), torch.Generator().manual_seed(0))
    shares = torch.bincount(actions, minlength=4) / 20_000
    assert shares[2] == 0
    # Five standard deviations of the most uncertain share.
    torch.testing.assert_close(shares, chances, rtol=0, atol=5 * (0.25 / 20_000) ** 0.5)
