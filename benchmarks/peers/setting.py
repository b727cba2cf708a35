"""What all systems have in common: envs, network, and the settings of PPO."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import cule


@dataclass(frozen=True)
class Setting:
    """A setting in which all systems are measured.

    Attributes:
        game: its name.
        device: where envs and networks are.
        num_envs, num_steps: an iteration is so many steps of so many envs.
        epochs, minibatch: how often an iteration learns from each step, and from how many at once.
        width: of the network; 1: 512 numbers in its last layers.
        depth: how many layers there are between pictures' features and the two heads.
        size: height and width of RGB pictures, four of which are stacked; None: the usual 84x84
            grey ones.
        memory: GiB of the device's memory that may be used; None: all.
        cleanrl: a folder that holds CleanRL's repository; None: CleanRL is not measured.
        learning_rate, gamma, gae_lambda, clip, entropy_factor, value_factor, max_grad_norm: of PPO;
            the factors are those of losses.
    """

    game: str = "pong"
    device: str = "cuda"
    num_envs: int = 512
    num_steps: int = 250
    epochs: int = 1
    minibatch: int = 32_000
    width: float = 1.0
    depth: int = 1
    size: tuple[int, int] | None = None
    memory: float | None = None
    cleanrl: str | None = None
    learning_rate: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.1
    entropy_factor: float = 0.01
    value_factor: float = 0.5
    max_grad_norm: float = 0.5

    @property
    def steps(self) -> int:
        """Steps of all envs in an iteration."""
        return self.num_envs * self.num_steps

    @property
    def pictures(self) -> dict[str, Any]:
        """Keywords of envs that give the observations."""
        if self.size is None:
            return {}
        return {"grayscale": False, "img_height": self.size[0], "img_width": self.size[1]}

    def env(self, **options: Any) -> cule.AtariEnv:
        """The envs."""
        return cule.AtariEnv(self.game, self.num_envs, self.device, **self.pictures, **options)


class Body(nn.Module):
    """Features of stacks of pictures: three convolutions, then `depth` layers.

    Args:
        setting: says how wide and deep, and what pictures are.

    Attributes:
        features: how many there are.
    """

    def __init__(self, setting: Setting):
        super().__init__()
        self.rgb = setting.size is not None
        a, b, c = (max(1, round(n * setting.width)) for n in (32, 64, 64))
        self.features = max(1, round(512 * setting.width))
        self.convolutions = nn.Sequential(
            nn.Conv2d(12 if self.rgb else 4, a, 8, stride=4), nn.ReLU(),
            nn.Conv2d(a, b, 4, stride=2), nn.ReLU(),
            nn.Conv2d(b, c, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(7), nn.Flatten(),
        )  # fmt: skip
        sizes = [49 * c, *[self.features] * setting.depth]
        layers = ((nn.Linear(one, other), nn.ReLU()) for one, other in itertools.pairwise(sizes))
        self.layers = nn.Sequential(*(layer for pair in layers for layer in pair))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Features (n, features) of pictures of 0 .. 255.

        They are (n, 4, h, w), in colour (n, 4, h, w, 3) or (n, 12, h, w).
        """
        if pictures.dim() == 5:
            pictures = pictures.permute(0, 1, 4, 2, 3).flatten(1, 2)
        weight = self.convolutions[0].weight
        return self.layers(self.convolutions(pictures.to(weight.dtype) / 255))


class Policy(nn.Module):
    """A policy and a value with one body.

    Args:
        setting: see Body.
        num_actions: of an env.
    """

    def __init__(self, setting: Setting, num_actions: int):
        super().__init__()
        self.body = Body(setting)
        self.actor = nn.Linear(self.body.features, num_actions)
        self.critic = nn.Linear(self.body.features, 1)
        with torch.no_grad():
            self.actor.weight *= 0.01 / math.sqrt(num_actions)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (n, num_actions) and values (n, 1)."""
        features = self.body(pictures)
        return self.actor(features), self.critic(features)
