"""BTR, Beyond The Rainbow (Clark et al., 2024): Rainbow with other parts and numbers.

    python -m examples.rainbow.btr --game pong

Quantiles are IQN's and targets Munchausen's, and the network is the IMPALA ResNet of twice the
channels, with spectral norm and adaptive max pooling. Numbers are those of the paper's code, which
plays as many envs, and updates once in a step of all of them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from cule import train
from cule.train.nn.models import ModelName
from cule.train.nn.value_networks import Quantiles
from examples.rainbow import rainbow


@dataclass
class Args(rainbow.Args):
    """Trains BTR on Atari games. Frames are emulated frames, four in a step."""

    folder: Path = Path("runs/btr")
    """where the log, the checkpoints and the plot go"""
    memory: int | None = train.by_device(gpu=1_048_576, cpu=100_000)
    """transitions that the memory of each process holds (1,048,576 on a GPU, 100,000 on a CPU)"""
    first_update: int | None = train.by_device(gpu=200_000, cpu=20_000)
    """transitions of all processes before the first update (200,000 on a GPU, 20,000 on a CPU)"""
    updates_at_once: int | None = 1
    """updates in a round"""
    minibatch_size: int = 256
    """transitions of an update, in each process"""
    target_every: int = 500
    """updates between two copies of the network to the target network"""
    life_loss_ends: bool = False
    """in training, a lost life ends an episode (the game goes on)"""
    sticky: float = 0.25
    """probability that a frame repeats the last frame's action"""
    eval_sticky: float = 0.25
    """sticky actions' probability in evaluations"""
    learning_rate: float = 1e-4
    """the optimizer's learning rate"""
    adam_epsilon: float = 0.005 / 256
    """the optimizer's epsilon"""
    max_grad_norm: float | None = 10.0
    """gradients with a larger norm are scaled down to this; None: none are"""
    gamma: float = 0.997
    """discount of a step"""
    double: bool = False
    """the learning network chooses the next action, the target network values it"""
    alpha: float = 0.2
    """with prioritized: 0 samples all alike, 1 in proportion to the errors"""
    quantiles: Quantiles = "iqn"
    """distributions of returns: c51: of fixed atoms; iqn: quantiles; none: values alone"""
    acting_taus: int = 8
    """with iqn: quantiles of which the mean is a value, to choose an action"""
    munchausen: bool = True
    """the policy is a softmax of the target network's values, and rewards have its logarithm"""
    noise_alone_from: int = 100_000_000
    """with noisy: frames from which no action is random, as noise explores; 0: none ever is"""
    epsilon_frames: int = 8_000_000
    """frames in which epsilon falls from the first value to the last"""
    model: ModelName = "impala"
    """nature: the Nature CNN; impala: the IMPALA ResNet"""
    width: float = 2.0
    """multiplies the network's channels and features, by at most 64"""
    spectral_norm: bool = True
    """with impala: divide the weights of residual layers by their largest singular value"""


class BTR(rainbow.Rainbow):
    """Rainbow with BTR's parts."""


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(BTR, Args)


if __name__ == "__main__":
    sys.exit(main())
