"""Rainbow (Hessel et al., 2018) on many Atari games at once, each of its parts a setting.

    python -m examples.rainbow.rainbow --game pong

It is DQN (examples/dqn) with double Q-learning, dueling and noisy layers, prioritized replay,
targets of n steps, and distributions of returns: C51's atoms or IQN's quantiles. Munchausen's
targets and the IMPALA ResNet with spectral norm are for BTR (btr.py). The target of a transition
without the last two, with the action a* that is best in x_{t+n}:

    Z(x_t, a_t)  <-  r_t + ... + gamma^{n-1} r_{t+n-1} + gamma^n Z_target(x_{t+n}, a*)

Numbers are the paper's. It plays one env, with an update after each 4 of its steps; here an update
stands for 4 steps, too, so that updates_at_once is a quarter of num_envs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from cule import train
from cule.train.nn import distributions, draws
from cule.train.nn.models import ModelName
from cule.train.nn.value_networks import Quantiles, ValueNetwork
from examples.rainbow.checks import check_parts, parts_named


@dataclass
class Args(train.Args):
    """Trains Rainbow on Atari games. Frames are emulated frames, four in a step."""

    folder: Path = Path("runs/rainbow")
    """where the log, the checkpoints and the plot go"""
    num_envs: int | None = train.by_device(gpu=64, cpu=16)
    """number of envs, over all processes (64 on a GPU, 16 on a CPU)"""
    total_frames: int | None = train.by_device(gpu=200_000_000, cpu=10_000_000)
    """when to stop (200,000,000 on a GPU, 10,000,000 on a CPU)"""
    memory: int | None = train.by_device(gpu=1_000_000, cpu=100_000)
    """transitions that the memory of each process holds (1,000,000 on a GPU, 100,000 on a CPU)"""
    first_update: int | None = 20_000
    """transitions of all processes before the first update"""
    steps_per_update: int = 1
    """steps of all envs between two rounds of updates"""
    updates_at_once: int | None = train.by_device(gpu=16, cpu=4)
    """updates in a round (16 on a GPU, 4 on a CPU)"""
    minibatch_size: int = 32
    """transitions of an update, in each process"""
    target_every: int = 2000
    """updates between two copies of the network to the target network"""
    life_loss_ends: bool = True
    """in training, a lost life ends an episode (the game goes on)"""
    learning_rate: float = 6.25e-5
    """the optimizer's learning rate"""
    adam_epsilon: float = 1.5e-4
    """the optimizer's epsilon"""
    max_grad_norm: float | None = None
    """gradients with a larger norm are scaled down to this; None: none are"""
    log_every: int = 200
    """phases of learning between two lines of the log; the host waits for the device only
    for these"""

    double: bool = True
    """the learning network chooses the next action, the target network values it"""
    dueling: bool = True
    """values are a state's value and the actions' advantages"""
    n_step: int = 3
    """steps of rewards in a target, before the target network's value"""
    prioritized: bool = True
    """sample transitions by the error of their values when they were last learned from"""
    alpha: float = 0.5
    """with prioritized: 0 samples all alike, 1 in proportion to the errors"""
    first_beta: float = 0.4
    """with prioritized: how much of this is made up for in the loss, at first; all of it, 1, at the
    end of the training"""
    quantiles: Quantiles = "c51"
    """distributions of returns: c51: of fixed atoms; iqn: quantiles; none: values alone"""
    atoms: int = 51
    """with c51: how many"""
    lowest_atom: float = -10.0
    """with c51: the lowest return that an atom stands for"""
    highest_atom: float = 10.0
    """with c51: the highest"""
    taus: int = 8
    """with iqn: quantiles that learn"""
    target_taus: int = 8
    """with iqn: quantiles of targets"""
    acting_taus: int = 32
    """with iqn: quantiles of which the mean is a value, to choose an action"""
    munchausen: bool = False
    """the policy is a softmax of the target network's values, and rewards have its logarithm"""
    munchausen_alpha: float = 0.9
    """with munchausen: how much of the logarithm is added"""
    temperature: float = 0.03
    """with munchausen: the softmax's"""
    least_log: float = -1.0
    """with munchausen: temperature times the logarithm is at least this"""
    noisy: bool = True
    """linear layers have noise on their weights, by which the agent explores"""
    sigma: float = 0.5
    """with noisy: the noise at first"""
    noise_alone_from: int = 0
    """with noisy: frames from which no action is random, as noise explores; 0: none ever is"""
    first_epsilon: float = 1.0
    """epsilon, the probability of a random action, at the beginning"""
    last_epsilon: float = 0.01
    """epsilon at the end"""
    epsilon_frames: int = 250_000
    """frames in which epsilon falls from the first value to the last"""
    model: ModelName = "nature"
    """nature: the Nature CNN; impala: the IMPALA ResNet"""
    pool: int = 6
    """with impala: maxima of its images in so many by so many windows are kept; 0: all pixels"""
    spectral_norm: bool = False
    """with impala: divide the weights of residual layers by their largest singular value"""

    def check(self, world_size: int) -> None:
        """Checks the numbers."""
        super().check(world_size)
        check_parts(self)

    @property
    def has_epsilon(self) -> bool:
        """Whether some actions are random, with the probability epsilon."""
        return not self.noisy or self.noise_alone_from > 0


class Rainbow(train.Algorithm[Args]):
    """Rainbow, with the parts that the settings name."""

    keeps = {"actions": torch.uint8}

    @property
    def name(self) -> str:
        """Rainbow, and the parts that are not as by default."""
        return parts_named(type(self).__name__, self.args)

    def networks(self, num_actions):
        a = self.args
        net = ValueNetwork(
            num_actions, a.model, a.width, quantiles=a.quantiles, atoms=a.atoms,
            limits=(a.lowest_atom, a.highest_atom), fractions=a.acting_taus, dueling=a.dueling,
            sigma=a.sigma if a.noisy else None, pool=a.pool, spectral_norm=a.spectral_norm,
        )  # fmt: skip
        return {"q": net, "target": train.Copy(of="q", every=a.target_every)}

    def schedules(self):
        a = self.args

        def epsilon(frames: int) -> float:
            if a.noisy and frames >= a.noise_alone_from:
                return 0.0
            passed = min(1.0, frames / a.epsilon_frames)
            return a.first_epsilon + passed * (a.last_epsilon - a.first_epsilon)

        def beta(frames: int) -> float:
            return a.first_beta + min(1.0, frames / a.total_frames) * (1 - a.first_beta)

        parts = {"epsilon": (a.has_epsilon, epsilon), "beta": (a.prioritized, beta)}
        return {name: schedule for name, (used, schedule) in parts.items() if used}

    def act(self, nets, observations):
        # Each env has noise and quantiles of its own at each step.
        like = observations.new_empty(len(observations), nets.q.noise_size, dtype=torch.float32)
        noise = draws.normal(like) if self.args.noisy else None
        taus = None
        if self.args.quantiles == "iqn":
            taus = draws.uniforms(like.new_empty(len(like), self.args.acting_taus))
        best = nets.q(observations, noise, taus).argmax(dim=1)
        if not self.args.has_epsilon:
            return {"actions": best}
        chances = draws.uniform(best)
        random = draws.integers(best, self.num_actions)
        return {"actions": torch.where(chances < self.now.epsilon, random, best)}

    def scores(self, nets, observations):
        # Without noise, and with quantiles at equal distances.
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
            # All rows have the same noise, and a spectral norm improves once in an update.
            whole=a.noisy or a.quantiles == "iqn" or a.spectral_norm,
        )  # fmt: skip

    def outputs(self, net, observations, taus=None):
        """A network's outputs, with new noise for all rows together; taus: how many of each."""
        noise = fractions = None
        if self.args.noisy:
            noise = torch.randn(1, net.noise_size, device=observations.device)
        if self.args.quantiles == "iqn":
            fractions = torch.rand(len(observations), taus, device=observations.device)
        return net.outputs(observations, noise, fractions), fractions

    def target(self, nets, batch):
        """Where returns may end up, (B, M), and how likely, (B, M); None: as likely as others."""
        a = self.args
        rewards, discounts = batch.rewards.unsqueeze(1), batch.discounts.unsqueeze(1)
        after, _ = self.outputs(nets.target, batch.next_observations, a.target_taus)
        if a.munchausen:
            each = nets.target.values_of(after)
            logs = distributions.scaled_log_policy(each, a.temperature)
            policy = (logs / a.temperature).exp()
            quantiles = after if a.quantiles == "iqn" else after.unsqueeze(2)
            soft = (policy.unsqueeze(2) * (quantiles - logs.unsqueeze(2))).sum(dim=1)
            now, _ = self.outputs(nets.target, batch.observations, a.target_taus)
            before = distributions.scaled_log_policy(nets.target.values_of(now), a.temperature)
            bonus = before.gather(1, batch.actions.long().unsqueeze(1)).clamp(a.least_log, 0)
            return rewards + a.munchausen_alpha * bonus + discounts * soft, None
        chooser = after
        if a.double or a.quantiles == "iqn":
            net = nets.q if a.double else nets.target
            chooser, _ = self.outputs(net, batch.next_observations, a.acting_taus)
        best = nets.target.values_of(chooser).argmax(dim=1)
        chosen = after[torch.arange(len(best), device=best.device), best]
        if a.quantiles == "c51":
            return rewards + discounts * nets.target.support, chosen.softmax(dim=1)
        return rewards + discounts * chosen.view(len(best), -1), None

    def loss(self, nets, batch):
        with torch.no_grad():
            if self.args.spectral_norm:
                nets.q.power_iteration()
            targets, probabilities = self.target(nets, batch)
        found, taus = self.outputs(nets.q, batch.observations, self.args.taus)
        chosen = found[torch.arange(len(found), device=found.device), batch.actions.long()]
        if probabilities is not None:
            atoms = distributions.projected(probabilities, targets, nets.q.support)
            errors, priorities = distributions.cross_entropy(atoms, chosen)
        elif taus is not None:
            errors, priorities = distributions.quantile_huber(chosen, taus, targets)
        else:
            errors = functional.smooth_l1_loss(chosen, targets[:, 0], reduction="none")
            priorities = (chosen.detach() - targets[:, 0]).abs()
        logged = {"value_loss": errors.detach().mean(),
                  "mean_value": nets.q.values_of(found.detach()).mean()}  # fmt: skip
        if not self.args.prioritized:
            return {"loss": (errors * batch.played).mean(), **logged}
        return {"loss": (errors * batch.weights).mean(), "priorities": priorities, **logged}


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(Rainbow, Args)


if __name__ == "__main__":
    sys.exit(main())
