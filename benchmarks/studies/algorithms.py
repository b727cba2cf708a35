"""Algorithms that learn from their own policy's steps, and others from a memory (section 4.2).

stable-baselines3 has its own settings and one env, as in the paper; cule.train has several games.
An iteration is at least `num_envs * num_steps` steps, with all that is learned meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.studies.baselines import learn, maker, marks_of, vec_env
from benchmarks.studies.case import Case, Iterated, Options
from benchmarks.studies.frameworks import names_of_cule
from cule.train.distributed.process_group import ProcessGroup
from cule.train.trainer import Trainer

ON, OFF = "on-policy", "off-policy"
# The paper's task, where there is MuJoCo.
_MUJOCO = importlib.util.find_spec("mujoco") is not None
CONTINUOUS = "Walker2d-v5" if _MUJOCO else "Pendulum-v1"
_SIMULATORS = ("mujoco",) if _MUJOCO else ("gymnasium.envs.classic_control.pendulum",)
_CARTPOLE = ("gymnasium.envs.classic_control.cartpole",)


def by_stable_baselines3(name: str, policy: str, task: str, simulators: tuple[str, ...]) -> Case:
    """An algorithm of stable-baselines3, with its own settings, on one env."""

    def train(options: Options, iterated: Iterated) -> None:
        import stable_baselines3

        algorithm = getattr(stable_baselines3, name)
        model = algorithm("MlpPolicy", vec_env(maker(task)(1)), device=options.device)
        learn(model, iterated, options.num_envs * options.num_steps)

    says = {"system": "stable-baselines3", "algorithm": name, "policy": policy, "task": task}
    return Case(train, says, marks_of(name), ("stable_baselines3",), simulators)


def by_cule(
    name: str, policy: str, task: str, program: Callable[[], tuple[Any, Any]],
    settings: Callable[[Options], dict[str, Any]], simulators: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    """An algorithm on cule.train.

    Args:
        name: of the algorithm.
        policy: ON or OFF.
        task: a game, or a task of gymnasium.
        program: imports its class and its settings' class.
        settings: gives those that differ from the program's own.
        simulators: see Case.boundaries.
    """

    def train(options: Options, iterated: Iterated) -> None:
        algorithm, args = program()
        device = torch.device(options.device)
        made = args(
            device=options.device, num_envs=options.num_envs, bf16=False, total_frames=10**12,
            num_threads=1, **settings(options),
        ).on(device)  # fmt: skip
        steps = options.num_envs * options.num_steps
        with contextlib.closing(Trainer(algorithm, made, ProcessGroup(0, 1, device))) as trainer:
            reached = 0
            while True:
                trainer.iterate()
                if trainer.frames >= reached + 4 * steps:  # a step is four frames
                    reached = trainer.frames
                    iterated()

    says = {"system": "cule.train", "algorithm": name, "policy": policy, "task": task}
    return Case(train, says, boundaries=simulators, names=names_of_cule)


def _a2c() -> tuple[Any, Any]:
    from examples.a2c_vtrace import train

    return train.A2C, train.Args


def _ppo() -> tuple[Any, Any]:
    from examples.ppo import ppo

    return ppo.PPO, ppo.Args


def _dqn() -> tuple[Any, Any]:
    from examples.dqn import dqn

    return dqn.DQN, dqn.Args


def _sac() -> tuple[Any, Any]:
    from tests.train import continuous

    return continuous.SAC, continuous.Args


def _of_a2c(options: Options) -> dict[str, Any]:
    return {
        "num_batches": 1, "num_steps": 5, "steps_per_update": 5, "warmup_steps": 0,
    }  # fmt: skip


def _of_ppo(options: Options) -> dict[str, Any]:
    steps = options.num_envs * options.num_steps
    return {"num_steps": options.num_steps, "minibatch_size": steps // options.minibatches}


def _of_dqn(options: Options) -> dict[str, Any]:
    return {"memory": 10_000, "first_update": 8 * options.num_envs}


ALGORITHMS = (
    *(by_stable_baselines3(name, policy, task, simulators) for name, policy, task, simulators in (
        ("A2C", ON, CONTINUOUS, _SIMULATORS), ("PPO", ON, CONTINUOUS, _SIMULATORS),
        ("SAC", OFF, CONTINUOUS, _SIMULATORS), ("TD3", OFF, CONTINUOUS, _SIMULATORS),
        ("DDPG", OFF, CONTINUOUS, _SIMULATORS), ("DQN", OFF, "CartPole-v1", _CARTPOLE),
    )),
    by_cule("A2C", ON, "pong", _a2c, _of_a2c),
    by_cule("PPO", ON, "pong", _ppo, _of_ppo),
    by_cule("DQN", OFF, "pong", _dqn, _of_dqn),
    by_cule("SAC", OFF, "Pendulum-v1", _sac, lambda options: {},
            ("gymnasium.envs.classic_control.pendulum",)),
)  # fmt: skip
CASES = {f"{case.says['system']}, {case.says['algorithm']}": case for case in ALGORITHMS}
