"""Self-play in many processes, as Minigo trains: workers, a trainer and an evaluator.

Pong stands for Go: each worker plays some games against itself, the second player sees the mirror
image. From these games the trainer makes a candidate. The evaluator lets it play against the
present policy, and the better one plays on. Each role has a process of its own, all on one device.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import torch

import cule
from benchmarks.peers.setting import Policy, Setting
from benchmarks.studies.case import Options
from benchmarks.studies.marks import BACKPROPAGATION, INFERENCE, SIMULATION
from cule import scope

SELF_PLAY, UPDATES, EVALUATION = "self-play", "SGD updates", "evaluation"
NUM_ACTIONS = 18  # of both joysticks
Weights = dict[str, torch.Tensor]
# Observations (steps, 2 * num_envs, 4, 84, 84) uint8, actions and returns (steps, 2 * num_envs).
Games = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def policy_of(options: Options) -> Policy:
    """A policy on the study's device."""
    return Policy(Setting(device=options.device, width=0.5), NUM_ACTIONS).to(options.device)


class Table:
    """Games of Pong that two policies play against each other.

    Args:
        options: of the study.
        seed: of the first game.
    """

    def __init__(self, options: Options, seed: int):
        self.env = cule.AtariEnv(
            "pong", options.num_envs, options.device, full_action_space=True, num_threads=1
        )
        self.pictures, _ = self.env.reset(seed=seed)

    def views(self) -> torch.Tensor:
        """What the first players see, then what the second ones see."""
        return torch.cat([self.pictures, self.pictures.flip(-1)])

    def play(self, act: Callable[[torch.Tensor], torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Plays a step; returns the views, the actions, and the first players' rewards."""
        with scope.operation(INFERENCE), torch.no_grad():
            views = self.views()
            actions = act(views)
        with scope.operation(SIMULATION):
            first, second = actions.chunk(2)
            self.pictures, rewards, *_ = self.env.step(first, player_b_actions=second)
        return views, actions, rewards.float()


def sampled(policy: Policy, views: torch.Tensor) -> torch.Tensor:
    """Actions of a policy, (n,) int64."""
    return torch.distributions.Categorical(logits=policy(views)[0]).sample()


def worker(options: Options, number: int, pipe: Connection) -> None:
    """Plays against itself whenever it gets weights."""
    policy, table = policy_of(options), Table(options, 1000 * number)
    for weights in received(pipe):
        policy.load_state_dict(weights)
        steps = [table.play(lambda views: sampled(policy, views)) for _ in range(options.num_steps)]
        returns, later = [], torch.zeros_like(steps[0][2])
        for *_, rewards in reversed(steps):
            later = rewards + 0.99 * later
            returns.append(torch.cat([later, -later]))
        views, actions = (torch.stack([step[i] for step in steps]) for i in (0, 1))
        pipe.send([one.cpu() for one in (views, actions, torch.stack(returns[::-1]))])


def trainer(options: Options, number: int, pipe: Connection) -> None:
    """Makes a candidate from the workers' games."""
    policy = policy_of(options)
    optimizer = torch.optim.Adam(policy.parameters(), lr=2.5e-4)
    for weights, games in received(pipe):
        policy.load_state_dict(weights)
        with scope.operation(BACKPROPAGATION):
            views, actions, returns = (
                torch.cat([game[i].flatten(0, 1) for game in games]).to(options.device)
                for i in range(3)
            )
            parts = options.minibatches * len(games)
            for part in torch.randperm(len(views), device=options.device).chunk(parts):
                logits, values = policy(views[part])
                better = returns[part] - values[:, 0]
                chances = torch.distributions.Categorical(logits=logits).log_prob(actions[part])
                loss = better.square().mean() - (chances * better.detach()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        pipe.send(weights_of(policy))


def evaluator(options: Options, number: int, pipe: Connection) -> None:
    """Lets a candidate play against the present policy; sends its score."""
    present, candidate, table = policy_of(options), policy_of(options), Table(options, 10**6)
    for one, other in received(pipe):
        present.load_state_dict(one)
        candidate.load_state_dict(other)

        def act(views: torch.Tensor) -> torch.Tensor:
            first, second = views.chunk(2)
            return torch.cat([sampled(candidate, first), sampled(present, second)])

        rewards = [table.play(act)[2].sum() for _ in range(options.num_steps)]
        pipe.send(float(torch.stack(rewards).sum()))


def weights_of(policy: Policy) -> Weights:
    """A policy's weights, on the host."""
    return {name: weight.cpu() for name, weight in policy.state_dict().items()}


def received(pipe: Connection) -> Iterator[Any]:
    """What comes through a pipe, until its other end is closed."""
    while True:
        try:
            yield pipe.recv()
        except EOFError:
            return


def begin(role: Callable[..., None], options: Options, number: int, pipe: Connection) -> None:
    """The main function of a process: first says that it is ready."""
    torch.set_num_threads(1)
    pipe.send(None)
    role(options, number, pipe)


@contextmanager
def process(role: Callable[..., None], options: Options, number: int = 0) -> Iterator[Connection]:
    """Runs a role in a process of its own; gives the pipe to it."""
    context = multiprocessing.get_context("spawn")
    pipe, its = context.Pipe()
    name = f"{role.__name__} {number}" if role is worker else role.__name__
    child = context.Process(target=begin, args=(role, options, number, its), name=name)
    child.start()
    its.close()
    try:
        yield pipe
    finally:
        pipe.close()
        child.join(30)
        if child.is_alive():
            child.kill()
            child.join()


def generation(present: Weights, workers: list[Connection], others: list[Connection]) -> Weights:
    """One generation: the weights of the better of two policies.

    Args:
        present: the policy's weights.
        workers: pipes to the workers.
        others: pipes to the trainer and the evaluator.
    """
    learns, judges = others
    with scope.operation(SELF_PLAY):
        for pipe in workers:
            pipe.send(present)
        games = [pipe.recv() for pipe in workers]
    with scope.operation(UPDATES):
        learns.send((present, games))
        candidate: Weights = learns.recv()
    with scope.operation(EVALUATION):
        judges.send((present, candidate))
        return candidate if judges.recv() >= 0 else present
