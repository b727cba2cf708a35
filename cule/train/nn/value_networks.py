"""Networks of action values for Rainbow (Hessel et al., 2018) and BTR (Clark et al., 2024).

Values are numbers, distributions over atoms (C51, Bellemare et al., 2017) or quantiles (IQN, Dabney
et al., 2018a). Layers may be noisy (Fortunato et al., 2018) and dueling (Wang et al., 2016), and
the residual layers of the IMPALA ResNet spectrally normalized (Miyato et al., 2018).

No random number is drawn here: noise and the fractions of quantiles are arguments, so that acting
can draw them by env and step (draws.py), and learning once for a batch.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import torch
from torch import nn
from torch.nn import functional

from cule.errors import InvalidValue
from cule.train.nn.layers import ComputedConv, Layers
from cule.train.nn.models import IMPALA_SIDE, impala_blocks, initialised, nature_features

Quantiles = Literal["none", "c51", "iqn"]
# A side of the Nature CNN's last images, in pixels.
NATURE_SIDE = 7


class NoisyLinear(nn.Module):
    """A linear layer with factorised noise on its weights (Fortunato et al., 2018, section 3).

    With p inputs and q outputs, and noise e of p + q standard normal numbers, of which f(e) =
    sign(e) sqrt(|e|) (equations 10 and 11):

        y = (M + S * f(e_q) f(e_p)^T) x + m + s * f(e_q)
          = M x + m + f(e_q) * (S (f(e_p) * x) + s)

    The second line needs no weights of each row, so that each row may have noise of its own. M and
    m are the layer `mean`, S and s the layer `deviation`. The first values are those of the paper:
    M and m uniform between -1 / sqrt(p) and 1 / sqrt(p), S and s sigma / sqrt(p).

    Args:
        inputs: p.
        outputs: q.
        sigma: sigma_0 of the paper.

    Attributes:
        noise_size: p + q.
    """

    def __init__(self, inputs: int, outputs: int, sigma: float = 0.5):
        super().__init__()
        self.mean, self.deviation = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)
        self.sizes, self.noise_size = (inputs, outputs), inputs + outputs
        for mean in (self.mean.weight, self.mean.bias):
            nn.init.uniform_(mean, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs))
        for deviation in (self.deviation.weight, self.deviation.bias):
            nn.init.constant_(deviation, sigma / math.sqrt(inputs))

    def forward(self, values: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
        """(n, ..., p) to (n, ..., q).

        Args:
            values: (n, ..., p).
            noise: (n, p + q) float32, or (1, p + q) for all rows; None: the means alone.
        """
        if noise is None:
            return self.mean(values)
        scaled = noise.sign() * noise.abs().sqrt()
        between = [1] * (values.dim() - 2)
        into, out = scaled.view(len(noise), *between, -1).split(self.sizes, dim=-1)
        return self.mean(values) + out * self.deviation(into * values)


class SpectralConv(ComputedConv):
    """A convolution whose weights, as a matrix, are divided by their largest singular value.

    The matrix W is (out_channels, everything else). The singular value is estimated by power
    iteration (Miyato et al., 2018, algorithm 1): v = W^T u and u = W v, both scaled to length 1,
    and sigma = u^T W v, of whose gradient u and v are constant. u is kept from update to update, in
    the buffer `left`, and only `power_iteration` changes it. v follows from u and W, so that sigma
    is the length of W^T u, which has the same gradient, u v^T.
    """

    left: torch.Tensor

    def __init__(self, *args: Any, **more: Any):
        super().__init__(*args, **more)
        # The same in all processes, which share weights but no buffers at first. The weights are
        # orthogonal then, so that sigma is exact for any u.
        generator = torch.Generator().manual_seed(0)
        first = torch.randn(self.out_channels, generator=generator)
        self.register_buffer("left", functional.normalize(first, dim=0))

    def _matrix(self) -> torch.Tensor:
        return self.weight.flatten(1).float()

    @torch.no_grad()
    def power_iteration(self) -> None:
        """Improves u by one iteration."""
        with torch.autocast(self.weight.device.type, enabled=False):
            matrix = self._matrix()
            right = functional.normalize(matrix.T @ self.left, dim=0)
            self.left.copy_(functional.normalize(matrix @ right, dim=0))

    def sigma(self) -> torch.Tensor:
        """The estimate of the largest singular value, () float32."""
        with torch.autocast(self.weight.device.type, enabled=False):
            return (self._matrix().T @ self.left).norm()

    def used_weight(self) -> torch.Tensor:
        """The weights by their largest singular value."""
        return self.weight / self.sigma()


class AdaptiveMaxPool(nn.Module):
    """torch's AdaptiveMaxPool2d, with gradients that are the same each time on a GPU, too.

    Where windows overlap, torch's adds up their gradients there in any order
    (https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html). Here
    maxima are taken along rows, and then along columns. Of equal numbers the first of a window,
    row by row, gets the gradient, as in torch's.

    Args:
        size: the height and width of what is left.
    """

    def __init__(self, size: int):
        super().__init__()
        self.size = size

    def _along(self, images: torch.Tensor, dim: int) -> torch.Tensor:
        length = images.shape[dim]
        begins = [length * i // self.size for i in range(self.size)]
        ends = [-(-length * (i + 1) // self.size) for i in range(self.size)]
        windows = zip(begins, ends, strict=True)
        maxima = [images.narrow(dim, at, end - at).max(dim).values for at, end in windows]
        return torch.stack(maxima, dim)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(n, channels, size, size) of (n, channels, height, width)."""
        return self._along(self._along(images, -1), -2)


def make_trunk(
    model: str, width: float, pool: int, *, spectral_norm: bool
) -> tuple[nn.Sequential, int, int]:
    """The convolutions of a network, flattened.

    Args:
        model: nature or impala.
        width: multiplies the channels, and the hidden units of heads.
        pool: of impala: maxima of so many by so many windows are left of the images of 11x11, as
            AdaptiveMaxPool2d chooses them; 0: the images stay as they are.
        spectral_norm: of impala: the convolutions of residual layers are SpectralConvs.

    Returns:
        The layers, how many numbers they return, and the hidden units of a head that fits: 512
        times `width` for nature, 256 times for impala.

    Raises:
        ValueError: the model is another one.
    """
    if model == "nature":
        whole, features = nature_features(width)
        # Without the linear layer and its ReLU.
        trunk: nn.Sequential = Layers(*list(whole)[:-2])
        return trunk, max(1, round(64 * width)) * NATURE_SIDE**2, features
    if model != "impala":
        raise InvalidValue(f"expected model to be nature or impala, got {model!r}")
    layers, channels = impala_blocks(width, SpectralConv if spectral_norm else nn.Conv2d)
    layers.append(nn.ReLU())
    if pool:
        layers.append(AdaptiveMaxPool(pool))
    side = pool or IMPALA_SIDE
    trunk = Layers(*layers, nn.Flatten())
    return trunk, channels * side**2, max(1, round(256 * width))


class Branch(nn.Module):
    """Two linear layers with a ReLU between them, noisy or not.

    Args:
        sizes: numbers of inputs, hidden units and outputs.
        sigma: of the noise at first; None: there is none.

    Attributes:
        noise_sizes: how many numbers of noise each layer needs.
    """

    def __init__(self, sizes: tuple[int, int, int], sigma: float | None):
        super().__init__()
        inputs, hidden, outputs = sizes
        self.noise_sizes: list[int] = []
        self.hidden: nn.Module
        self.output: nn.Module
        if sigma is None:
            self.hidden = initialised(nn.Linear(inputs, hidden))
            self.output = initialised(nn.Linear(hidden, outputs), gain=1.0)
        else:
            self.hidden = NoisyLinear(inputs, hidden, sigma)
            self.output = NoisyLinear(hidden, outputs, sigma)
            self.noise_sizes = [inputs + hidden, hidden + outputs]

    def forward(self, values: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
        """(n, ..., inputs) to (n, ..., outputs), with noise (n or 1, sum of noise_sizes)."""
        if noise is None:
            return self.output(functional.relu(self.hidden(values)))
        first, second = noise.split(self.noise_sizes, dim=1)
        return self.output(functional.relu(self.hidden(values, first)), second)


class ValueNetwork(nn.Module):
    """Values of actions, as numbers, as distributions or as quantiles.

    Args:
        num_actions: how many actions there are.
        model: nature or impala.
        width: multiplies channels and hidden units.
        quantiles: none: a number for each action; c51: logits of atoms; iqn: quantiles.
        atoms: with c51: how many.
        limits: with c51: the lowest and the highest atom.
        fractions: with iqn: how many quantiles a value is the mean of where none are asked for.
        cosines: with iqn: numbers of which a quantile's fraction is embedded.
        dueling: values are a state's and the actions' advantages (Wang et al., 2016).
        sigma: of noisy layers at first; None: layers are not noisy.
        pool: see make_trunk.
        spectral_norm: see make_trunk.

    Attributes:
        noise_size: the numbers of noise of a pass; 0: layers are not noisy.
        support: (atoms,) float32, the values of atoms; of c51.

    Raises:
        ValueError: the model or the quantiles are others.
    """

    support: torch.Tensor
    waves: torch.Tensor
    middles: torch.Tensor

    def __init__(
        self, num_actions: int, model: str = "nature", width: float = 1.0, *,
        quantiles: str = "none", atoms: int = 51, limits: tuple[float, float] = (-10.0, 10.0),
        fractions: int = 32, cosines: int = 64, dueling: bool = True, sigma: float | None = None,
        pool: int = 6, spectral_norm: bool = False,
    ):  # fmt: skip
        super().__init__()
        if quantiles not in get_args(Quantiles):
            known = ", ".join(get_args(Quantiles))
            raise InvalidValue(f"expected quantiles to be one of {known}, got {quantiles!r}")
        self.num_actions, self.quantiles, self.fractions = num_actions, quantiles, fractions
        self.trunk, size, hidden = make_trunk(model, width, pool, spectral_norm=spectral_norm)
        self.atoms = atoms if quantiles == "c51" else 1
        self.advantage = Branch((size, hidden, num_actions * self.atoms), sigma)
        self.value = Branch((size, hidden, self.atoms), sigma) if dueling else None
        branches = [branch for branch in (self.advantage, self.value) if branch is not None]
        self.noise_sizes = [sum(branch.noise_sizes) for branch in branches]
        self.noise_size = sum(self.noise_sizes)
        if quantiles == "c51":
            self.register_buffer("support", torch.linspace(*limits, atoms))
        if quantiles == "iqn":
            self.embedding = initialised(nn.Linear(cosines, size))
            self.register_buffer("waves", math.pi * torch.arange(cosines, dtype=torch.float32))
            middles = (torch.arange(fractions) + 0.5) / fractions
            self.register_buffer("middles", middles.unsqueeze(0))

    def power_iteration(self) -> None:
        """Improves the estimates of spectral norms by one iteration, in place."""
        for module in self.trunk.modules():
            if isinstance(module, SpectralConv):
                module.power_iteration()

    def outputs(
        self,
        observations: torch.Tensor,
        noise: torch.Tensor | None = None,
        taus: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """What each action is worth.

        Args:
            observations: (n, 4, 84, 84) uint8.
            noise: (n, noise_size) float32, standard normal, or (1, noise_size) for all rows; None:
                layers are not noisy, or their means are used.
            taus: of iqn: (n, T) float32, the fractions of quantiles; None: `fractions` of them, the
                middles of equal parts of 0 to 1.

        Returns:
            float32: values (n, num_actions), logits (n, num_actions, atoms), or quantiles (n,
            num_actions, T).
        """
        features = self.trunk(observations)
        if self.quantiles == "iqn":
            features = features.unsqueeze(1) * self._embedded(
                self.middles if taus is None else taus
            )
        parts = [None, None] if noise is None else [*noise.split(self.noise_sizes, dim=1), None]
        found = self.advantage(features, parts[0]).float().unflatten(-1, (self.num_actions, -1))
        if self.value is not None:
            value = self.value(features, parts[1]).float().unsqueeze(-2)
            found = value + found - found.mean(dim=-2, keepdim=True)
        if self.quantiles == "c51":
            return found
        found = found.squeeze(-1)
        return found.transpose(1, 2) if self.quantiles == "iqn" else found

    def _embedded(self, taus: torch.Tensor) -> torch.Tensor:
        """IQN's equation 4, (n, T, features): ReLU(sum_i cos(pi i tau) w_i + b), i from 0 on."""
        cosines = torch.cos(taus.unsqueeze(2) * self.waves)
        return functional.relu(self.embedding(cosines))

    def values_of(self, outputs: torch.Tensor) -> torch.Tensor:
        """The expected values (n, num_actions) of what `outputs` returned."""
        if self.quantiles == "c51":
            return (outputs.softmax(dim=2) * self.support).sum(dim=2)
        return outputs.mean(dim=2) if self.quantiles == "iqn" else outputs

    def forward(
        self,
        observations: torch.Tensor,
        noise: torch.Tensor | None = None,
        taus: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The expected values of actions, (n, num_actions) float32; see `outputs`."""
        return self.values_of(self.outputs(observations, noise, taus))
