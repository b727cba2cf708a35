"""PPO (Schulman et al., 2017) on thousands of Atari games at once, everything on the device.

    python -m examples.ppo.ppo --game pong

The envs play `num_steps` steps. Then the network is trained on them for some epochs of shuffled
minibatches; the clipped loss keeps the policy near the one that played.

With `--lag 1` the envs play on meanwhile, and what is learned from was played by an older policy.
Then the loss keeps the policy near the one with which a phase of learning begins, as in "Batch
size-invariance for policy optimization" (Hilton et al., 2022), and V-trace corrects advantages for
what the older policy did otherwise.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from cule import train
from cule.train.checks import at_least, within
from cule.train.nn.losses import clipped_loss
from cule.train.nn.models import ActorCritic, policy_terms, sample_with_log
from cule.train.nn.returns import explained_variance, gae, vtrace


@dataclass
class Args(train.Args):
    """Trains PPO on Atari games. Frames are emulated frames, four in a step."""

    folder: Path = Path("runs/ppo")
    """where the log, the checkpoints and the plot go"""
    num_envs: int | None = train.by_device(gpu=256, cpu=16)
    """number of envs, over all processes (256 on a GPU, 16 on a CPU)"""
    num_steps: int | None = train.by_device(gpu=32, cpu=128)
    """steps that the envs play between two phases of learning (32 on a GPU, 128 on a CPU)"""
    update_epochs: int = 3
    """epochs: how many times a phase of learning uses each step"""
    minibatch_size: int | None = train.by_device(gpu=1024, cpu=256)
    """steps of a minibatch, from which an update is made, in each process (1,024 on a GPU, 256 on a
    CPU)"""
    learning_rate: float | None = train.by_device(gpu=6.5e-4, cpu=2.5e-4)
    """the optimizer's learning rate (0.00065 on a GPU, 0.00025 on a CPU)"""
    anneal_lr: bool = True
    """decrease the learning rate linearly, to 0 at total_frames"""
    gae_lambda: float = 0.95
    """GAE's lambda"""
    clip_coef: float = 0.1
    """PPO's epsilon: ratios of probabilities are clipped to 1 plus or minus this"""
    vf_coef: float = 0.5
    """weight of the value's squared error in the loss"""
    ent_coef: float = 0.01
    """weight of the policy's entropy in the loss"""
    anneal_ent: bool = False
    """decrease the entropy's weight linearly, to 0 at total_frames"""

    def check(self, world_size: int) -> None:
        """Checks the numbers."""
        super().check(world_size)
        at_least(1, self, "num_steps", "update_epochs")
        at_least(2, self, "minibatch_size")  # so that advantages have a standard deviation
        at_least(0, self, "clip_coef")
        within(0, 1, self, "gae_lambda")


class PPO(train.Algorithm[Args]):
    """Proximal policy optimization."""

    keeps = {"log_mu": torch.float32}
    corrects = True
    evaluates = {"values": torch.float32}

    def __init__(self, args, context):
        super().__init__(args, context)
        if args.lag:
            log_pi = torch.float32, self.num_actions
            self.evaluates = {**self.evaluates, "log_pi": log_pi}  # of the policy that learns

    def schedules(self):
        return {"ent_coef": self.args.falling("ent_coef")} if self.args.anneal_ent else {}

    def networks(self, num_actions):
        return {"net": ActorCritic(num_actions, self.args.model, self.args.width)}

    def act(self, nets, observations):
        log_pi, values = nets.net(observations)
        actions, log_mu = sample_with_log(log_pi)
        return {"actions": actions, "log_mu": log_mu, "values": values}

    def evaluate(self, nets, observations):
        log_pi, values = nets.net(observations)
        return {"values": values, "log_pi": log_pi}

    def scores(self, nets, observations):
        return nets.net(observations)[0]

    def learning(self):
        a = self.args
        return train.Learning(
            steps=a.num_steps, epochs=a.update_epochs, minibatch=a.minibatch_size,
            normalize=("advantages",), lag=a.lag,
        )  # fmt: skip

    def prepare(self, nets, batch):
        gae_lambda, values = self.args.gae_lambda, batch.values
        if self.args.lag:
            log_near = batch.log_pi[:-1].gather(2, batch.actions.unsqueeze(2)).squeeze(2)
            log_ratios = (log_near - batch.log_mu).masked_fill(~batch.played, -torch.inf)
            targets = vtrace(
                log_ratios, batch.rewards, batch.discounts, values, trace_decay=gae_lambda
            ).targets
            advantages = targets - values[:-1]
        else:
            log_near, played = batch.log_mu, batch.played.float()
            advantages = gae(batch.rewards, batch.discounts, played, values, gae_lambda)
            targets = advantages + values[:-1]
        return {
            "advantages": advantages, "targets": targets, "old_values": values[:-1],
            "log_near": log_near,
        }  # fmt: skip

    def loss(self, nets, batch):
        a = self.args
        log_pi_all, values = nets.net(batch.observations)
        log_pi, entropy = policy_terms(log_pi_all, batch.actions)
        ent_coef = self.now.ent_coef if a.anneal_ent else a.ent_coef
        # What it computes is in cule/train/nn/losses.py, in a few lines of torch.
        parts = clipped_loss(
            log_pi, entropy, values, batch.log_near, batch.advantages, batch.targets,
            batch.played, clip_coef=a.clip_coef, vf_coef=a.vf_coef, ent_coef=ent_coef,
        )  # fmt: skip
        explained = explained_variance(batch.old_values, batch.targets)
        return parts._asdict() | {"explained_variance": explained}

    def norm(self, gradient, gradients):
        return nn.utils.get_total_norm(gradients)


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(PPO, Args)


if __name__ == "__main__":
    sys.exit(main())
