"""Networks: the Nature CNN of Mnih et al. (2015), and the ResNet of Espeholt et al. (2018).

The first is there with normalized layers ("nature-norm") and with an LSTM after its features
("lstm"), too. All take stacks of four 84x84 frames and end in a layer of features, with a policy
head and a value head.
"""

from __future__ import annotations

import math
from typing import Literal, TypeVar, cast, get_args

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.nn import draws, kernels
from cule.train.nn.layers import Layers, PixelConv, by_kernels, used_weight
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


def to_channels_last(net: nn.Module) -> None:
    """Gives a network's convolutions the channels_last memory format, if it has any."""
    if any(p.dim() == 4 for p in net.parameters()):
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


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
        first, second = cast(nn.Conv2d, self.layers[1]), cast(nn.Conv2d, self.layers[3])
        if kernels.serve(images) and by_kernels(first, images) and by_kernels(second, images):
            from cule.train.nn.kernels import impala

            biases = cast(torch.Tensor, first.bias), cast(torch.Tensor, second.bias)
            return impala.residual(
                images, used_weight(first), biases[0], used_weight(second), biases[1]
            )
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
    return Layers(*layers), features


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
