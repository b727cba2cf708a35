"""Trainings by stable-baselines3 on any vectorized envs of gymnasium, for two studies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from benchmarks.studies.case import Iterated
from benchmarks.studies.marks import BACKPROPAGATION, INFERENCE, SIMULATION, Mark

_PACKAGE = "stable_baselines3"
_COMMON = f"{_PACKAGE}.common"
_ACTING = (
    Mark(f"{_COMMON}.vec_env.base_vec_env:VecEnv.step", SIMULATION),
    Mark(f"{_COMMON}.policies:ActorCriticPolicy.forward", INFERENCE),
    Mark(f"{_COMMON}.policies:ActorCriticPolicy.predict_values", INFERENCE),
    Mark(f"{_COMMON}.off_policy_algorithm:OffPolicyAlgorithm._sample_action", INFERENCE),
    Mark(f"{_COMMON}.buffers:RolloutBuffer.compute_returns_and_advantage", BACKPROPAGATION),
)


def marks_of(algorithm: str) -> tuple[Mark, ...]:
    """The operations of an algorithm such as "PPO"."""
    where = f"{_PACKAGE}.{algorithm.lower()}.{algorithm.lower()}:{algorithm}"
    return (*_ACTING, Mark(f"{where}.train", BACKPROPAGATION))


def vec_env(envs: gymnasium.vector.VectorEnv) -> Any:
    """A VecEnv of gymnasium's envs that reset in the same step (SAME_STEP), or in the next one.

    stable-baselines3 wants the last observation of an episode. Where the envs do not give it, the
    first one of the next episode stands for it: this is for measuring, not for learning.
    """
    from stable_baselines3.common.vec_env import VecEnv

    class Envs(VecEnv):
        def __init__(self) -> None:
            count, space = envs.num_envs, envs.single_observation_space
            if space.dtype == np.float64:
                space = gymnasium.spaces.Box(-np.inf, np.inf, space.shape, np.float32)
            super().__init__(count, space, envs.single_action_space)

        def reset(self) -> np.ndarray:
            return self._array(envs.reset(seed=0)[0])

        def step_async(self, actions: np.ndarray) -> None:
            self._actions = actions

        def step_wait(self) -> tuple[Any, ...]:
            observations, rewards, terminated, truncated, _ = envs.step(self._actions)
            observations, done = self._array(observations), terminated | truncated
            infos = [
                {"terminal_observation": observations[i]} if done[i] else {}
                for i in range(self.num_envs)
            ]
            return observations, np.asarray(rewards, np.float32), done, infos

        def _array(self, observations: Any) -> np.ndarray:
            return np.array(observations, self.observation_space.dtype)

        def close(self) -> None:
            envs.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(envs, attr_name, None)] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            setattr(envs, attr_name, value)

        def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
            return [getattr(envs, method_name)(*args)] * self.num_envs

        def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
            # No Monitor is needed to measure.
            return [True] * self.num_envs

    return Envs()


def learn(model: Any, iterated: Iterated, steps: int) -> None:
    """Learns for ever.

    Args:
        model: an algorithm of stable-baselines3.
        iterated: called when a rollout ends after at least `steps` steps of all envs.
        steps: of an iteration.
    """
    from stable_baselines3.common.callbacks import BaseCallback

    class Rollouts(BaseCallback):
        last = 0

        def _on_rollout_start(self) -> None:
            if self.num_timesteps >= self.last + steps:
                self.last = self.num_timesteps
                iterated()

        def _on_step(self) -> bool:
            return True

    model.learn(10**12, callback=Rollouts())


def maker(task: str) -> Callable[[int], gymnasium.vector.VectorEnv]:
    """What makes so many of gymnasium's own envs, one after the other in this process."""
    return lambda num_envs: gymnasium.make_vec(task, num_envs, vectorization_mode="sync")
