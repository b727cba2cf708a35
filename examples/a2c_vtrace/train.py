"""A2C with V-trace on thousands of Atari games at once, after Dalton, Frosio and Garland (2019).

    python -m examples.a2c_vtrace.train --game pong
    torchrun --nproc-per-node 4 -m examples.a2c_vtrace.train --game pong --num-envs 4800

README.md in this folder explains it; `--help` lists the settings.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from cule import train
from cule.errors import InvalidValue
from cule.train.checks import at_least, within
from cule.train.nn.losses import vtrace_loss
from cule.train.nn.models import ActorCritic, policy_terms, sample_with_log


@dataclass
class Args(train.Args):
    """Trains A2C with V-trace on Atari games, thousands of environments at once.

    Frames are emulated frames: a step of one env is four of them. The paper's "training frames" are
    a quarter.
    """

    folder: Path = Path("runs/a2c_vtrace")
    """where the log, the checkpoints and the plot go"""
    num_envs: int | None = train.by_device(gpu=1200, cpu=120)
    """number of envs, over all processes (1,200 on a GPU, 120 on a CPU)"""
    num_batches: int = 20
    """groups of envs, which update the network in turn; 1 with steps_per_update = num_steps is
    vanilla A2C"""
    num_steps: int = 20
    """length of the rollouts in an update, in steps"""
    steps_per_update: int = 1
    """steps that all envs play between two updates"""
    updates_at_once: int = 1
    """updates between two phases of play, each by the next group; with 2 every step is used
    twice"""
    overlap: bool = False
    """the old name of --lag 1, which goes with the next release"""
    total_frames: int | None = train.by_device(gpu=200_000_000, cpu=20_000_000)
    """when to stop (200,000,000 on a GPU, 20,000,000 on a CPU)"""
    warmup_steps: int = 300
    """steps that all envs play before the first update, so that their games are in different
    states"""
    life_loss_ends: bool = True
    """in training, a lost life ends an episode (the game goes on)"""
    learning_rate: float = 6.5e-4
    """the optimizer's learning rate"""
    vf_coef: float = 0.5
    """weight of the value's squared error in the loss"""
    ent_coef: float = 0.01
    """weight of the policy's entropy in the loss"""
    anneal_ent: bool = False
    """decrease the entropy's weight linearly, to 0 at total_frames"""
    scale_ent: bool = False
    """multiply the entropy's weight by the root mean square of the advantages of an update, which
    is then never in chunks, so that it is as strong in games with small ones"""
    rho_bar: float = 1.0
    """V-trace's threshold of ratios in the targets and in the policy gradient"""
    c_bar: float = 1.0
    """V-trace's threshold of ratios in the trace"""
    trace_decay: float = 1.0
    """V-trace's lambda"""

    def __post_init__(self) -> None:
        """Checks each field's type. `overlap` becomes a lag of 1.

        Raises:
            ValueError: one has another.

        Warns:
            FutureWarning: `overlap` is set.
        """
        super().__post_init__()
        if self.overlap:
            said = "--overlap is --lag 1 now, and goes with the next release"
            warnings.warn(said, FutureWarning, stacklevel=3)
            self.lag, self.overlap = 1, False

    def check(self, world_size: int) -> None:
        """Checks the numbers."""
        super().check(world_size)
        at_least(1, self, "num_batches", "num_steps", "steps_per_update", "updates_at_once")
        at_least(0, self, "warmup_steps", "rho_bar", "c_bar")
        within(0, 1, self, "trace_decay")
        if self.steps_per_update > self.num_steps:
            raise InvalidValue(
                f"expected steps_per_update to be at most num_steps ({self.num_steps}), as nothing "
                f"would be learned from the other steps, got {self.steps_per_update}"
            )
        if self.num_envs % (world_size * self.num_batches):
            raise InvalidValue(
                f"expected num_envs to be a multiple of num_batches times the number of processes "
                f"({self.num_batches} x {world_size}), got {self.num_envs}"
            )


class A2C(train.Algorithm[Args]):
    """Groups of envs learn in turn from their last steps; V-trace corrects for older policies."""

    keeps = {"log_mu": torch.float32}
    corrects = True

    @property
    def name(self) -> str:
        """A2C if it learns from each step once, with the policy that played it."""
        a = self.args
        once = a.steps_per_update == a.num_steps and a.updates_at_once == 1
        on_policy = a.num_batches == 1 and once and not a.lag
        return "A2C" if on_policy else "A2C+V-trace"

    def schedules(self):
        return {"ent_coef": self.args.falling("ent_coef")} if self.args.anneal_ent else {}

    def networks(self, num_actions):
        return {"net": ActorCritic(num_actions, self.args.model, self.args.width)}

    def act(self, nets, observations):
        log_pi, _ = nets.net(observations)
        actions, log_mu = sample_with_log(log_pi)
        return {"actions": actions, "log_mu": log_mu}

    def scores(self, nets, observations):
        return nets.net(observations)[0]

    def learning(self):
        a = self.args
        return train.Learning(
            steps=a.num_steps, every=a.steps_per_update, times=a.updates_at_once,
            groups=a.num_batches, lag=a.lag, start=a.warmup_steps,
            whole=a.scale_ent,
        )  # fmt: skip

    def loss(self, nets, batch):
        a, (steps, width) = self.args, batch.actions.shape
        log_pi_all, values = nets.net(batch.observations.flatten(0, 1))
        log_pi_all = log_pi_all[: steps * width].unflatten(0, (steps, width))
        log_pi, entropy = policy_terms(log_pi_all, batch.actions)
        ent_coef = self.now.ent_coef if a.anneal_ent else a.ent_coef
        # What it computes is in cule/train/nn/losses.py, in a few lines of torch.
        return vtrace_loss(
            log_pi, entropy, values.unflatten(0, (steps + 1, width)), batch.log_mu,
            batch.rewards, batch.discounts, batch.played, vf_coef=a.vf_coef, ent_coef=ent_coef,
            rho_bar=a.rho_bar, c_bar=a.c_bar, trace_decay=a.trace_decay, scale_ent=a.scale_ent,
        )._asdict()  # fmt: skip


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(A2C, Args)


if __name__ == "__main__":
    sys.exit(main())
