"""A recurrent policy, declared: an LSTM whose state is a tensor over steps."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import nn

from cule import train
from cule.train.nn.models import entropy_of, sample
from cule.train.nn.returns import discounted_returns


class LstmPolicy(nn.Module):
    """Policy and value on an LSTM; state is (n, 2, size): what it hands on, and its cells."""

    def __init__(self, num_actions, inputs, size):
        super().__init__()
        self.size = size
        self.encode = nn.Sequential(nn.Flatten(), nn.Linear(inputs, size), nn.Tanh())
        self.cell = nn.LSTMCell(size, size)
        self.policy, self.value = nn.Linear(size, num_actions), nn.Linear(size, 1)

    def forward(self, observations, state, started):
        """One step; the state of envs that have just started is 0."""
        state = state * (~started).float()[:, None, None]
        encoded = self.encode(observations.float() / 255)
        state = torch.stack(self.cell(encoded, (state[:, 0], state[:, 1])), dim=1)
        log_pi = self.policy(state[:, 0]).log_softmax(dim=1)
        return log_pi, self.value(state[:, 0]).squeeze(1), state


@dataclass
class Args(train.Args):
    """Settings."""

    num_steps: int = 8
    size: int = 16


class RecurrentA2C(train.Algorithm[Args]):
    """A2C with an LSTM: learns from steps with the state that acting had before the first."""

    keeps = {"log_mu": torch.float32}
    inputs = 4 * 84 * 84

    def networks(self, num_actions):
        return {"net": LstmPolicy(num_actions, self.inputs, self.args.size)}

    def declare(self, declaration):
        d, t, steps = declaration, declaration.t, self.args.num_steps
        state = d.recurrent("state", torch.float32, 2, self.args.size, initial=0.0)
        d.acting(self.act, reads=[state[t], d.started[t]], writes={"state": state[t + 1]})
        d.emulating()
        d.learning(self.learning(), reads={
            "state": lambda stop: state[stop - steps : stop - steps + 1],
            "started": lambda stop: d.started[stop - steps : stop + 1],
        })  # fmt: skip

    def act(self, nets, observations, state, started):
        log_pi, _, state = nets.net(observations, state, started)
        actions = sample(log_pi)
        log_mu = log_pi.gather(1, actions.unsqueeze(1)).squeeze(1)
        return {"actions": actions, "log_mu": log_mu, "state": state}

    def learning(self):
        return train.Learning(steps=self.args.num_steps, lag=self.args.lag)

    def unrolled(self, nets, batch):
        """Log-probabilities and values of all steps."""
        state, outputs = batch.state[0], []
        for observations, started in zip(batch.observations, batch.started, strict=True):
            log_pi, value, state = nets.net(observations, state, started)
            outputs.append((log_pi, value))
        return (torch.stack(part) for part in zip(*outputs, strict=True))

    def loss(self, nets, batch):
        log_pi, values = self.unrolled(nets, batch)
        played = batch.played.float()
        returns = discounted_returns(batch.rewards, batch.discounts, played, values.detach())
        chosen = log_pi[:-1].gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        advantages = (returns - values[:-1]).detach()
        policy_loss = -(chosen * advantages * played).mean()
        value_loss = (0.5 * (returns - values[:-1]).square() * played).mean()
        entropy = (entropy_of(log_pi[:-1]) * played).mean()
        return {
            "loss": policy_loss + 0.5 * value_loss - 0.01 * entropy, "policy_loss": policy_loss,
            "difference": ((chosen.detach() - batch.log_mu) * played).abs().amax(),
        }  # fmt: skip


if __name__ == "__main__":
    sys.exit(train.main(RecurrentA2C, Args))
