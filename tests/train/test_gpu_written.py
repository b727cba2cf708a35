"""On a GPU: algorithms of a page learn the same from captured graphs as operation by operation."""

from __future__ import annotations

import pytest
from test_recurrent_replay import R2D2
from test_recurrent_replay import Args as SequenceArgs
from test_several_learnings import PhasicPolicyGradient
from test_written import ChangingN, SelfImitation, WholeEpisodes
from torch import nn
from training_runs import assert_same, saved

from cule import train
from examples.dqn import dqn
from examples.ppo import ppo
from examples.reinforce import reinforce

pytestmark = pytest.mark.gpu

EACH = {
    "game": "breakout", "device": "cuda", "num_envs": 32, "max_episode_frames": 60,
    "deterministic": True, "eval_episodes": 0, "progress": False, "plot": False,
    "tensorboard": False, "learning_rate": 1e-3,
}  # fmt: skip


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
    """The algorithm on Atari games."""

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


DQN = {"memory": 3200, "first_update": 320, "minibatch_size": 32, "width": 0.25}
KINDS = {
    "n-step": (dqn.DQN, dqn.Args, {**DQN, "n_step": 3}),
    "prioritized": (dqn.DQN, dqn.Args, {**DQN, "prioritized": True}),
    "prioritized n-step double": (
        dqn.DQN, dqn.Args, {**DQN, "prioritized": True, "n_step": 3, "double": True},
    ),
    "prioritized lag": (dqn.DQN, dqn.Args, {**DQN, "prioritized": True, "lag": 1}),
    "sequences": (Sequences, SequenceArgs, {"bf16": False}),
    "n that changes": (on_atari(ChangingN), train.Args, {}),
    "whole episodes": (on_atari(WholeEpisodes), train.Args, {}),
    "self-imitation": (on_atari(SelfImitation), train.Args, {}),
    "two phases": (on_atari(PhasicPolicyGradient), train.Args, {}),
    "beside": (reinforce.Reinforce, reinforce.Args, {"num_steps": 16, "n_step": 4, "width": 0.25}),
    "memory": (
        ppo.PPO, ppo.Args,
        {"num_steps": 8, "minibatch_size": 64, "model": "lstm", "width": 0.25},
    ),
    "lag": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 64, "lag": 1, "width": 0.25}),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_captured_it_learns_the_same(name, tmp_path):
    algorithm, settings, changes = KINDS[name]
    for folder, captured in (("one", False), ("graphs", True), ("again", True)):
        args = settings(
            **{**EACH, **changes}, cuda_graphs=captured, folder=tmp_path / folder,
            total_frames=32 * 4 * 96,
        )  # fmt: skip
        row = train.train(algorithm, args)
        assert row["updates"] > 5
    assert_same(saved(tmp_path / "graphs"), saved(tmp_path / "again"))
    assert_same(saved(tmp_path / "one"), saved(tmp_path / "graphs"))
