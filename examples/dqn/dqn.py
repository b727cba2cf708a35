"""DQN (Mnih et al., 2015) on many Atari games at once, with its replay memory on the device.

    python -m examples.dqn.dqn --game pong

Every `steps_per_update` steps of all envs the network is updated `updates_at_once` times, each time
from `minibatch_size` transitions sampled from the memory. The memory stores each frame once and
gathers stacks when they are read; a million frames take 7 GB. The target of a transition:

    Q(x_t, a_t)  <-  r_t + gamma_t max_a Q_target(x_{t+1}, a)

with gamma_t = 0 where x_{t+1} is terminal. With --double the learning network chooses the action of
the maximum, with --n-step 3 a target has the rewards of three steps, and with --prioritized what
was learned worst is sampled more often (Hessel et al., 2018, have all three).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from cule import train
from cule.errors import InvalidValue
from cule.train.checks import at_least, holds_steps, within
from cule.train.envs.emulator import STACK
from cule.train.nn import draws
from cule.train.nn.models import QNetwork


@dataclass
class Args(train.Args):
    """Trains DQN on Atari games. Frames are emulated frames, four in a step."""

    folder: Path = Path("runs/dqn")
    """where the log, the checkpoints and the plot go"""
    num_envs: int | None = train.by_device(gpu=128, cpu=16)
    """number of envs, over all processes (128 on a GPU, 16 on a CPU)"""
    memory: int | None = train.by_device(gpu=1_000_000, cpu=100_000)
    """transitions that the memory of each process holds (1,000,000 on a GPU, 100,000 on a CPU)"""
    first_update: int | None = train.by_device(gpu=80_000, cpu=10_000)
    """transitions of all processes before the first update (80,000 on a GPU, 10,000 on a CPU)"""
    steps_per_update: int = 1
    """steps of all envs between two rounds of updates"""
    updates_at_once: int | None = train.by_device(gpu=4, cpu=1)
    """updates in a round (4 on a GPU, 1 on a CPU)"""
    minibatch_size: int | None = train.by_device(gpu=512, cpu=64)
    """transitions of an update, in each process (512 on a GPU, 64 on a CPU)"""
    target_every: int = 500
    """updates between two copies of the network to the target network"""
    double: bool = False
    """double DQN: the learning network chooses the next action, the target network values it"""
    n_step: int = 1
    """steps of rewards in a target, before the target network's value"""
    prioritized: bool = False
    """sample transitions by the absolute error of their values when they were last learned from"""
    alpha: float = 0.5
    """with prioritized: 0 samples all alike, 1 in proportion to the errors"""
    first_beta: float = 0.4
    """with prioritized: how much of this is made up for in the loss, at first; all of it, 1, at the
    end of the training"""
    learning_rate: float | None = train.by_device(gpu=2.5e-4, cpu=1e-4)
    """the optimizer's learning rate (0.00025 on a GPU, 0.0001 on a CPU)"""
    max_grad_norm: float | None = None
    """gradients with a larger norm are scaled down to this; None: none are"""
    first_epsilon: float = 1.0
    """epsilon, the probability of a random action, at the beginning"""
    last_epsilon: float = 0.01
    """epsilon at the end"""
    epsilon_frames: int | None = train.by_device(gpu=4_000_000, cpu=1_000_000)
    """frames in which epsilon falls from the first value to the last (4,000,000 on a GPU, 1,000,000
    on a CPU)"""
    log_every: int = 200
    """phases of learning between two lines of the log; the host waits for the device only
    for these"""

    def check(self, world_size: int) -> None:
        """Checks the numbers."""
        super().check(world_size)
        at_least(1, self, "steps_per_update", "updates_at_once", "minibatch_size", "target_every",
                 "epsilon_frames")  # fmt: skip
        within(0, 1, self, "first_epsilon", "last_epsilon", "alpha", "first_beta")
        at_least(1, self, "n_step")
        holds_steps(STACK, self)
        for name in ("alpha", "first_beta"):
            if not self.prioritized and getattr(self, name) != getattr(Args, name):
                raise InvalidValue(f"expected {name} with prioritized, got it without")


class DQN(train.Algorithm[Args]):
    """Deep Q-learning."""

    keeps = {"actions": torch.uint8}

    @property
    def name(self) -> str:
        """DQN, double DQN, prioritized double DQN, n = 3."""
        named = {"prioritized ": self.args.prioritized, "double ": self.args.double}
        steps = f", n = {self.args.n_step}" if self.args.n_step > 1 else ""
        return "".join(word for word, has in named.items() if has) + "DQN" + steps

    def networks(self, num_actions):
        net = QNetwork(num_actions, self.args.model, self.args.width)
        return {"q": net, "target": train.Copy(of="q", every=self.args.target_every)}

    def schedules(self):
        a = self.args

        def epsilon(frames: int) -> float:
            passed = min(1.0, frames / a.epsilon_frames)
            return a.first_epsilon + passed * (a.last_epsilon - a.first_epsilon)

        def beta(frames: int) -> float:
            return a.first_beta + min(1.0, frames / a.total_frames) * (1 - a.first_beta)

        return {"epsilon": epsilon, "beta": beta} if a.prioritized else {"epsilon": epsilon}

    def act(self, nets, observations):
        best = nets.q(observations).argmax(dim=1)
        chances = draws.uniform(best)
        random = draws.integers(best, self.num_actions)
        return {"actions": torch.where(chances < self.now.epsilon, random, best)}

    def scores(self, nets, observations):
        best = nets.q(observations).argmax(dim=1)
        return functional.one_hot(best, self.num_actions).float().log()

    def learning(self):
        a = self.args
        prioritized = train.Prioritized(alpha=a.alpha, beta="beta") if a.prioritized else None
        return train.Learning(
            replay=train.Replay(
                a.memory, a.minibatch_size, n_step=a.n_step, prioritized=prioritized
            ),
            every=a.steps_per_update, times=a.updates_at_once,
            start=-(-a.first_update // a.num_envs), lag=a.lag,
        )  # fmt: skip

    def loss(self, nets, batch):
        with torch.no_grad():
            values = nets.target(batch.next_observations)
            chooser = nets.q(batch.next_observations) if self.args.double else values
            best = values.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1)
            targets = batch.rewards + batch.discounts * best
        values = nets.q(batch.observations)
        chosen = values.gather(1, batch.actions.long().unsqueeze(1)).squeeze(1)
        errors = functional.smooth_l1_loss(chosen, targets, reduction="none")
        logged = {"value_loss": errors.detach().mean(), "mean_value": chosen.detach().mean()}
        if not self.args.prioritized:
            return {"loss": (errors * batch.played).mean(), **logged}
        priorities = (chosen.detach() - targets).abs()
        return {"loss": (errors * batch.weights).mean(), "priorities": priorities, **logged}


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(DQN, Args)


if __name__ == "__main__":
    sys.exit(main())
