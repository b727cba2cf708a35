"""Networks: the Nature CNN of Mnih et al. (2015), and the ResNet of Espeholt et al. (2018).

The first is there with normalized layers ("nature-norm") and with an LSTM after its features
("lstm"), too. All take stacks of four 84x84 frames and end in a layer of features, with a policy
head and a value head.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Literal, TypeVar, cast, get_args

import torch
from torch import nn
from torch.nn import functional

from cule.errors import InvalidValue
from cule.train.nn import draws, kernels
from cule.train.nn.memory import Lstm

ModelName = Literal["nature", "nature-norm", "lstm", "impala"]
MODELS = get_args(ModelName)
Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)
# The Nature CNN has 8.6 billion weights then.
MAX_WIDTH = 64.0


def initialised(layer: Layer, gain: float = math.sqrt(2)) -> Layer:
    """The layer with orthogonal weights and biases of 0."""
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def patches(images: torch.Tensor) -> torch.Tensor:
    """Squares of 4x4 pixels as channels: (n, c, h, w) uint8 to (n, 16 c, h / 4, w / 4).

    The channels are in the order of pixel_unshuffle; the memory format is channels_last.
    """
    if torch.compiler.is_compiling():
        # torch.compile fuses this, but cannot view memory that it lays out itself as words.
        pixels = images.unflatten(3, (-1, 4)).unflatten(2, (-1, 4)).permute(0, 2, 4, 1, 3, 5)
    else:
        # Moves four neighbouring pixels as one 32-bit word.
        words = images.view(torch.int32).unflatten(2, (-1, 4)).permute(0, 2, 4, 1, 3).contiguous()
        pixels = words.view(torch.uint8)
    return pixels.flatten(3).permute(0, 3, 1, 2)


def to_channels_last(net: nn.Module) -> None:
    """Gives a network's convolutions the channels_last memory format, if it has any."""
    if any(p.dim() == 4 for p in net.parameters()):
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class PixelConv(nn.Conv2d):
    """A first layer: a convolution of bytes, less the mean of their image, divided by 256.

    Subtracting the mean matters, as what all images share would outweigh their differences: in Pong
    a few pixels of the ball matter, on a bright field. A gradient would move all weights of a unit
    together, and within a few hundred updates most units would be dead.

    Integers up to 256 are exact in bfloat16, and so is division by a power of two, so that it does
    not matter whether pixels or weights are divided: torch divides the weights, which are few, and
    a kernel the pixels, which it passes through anyway.

    With stride 4 and a kernel of a multiple of 4, the convolution runs on patches: their pixels
    become channels, and the kernel is `kernel / 4` wide. With four channels a GPU's matrix units
    would be mostly idle; with 64 they are not.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(n, in_channels, h, w) uint8 to (n, out_channels, h', w')."""
        return self.convolve(images, self.bias)

    def convolve(self, images: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """The same with another bias, or without one."""
        kind = images.device.type
        dtype = (
            torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.weight.dtype
        )
        weight, stride = self.weight, cast(Any, self.stride)
        channels_last = weight.is_contiguous(memory_format=torch.channels_last)
        if stride == (4, 4) and channels_last and kernels.serve(images):
            from cule.train.nn.kernels import layers

            pixels = layers.centred_patches(images, dtype)
            weight = functional.pixel_unshuffle(weight, 4)
            return functional.conv2d(pixels, weight, bias, 1, self.padding)
        weight = weight / 256.0
        if stride == (4, 4):
            images, weight, stride = patches(images), functional.pixel_unshuffle(weight, 4), 1
        pixels = images.to(
            dtype, memory_format=torch.channels_last if channels_last else torch.contiguous_format
        )
        # torch's mean of bytes would first store each of them as a float. Both ways are exact.
        mean = pixels.mean(dim=(1, 2, 3), keepdim=True, dtype=torch.float32).round().to(dtype)
        return functional.conv2d(pixels.sub_(mean), weight, bias, stride, self.padding)


class Layers(nn.Sequential):
    """Layers, one after the other. A kernel adds a bias and applies the ReLU that follows."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The output of the last layer."""
        if not kernels.serve(values):
            return super().forward(values)
        from cule.train.nn.kernels import layers

        before: nn.Conv2d | nn.Linear | None = None
        for layer, following in pairwise((*self, None)):
            if before is not None:
                values, before = layers.bias_relu(values, cast(torch.Tensor, before.bias)), None
            elif isinstance(layer, PixelConv) and isinstance(following, nn.ReLU):
                values, before = layer.convolve(values, None), layer
            elif isinstance(layer, nn.Conv2d) and isinstance(following, nn.ReLU):
                values, before = layer._conv_forward(values, layer.weight, None), layer
            elif isinstance(layer, nn.Linear) and isinstance(following, nn.ReLU):
                values, before = functional.linear(values, layer.weight), layer
            else:
                values = layer(values)
        return values


def nature_features(width: float, *, layer_norm: bool = False) -> tuple[nn.Sequential, int]:
    """The Nature CNN's layers up to its features, and their number: 512 times `width`.

    With `layer_norm` each layer is normalized before its ReLU (as in Gallici et al., 2024).
    """
    first, second, features = (max(1, round(channels * width)) for channels in (32, 64, 512))
    if layer_norm:
        layers = nn.Sequential(
            initialised(PixelConv(4, first, 8, stride=4)),
            nn.LayerNorm([first, 20, 20]), nn.ReLU(),
            initialised(nn.Conv2d(first, second, 4, stride=2)),
            nn.LayerNorm([second, 9, 9]), nn.ReLU(),
            initialised(nn.Conv2d(second, second, 3)),
            nn.LayerNorm([second, 7, 7]), nn.ReLU(),
            nn.Flatten(), initialised(nn.Linear(second * 7 * 7, features)),
            nn.LayerNorm(features), nn.ReLU(),
        )  # fmt: skip
        return layers, features
    layers = Layers(
        initialised(PixelConv(4, first, 8, stride=4)), nn.ReLU(inplace=True),
        initialised(nn.Conv2d(first, second, 4, stride=2)), nn.ReLU(inplace=True),
        initialised(nn.Conv2d(second, second, 3)), nn.ReLU(inplace=True),
        nn.Flatten(), initialised(nn.Linear(second * 7 * 7, features)), nn.ReLU(inplace=True),
    )  # fmt: skip
    return layers, features


class Residual(nn.Module):
    """x plus two convolutions of it, of a kind of convolution."""

    def __init__(self, channels: int, kind: type[nn.Conv2d] = nn.Conv2d):
        super().__init__()
        self.layers = Layers(
            nn.ReLU(), initialised(kind(channels, channels, 3, padding=1)),
            nn.ReLU(inplace=True),
            initialised(kind(channels, channels, 3, padding=1), gain=0.1),
        )  # fmt: skip

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(n, channels, h, w) to the same shape."""
        return images + self.layers(images)


# A side of the IMPALA ResNet's last images, in pixels.
IMPALA_SIDE = 11


def impala_blocks(
    width: float, residual: type[nn.Conv2d] = nn.Conv2d
) -> tuple[list[nn.Module], int]:
    """The IMPALA ResNet's blocks, which end in images of 11x11, and their channels.

    Args:
        width: multiplies the channels.
        residual: the kind of the convolutions of residual layers.
    """
    layers: list[nn.Module] = []
    before = 4
    for channels in (max(1, round(channels * width)) for channels in (16, 32, 32)):
        kind = nn.Conv2d if layers else PixelConv
        layers += [
            initialised(kind(before, channels, 3, padding=1)),
            nn.MaxPool2d(3, stride=2, padding=1),
        ]
        layers += [Residual(channels, residual), Residual(channels, residual)]
        before = channels
    return layers, before


def impala_features(width: float) -> tuple[nn.Sequential, int]:
    """The IMPALA ResNet's layers up to its features, and their number: 256 times `width`."""
    layers, channels = impala_blocks(width)
    features = max(1, round(256 * width))
    layers += [
        nn.ReLU(),
        nn.Flatten(),
        initialised(nn.Linear(channels * IMPALA_SIDE**2, features)),
        nn.ReLU(inplace=True),
    ]
    return nn.Sequential(*layers), features


def make_features(
    name: str, width: float, *, layer_norm: bool = False
) -> tuple[nn.Sequential, int]:
    """The layers of a network up to its features, and the number of features.

    Raises:
        ValueError: there is no such network, or none with layer_norm.
    """
    if name not in MODELS:
        raise InvalidValue(f"expected model to be one of {', '.join(MODELS)}, got {name!r}")
    if name == "lstm":
        layers, features = nature_features(width, layer_norm=layer_norm)
        size = max(1, round(256 * width))
        return nn.Sequential(layers, Lstm(features, size)), size
    if name != "impala":
        return nature_features(width, layer_norm=layer_norm or name == "nature-norm")
    if layer_norm:
        raise InvalidValue(f"expected model to be nature where layers are normalized, got {name!r}")
    return impala_features(width)


class ActorCritic(nn.Module):
    """A policy and a value on shared features.

    Args:
        num_actions: how many actions there are.
        name: one of MODELS.
        width: multiplies the number of channels and features.

    Raises:
        ValueError: there is no such network.
    """

    def __init__(self, num_actions: int, name: str = "nature", width: float = 1.0):
        super().__init__()
        self.made_of = {"model": name, "width": width}
        self.features, features = make_features(name, width)
        policy = initialised(nn.Linear(features, num_actions), gain=0.01)
        value = initialised(nn.Linear(features, 1), gain=1.0)
        # Both heads as one product of matrices: a logit for each action, and the value.
        # (nn.utils.skip_init would import SymPy, which takes one to two seconds.)
        self.heads = nn.Linear(features, num_actions + 1, device="meta")
        self.heads.weight = nn.Parameter(torch.cat([policy.weight, value.weight]).detach())
        self.heads.bias = nn.Parameter(torch.cat([policy.bias, value.bias]).detach())

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probabilities (n, num_actions) and values (n,), both float32, of observations.

        Args:
            observations: (n, 4, 84, 84) uint8.
        """
        return policy_and_value(self.heads(self.features(observations)))


def policy_and_value(outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities (n, num_actions) and values (n,) from two heads' outputs, both float32.

    Args:
        outputs: (n, num_actions + 1), float32 or bfloat16: logits, and the value.
    """
    if kernels.serve(outputs):
        from cule.train.nn.kernels import policy

        return policy.policy_and_value(outputs)
    outputs = outputs.float()
    return outputs[:, :-1].log_softmax(dim=1), outputs[:, -1]


def sample(
    log_probabilities: torch.Tensor, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Samples actions (n,) int64 from log-probabilities (n, num_actions)."""
    return sample_with_log(log_probabilities, generator)[0]


def sample_with_log(
    log_probabilities: torch.Tensor, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples actions; returns them and their log-probabilities.

    An action is that with the smallest of exponential variables with the probabilities as rates, as
    torch.multinomial would wait for the device.

    Args:
        log_probabilities: (n, num_actions) float32.
        generator: of the random numbers; None: the device's.

    Returns:
        (n,) int64 and (n,) float32.
    """
    clocks = draws.exponential(log_probabilities, generator)
    if kernels.serve(log_probabilities):
        from cule.train.nn.kernels import policy

        return policy.first_to_ring(log_probabilities, clocks)
    actions = (log_probabilities - clocks.log()).argmax(dim=1)
    return actions, log_probabilities.gather(1, actions.unsqueeze(1)).squeeze(1)


class QNetwork(nn.Module):
    """Values of all actions: (n, 4, 84, 84) uint8 to (n, num_actions) float32.

    Args:
        num_actions: how many actions there are.
        name: one of MODELS.
        width: multiplies the number of channels and features.
        layer_norm: normalize each layer.
    """

    def __init__(
        self,
        num_actions: int,
        name: str = "nature",
        width: float = 1.0,
        *,
        layer_norm: bool = False,
    ):
        super().__init__()
        self.made_of = {"model": name, "width": width, "layer_norm": layer_norm}
        self.features, features = make_features(name, width, layer_norm=layer_norm)
        self.values = initialised(nn.Linear(features, num_actions), gain=1.0)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The values of all actions."""
        return self.values(self.features(observations)).float()


def policy_terms(
    log_probabilities: torch.Tensor, actions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The log-probabilities of the actions taken, and the policies' entropy.

    Args:
        log_probabilities: (..., num_actions) float32.
        actions: (...) int64.

    Returns:
        Both of the shape of `actions`, float32.
    """
    if kernels.serve(log_probabilities):
        from cule.train.nn.kernels import policy

        chosen, entropy = policy.terms(log_probabilities.flatten(0, -2), actions.flatten())
        return chosen.view(actions.shape), entropy.view(actions.shape)
    chosen = log_probabilities.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    return chosen, entropy_of(log_probabilities)


def entropy_of(log_probabilities: torch.Tensor) -> torch.Tensor:
    """The entropy of policies, from log-probabilities with the actions in the last dimension."""
    return -(log_probabilities.exp() * log_probabilities).sum(dim=-1)
