"""Shared by the tests of published policies: runs, their folders, and what their policies see."""

from __future__ import annotations

import torch
from training_runs import SMALL

import cule
from cule import train
from cule.train import publish
from examples.a2c_vtrace import train as a2c
from examples.dqn import dqn
from examples.ppo import ppo
from examples.pqn import pqn
from examples.reinforce import reinforce

CPU = torch.device("cpu")
TINY = {name: SMALL[name] for name in (
    "device", "num_envs", "width", "eval_episodes", "num_threads", "max_episode_frames",
    "progress", "logger", "plot",
)}  # fmt: skip
ALGORITHMS = {
    "a2c": (a2c.A2C, a2c.Args, {"num_batches": 2, "num_steps": 4, "warmup_steps": 0}),
    "ppo, lstm": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 32, "model": "lstm"}),
    "ppo, impala": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 32, "model": "impala"}),
    "dqn": (dqn.DQN, dqn.Args, {"memory": 800, "first_update": 80, "minibatch_size": 32}),
    "pqn": (pqn.PQN, pqn.Args, {"num_steps": 8, "minibatch_size": 32, "full_action_space": True}),
    "reinforce": (reinforce.Reinforce, reinforce.Args, {"num_steps": 8}),
}  # fmt: skip


def trained(folder, algorithm, kind, frames=0, **more):
    """Trains; without frames, the policy is that of the first weights."""
    args = kind(folder=folder, game="pong", total_frames=frames, **{**TINY, **more})
    return train.train(algorithm, args)


def run_of_a2c(folder):
    """Trains A2C in a folder, and publishes it in it."""
    algorithm, kind, more = ALGORITHMS["a2c"]
    trained(folder, algorithm, kind, frames=600, **more)
    published(folder)
    return folder


def published(run, **more):
    return publish.publish(publish.Args(run, video=False, **more))


def played(steps=6, envs=5):
    """Observations of a game, and where episodes begin."""
    env = cule.AtariEnv("pong", envs, "cpu", num_threads=1, reset_pool_size=1)
    seen = [env.reset(seed=0)[0]]
    for step in range(steps - 1):
        seen.append(env.step([step % 3] * envs)[0])
    env.close()
    begins = torch.zeros(steps, envs, dtype=torch.bool)
    begins[steps // 2, 1] = begins[steps - 2 :, 3] = True
    return seen, begins
