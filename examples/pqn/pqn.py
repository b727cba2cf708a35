"""PQN (Gallici et al., 2024): Q(lambda) without a replay memory and without a target network.

    python -m examples.pqn.pqn --game pong

All envs act with the network and a chance of random actions. Every `num_steps` steps the network
learns from just these steps, for some epochs of shuffled minibatches. Targets are Peng's Q(lambda);
LayerNorm keeps learning stable.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from cule import train
from cule.train.nn import draws
from cule.train.nn.models import QNetwork
from cule.train.nn.returns import explained_variance, lambda_returns


@dataclass
class Args(train.Args):
    """Trains PQN on Atari games. Frames are emulated frames, four in a step."""

    folder: Path = Path("runs/pqn")
    """where the log, the checkpoints and the plot go"""
    num_envs: int | None = train.by_device(gpu=256, cpu=16)
    """number of envs, over all processes (256 on a GPU, 16 on a CPU)"""
    num_steps: int = 32
    """steps that the envs play between two phases of learning"""
    update_epochs: int = 2
    """epochs: how many times a phase of learning uses each step"""
    minibatch_size: int | None = train.by_device(gpu=1024, cpu=128)
    """steps in an update, in each process (1,024 on a GPU, 128 on a CPU)"""
    learning_rate: float | None = train.by_device(gpu=5e-4, cpu=2.5e-4)
    """the optimizer's learning rate (0.0005 on a GPU, 0.00025 on a CPU)"""
    anneal_lr: bool = True
    """decrease the learning rate linearly, to 0 at total_frames"""
    max_grad_norm: float | None = 10.0
    """gradients with a larger norm are scaled down to this; None: none are"""
    q_lambda: float = 0.65
    """Q(lambda)'s lambda"""
    first_epsilon: float = 1.0
    """epsilon, the probability of a random action, at the beginning"""
    last_epsilon: float = 0.001
    """epsilon at the end"""
    exploration_fraction: float = 0.05
    """part of total_frames in which the chance falls from the first to the last"""


class PQN(train.Algorithm[Args]):
    """Q(lambda) on the steps just played."""

    evaluates = {"values": torch.float32}

    def networks(self, num_actions):
        a = self.args
        return {"q": QNetwork(num_actions, a.model, a.width, layer_norm=True)}

    def schedules(self):
        a = self.args

        def epsilon(frames: int) -> float:
            passed = min(1.0, frames / max(1.0, a.exploration_fraction * a.total_frames))
            return a.first_epsilon + passed * (a.last_epsilon - a.first_epsilon)

        return {"epsilon": epsilon}

    def act(self, nets, observations):
        values, best = nets.q(observations).max(dim=1)
        chances = draws.uniform(best)
        random = draws.integers(best, self.num_actions)
        return {"actions": torch.where(chances < self.now.epsilon, random, best), "values": values}

    def evaluate(self, nets, observations):
        return {"values": nets.q(observations).amax(dim=1)}

    def scores(self, nets, observations):
        best = nets.q(observations).argmax(dim=1)
        return functional.one_hot(best, self.num_actions).float().log()

    def learning(self):
        a = self.args
        return train.Learning(
            steps=a.num_steps, epochs=a.update_epochs, minibatch=a.minibatch_size, lag=a.lag
        )

    def prepare(self, nets, batch):
        played = batch.played.float()
        return {"targets": lambda_returns(
            batch.rewards, batch.discounts, played, batch.values, self.args.q_lambda
        )}  # fmt: skip

    def loss(self, nets, batch):
        values = nets.q(batch.observations).gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        loss = (0.5 * (values - batch.targets).square() * batch.played).mean()
        explained = explained_variance(values.detach(), batch.targets)
        return {"loss": loss, "value_loss": loss, "mean_value": values.mean(),
                "explained_variance": explained}  # fmt: skip


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(PQN, Args)


if __name__ == "__main__":
    sys.exit(main())
