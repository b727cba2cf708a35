"""REINFORCE (Williams, 1992) with the returns of whole stretches of play, or with n-step returns.

    python -m examples.reinforce.reinforce --game pong
    python -m examples.reinforce.reinforce --game pong --n-step 8 --explain

Which returns is a line in `learning`, and two other plans. Whole returns need all rewards of
`num_steps` steps: nothing can be learned before they are played, and all observations stay until
then. With n-step returns an action is learned from as soon as the next n steps are played: on a GPU
gradients are computed while the envs play on, and older observations go. Either way one update
learns from `num_steps` steps, with the weights that played them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from cule import train
from cule.errors import InvalidValue
from cule.train.checks import at_least
from cule.train.nn.models import ActorCritic, policy_terms, sample
from cule.train.nn.returns import discounted_returns


@dataclass
class Args(train.Args):
    """Trains REINFORCE on Atari games. Frames are emulated frames, four in a step."""

    folder: Path = Path("runs/reinforce")
    """where the log, the checkpoints and the plot go"""
    num_steps: int = 128
    """steps in an update, which whole returns are summed over"""
    n_step: int | None = None
    """rewards in a return, of n-step returns; None: whole returns"""
    ent_coef: float = 0.01
    """weight of the policy's entropy in the loss"""
    log_every: int = 1
    """updates between two lines of the log; the host waits for the device only for these"""

    def check(self, world_size: int) -> None:
        """Checks the numbers."""
        super().check(world_size)
        at_least(1, self, "num_steps", "n_step")
        if self.num_steps % (self.n_step or 1):
            raise InvalidValue(
                f"expected num_steps to be a multiple of n_step, got {self.num_steps} and "
                f"{self.n_step}"
            )


class Reinforce(train.Algorithm[Args]):
    """The policy gradient with returns, less their mean."""

    def networks(self, num_actions):
        return {"net": ActorCritic(num_actions, self.args.model, self.args.width)}

    def act(self, nets, observations):
        return {"actions": sample(nets.net(observations)[0])}

    def scores(self, nets, observations):
        return nets.net(observations)[0]

    def learning(self):
        n, steps, lag = self.args.n_step, self.args.num_steps, self.args.lag
        # The one line: n steps are learned from, once the n after them are played.
        n, ahead = (steps, 0) if n is None or n == steps else (n, n)
        return train.Learning(steps=n, accumulate=steps // n, ahead=ahead, lag=lag)

    def prepare(self, nets, batch):
        n = self.args.n_step
        played = batch.played.float()
        returns = discounted_returns(batch.rewards, batch.discounts, played, steps=n)
        return {"returns": returns, "advantages": returns - returns[:n].mean()}

    def loss(self, nets, batch):
        steps = self.args.n_step or len(batch.actions)
        log_pi = nets.net(batch.observations[:steps].flatten(0, 1))[0]
        log_pi = log_pi.unflatten(0, (steps, -1))
        mask = batch.played[:steps].float()
        chosen, entropy = policy_terms(log_pi, batch.actions[:steps])
        policy_loss = -(chosen * batch.advantages[:steps] * mask).mean()
        entropy = (entropy * mask).mean()
        return {
            "loss": policy_loss - self.args.ent_coef * entropy, "policy_loss": policy_loss,
            "entropy": entropy, "mean_return": batch.returns[:steps].mean(),
        }  # fmt: skip


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(Reinforce, Args)


if __name__ == "__main__":
    sys.exit(main())
