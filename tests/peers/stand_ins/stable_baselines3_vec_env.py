"""`AtariVecEnv` in the place of stable-baselines3's own VecEnvs; the tests' own envs are
ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stable_baselines3.common import vec_env
from stable_baselines3.common.vec_env import dummy_vec_env, subproc_vec_env

from cule.adapters.stable_baselines3 import AtariVecEnv


class StandIn(AtariVecEnv):
    """As many envs of Pong as the test makes envs."""

    def __init__(self, env_fns: Sequence[Any], start_method: str | None = None):
        options: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 2}
        super().__init__("pong", len(env_fns), "cpu", max_num_frames_per_episode=80, **options)


class DummyVecEnv(StandIn):
    """Replaces the class of this name."""


class SubprocVecEnv(StandIn):
    """Replaces the class of this name."""


vec_env.DummyVecEnv = dummy_vec_env.DummyVecEnv = DummyVecEnv
vec_env.SubprocVecEnv = subproc_vec_env.SubprocVecEnv = SubprocVecEnv
