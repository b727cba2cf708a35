"""Algorithms of a page that tests have, made to play Atari games with small networks."""

from __future__ import annotations

from typing import Any

import torch
from test_recurrent_replay import R2D2
from test_recurrent_replay import Args as SequenceArgs
from test_several_learnings import PhasicPolicyGradient
from test_written import ChangingN, SelfImitation, WholeEpisodes
from torch import nn

from cule import train
from cule.train.nn.models import entropy_of, sample

# As Algorithm has it: the training plays the settings' game.
ATARI = train.Algorithm.__dict__["environment"]


class Small(nn.Module):
    """Numbers from stacks of frames, whatever dimensions come before them."""

    def __init__(self, outputs):
        super().__init__()
        self.pool = nn.AvgPool2d(14)
        self.layers = nn.Sequential(nn.Linear(4 * 36, 32), nn.Tanh(), nn.Linear(32, outputs))

    def forward(self, frames):
        inputs = self.pool(frames.flatten(end_dim=-4).float() / 255).flatten(1)
        return self.layers(inputs.to(self.layers[0].weight.dtype)).unflatten(0, frames.shape[:-3])


def on_atari(algorithm):
    """The algorithm, of a policy and a value, on Atari games."""

    class OnAtari(algorithm):
        environment = ATARI

        def networks(self, num_actions):
            return {"net": Small(num_actions + 1)}

        def heads(self, net, observations):
            both = net(observations)
            return both[..., :-1].float().log_softmax(dim=-1), both[..., -1].float()

        def note(self, *_):
            """Not needed here, and a list of tensors of a graph would be wrong."""

    OnAtari.__name__ = algorithm.__name__
    return OnAtari


class SequencesNet(nn.Module):
    """Values of actions on a GRU."""

    def __init__(self, num_actions, size):
        super().__init__()
        self.encode, self.cell = Small(size), nn.GRUCell(size, size)
        self.values = nn.Linear(size, num_actions)

    def forward(self, observations, state, started):
        state = state * (~started).float().unsqueeze(1)
        state = self.cell(self.encode(observations).tanh().float(), state)
        return self.values(state), state


class Sequences(R2D2):
    """R2D2 on Atari games."""

    environment = ATARI

    def networks(self, num_actions):
        net = SequencesNet(num_actions, self.args.size)
        return {"q": net, "target": train.Copy(of="q", every=3)}


class TwoAgents(train.Algorithm[train.Args]):
    """One acts where the picture is bright, the other where it is dark; each learns by itself."""

    def networks(self, num_actions):
        return {"bright": Small(num_actions), "dark": Small(num_actions)}

    def act(self, nets, observations):
        bright = observations.flatten(1).float().mean(1, keepdim=True) > 60
        both = torch.where(bright, nets.bright(observations), nets.dark(observations))
        return {"actions": sample(both.float().log_softmax(dim=1))}

    def learning(self):
        return train.Learning(steps=8, every=4)

    def declare(self, d):
        d.acting(self.act)
        d.emulating()
        d.learning(self.learning(), networks=("bright",))
        d.learning(
            train.Learning(steps=6, every=12, times=2), name="dark", loss=self.loss_of("dark"),
            networks=("dark",),
        )  # fmt: skip

    def loss_of(self, name):
        def loss(nets, batch):
            log_pi = getattr(nets, name)(batch.observations[:-1]).float().log_softmax(dim=-1)
            chosen = log_pi.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
            returns = batch.rewards.flip(0).cumsum(0).flip(0) - 0.1
            loss = -(chosen * returns * batch.played).mean()
            return {"loss": loss - 0.01 * entropy_of(log_pi).mean()}

        return loss

    def loss(self, nets, batch):
        return self.loss_of("bright")(nets, batch)


# The class, its settings, and what else is set.
WRITTEN: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "sequences": (Sequences, SequenceArgs, {"bf16": False}),
    "n that changes": (on_atari(ChangingN), train.Args, {}),
    "whole episodes": (on_atari(WholeEpisodes), train.Args, {}),
    "self-imitation": (on_atari(SelfImitation), train.Args, {}),
    "two phases": (on_atari(PhasicPolicyGradient), train.Args, {}),
    "two agents": (TwoAgents, train.Args, {}),
}
