"""A small algorithm on envs without an emulator, of which tests change a part."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import entropy_of, sample
from cule.train.trainer import Trainer

CPU = torch.device("cpu")


class Corridor:
    """Each step to the right is worth 1; an episode has four steps."""

    def __init__(self, num_envs):
        self.num_envs, self.single_action_space = num_envs, SimpleNamespace(n=2)

    def reset(self, *, seed):
        self.place = torch.zeros(self.num_envs)
        self.steps = torch.arange(self.num_envs) % 4
        return self.place.unsqueeze(1) / 10, {}

    def step(self, actions):
        over = self.steps == 4
        self.place = torch.where(over, 0.0, self.place + actions)
        self.steps = torch.where(over, 0, self.steps + 1)
        rewards = torch.where(over, 0.0, actions.float())
        nothing = torch.zeros_like(over)
        return self.place.unsqueeze(1) / 10, rewards, self.steps == 4, nothing, {}

    def state_dict(self):
        return {"place": self.place, "steps": self.steps}

    def load_state_dict(self, state):
        self.place, self.steps = state["place"].clone(), state["steps"].clone()

    def close(self):
        pass


class Walker(train.Algorithm[train.Args]):
    """REINFORCE."""

    @classmethod
    def environment(cls, args, num_envs, device):
        return Corridor(num_envs)

    def networks(self, num_actions):
        layers = torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, num_actions)
        return {"net": torch.nn.Sequential(*layers)}

    def act(self, nets, observations):
        return {"actions": sample(nets.net(observations).log_softmax(dim=1))}

    def learning(self):
        return train.Learning(steps=8)

    def loss(self, nets, batch):
        log_pi = nets.net(batch.observations[:-1]).log_softmax(dim=2)
        chosen = log_pi.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        returns = batch.rewards.flip(0).cumsum(0).flip(0)
        loss = -(chosen * self.advantages(returns) * batch.played).mean()
        return {"loss": loss - 0.01 * entropy_of(log_pi).mean()}

    def advantages(self, returns):
        return returns - 1


def trainer_of(algorithm, **settings):
    """A trainer of 8 envs, before its first step."""
    args = train.Args(device="cpu", num_envs=8, num_threads=1, **settings).on(CPU)
    trainer = Trainer(algorithm, args, ProcessGroup(0, 1, CPU))
    trainer.warm_up()
    return trainer


def weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.nets.weights.parameters])
