"""Soft actor-critic (Haarnoja et al., 2018) on gymnasium's Pendulum, as a user would write it."""

from __future__ import annotations

import ast
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import torch
from torch import nn
from torch.func import functional_call

from cule import train
from cule.train.nn import draws


@dataclass
class Args(train.Args):
    """Trains soft actor-critic on Pendulum."""

    folder: Path = Path("runs/sac")
    """where the log and the checkpoints go"""
    n_step: int = 1
    """steps of rewards in a target"""
    prioritized: bool = False
    """sample by errors"""


class Pendulums:
    """Some of gymnasium's Pendulum-v1, with tensors in place of arrays."""

    def __init__(self, num_envs: int):
        self.envs = gymnasium.make_vec("Pendulum-v1", num_envs, vectorization_mode="sync")
        self.num_envs = num_envs
        self.single_action_space = self.envs.single_action_space

    def reset(self, *, seed: int):
        observations, info = self.envs.reset(seed=seed)
        return torch.from_numpy(observations), info

    def step(self, actions: torch.Tensor):
        observations, rewards, terminated, truncated, _ = self.envs.step(2 * actions.numpy())
        arrays = (observations.copy(), rewards / 8, terminated, truncated)
        first, second, *ends = (torch.from_numpy(array) for array in arrays)
        return first, second.float(), *(end.clone() for end in ends), {}

    def state_dict(self):
        states = []
        for env in self.envs.envs:
            inner = env.unwrapped
            states.append({
                "state": torch.from_numpy(inner.state.copy()),
                "steps": env._elapsed_steps,
                "random": str(inner.np_random.bit_generator.state),
            })  # fmt: skip
        return {"envs": states, "over": torch.from_numpy(self.envs._autoreset_envs.copy())}

    def load_state_dict(self, state):
        for env, its in zip(self.envs.envs, state["envs"], strict=True):
            inner = env.unwrapped
            inner.state, env._elapsed_steps = its["state"].numpy().copy(), its["steps"]
            inner.np_random.bit_generator.state = ast.literal_eval(its["random"])
        self.envs._autoreset_envs = state["over"].numpy().copy()

    def close(self):
        self.envs.close()


def layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs)
    )


class Critics(nn.Module):
    """Two values of observations and actions."""

    def __init__(self, inputs: int):
        super().__init__()
        self.one, self.two = layers(inputs, 1), layers(inputs, 1)

    def forward(self, observations, actions):
        both = torch.cat([observations, actions], dim=-1)
        return self.one(both).squeeze(-1), self.two(both).squeeze(-1)


class Temperature(nn.Module):
    """The weight of the entropy."""

    def __init__(self):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((), math.log(0.2)))

    def forward(self):
        return self.log_alpha.exp()


class SAC(train.Algorithm[Args]):
    """Soft actor-critic."""

    def __init__(self, args, context):
        super().__init__(args, context)
        self.keeps = {"actions": (torch.float32, self.num_actions)}

    @classmethod
    def environment(cls, args, num_envs, device):
        return Pendulums(num_envs)

    def networks(self, num_actions):
        return {
            "actor": layers(3, 2 * num_actions),
            "critics": Critics(3 + num_actions),
            "temperature": Temperature(),
            "targets": train.Copy(of="critics", tau=0.01),
        }

    def optimizer(self, parameters):
        return torch.optim.Adam(parameters, lr=3e-3)

    def sampled(self, outputs, noise):
        """Actions within -1 and 1, and the logarithms of their densities."""
        mean, log_deviation = outputs.chunk(2, dim=-1)
        log_deviation = log_deviation.clamp(-5, 2)
        raw = mean + log_deviation.exp() * noise
        density = -0.5 * noise.square() - log_deviation - 0.5 * math.log(2 * math.pi)
        squashed = 2 * (math.log(2) - raw - nn.functional.softplus(-2 * raw))
        return raw.tanh(), (density - squashed).sum(-1)

    def act(self, nets, observations):
        outputs = nets.actor(observations)
        noise = draws.normal(outputs[:, : self.num_actions])
        return {"actions": self.sampled(outputs, noise)[0]}

    def learning(self):
        rule = train.Prioritized() if self.args.prioritized else None
        memory = train.Replay(20_000, 128, n_step=self.args.n_step, prioritized=rule)
        return train.Learning(replay=memory, every=1, start=50)

    def policy(self, net, observations):
        outputs = net(observations)
        return self.sampled(outputs, torch.randn_like(outputs[:, : self.num_actions]))

    def loss(self, nets, batch):
        alpha = nets.temperature().detach()
        with torch.no_grad():
            actions, density = self.policy(nets.actor, batch.next_observations)
            following = torch.minimum(*nets.targets(batch.next_observations, actions))
            wanted = batch.rewards + batch.discounts * (following - alpha * density)
        errors = [value - wanted for value in nets.critics(batch.observations, batch.actions)]
        actions, density = self.policy(nets.actor, batch.observations)
        # The critics say what is better, and do not learn from it.
        fixed = {name: weight.detach() for name, weight in nets.critics.named_parameters()}
        value = torch.minimum(*functional_call(nets.critics, fixed, (batch.observations, actions)))
        actor = (alpha * density - value).mean()
        surplus = (density - self.num_actions).detach().mean()
        temperature = -nets.temperature.log_alpha * surplus
        weights = batch.weights * batch.played if self.args.prioritized else batch.played
        critics = sum((weights * error.square()).mean() for error in errors)
        given = {"loss": critics + actor + temperature, "critics": critics.detach()}
        if self.args.prioritized:
            given["priorities"] = errors[0].detach().abs()
        return given


if __name__ == "__main__":
    sys.exit(train.main(SAC, Args))
