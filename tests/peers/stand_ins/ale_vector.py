"""`cule.AtariEnv` in the place of `ale_py.AtariVectorEnv`, seed for seed: no pool of start
states."""

from __future__ import annotations

from typing import Any

import ale_py
import ale_py.vector_env

import cule


class AtariVectorEnv(cule.AtariEnv):
    """AtariEnv with ale-py's defaults: arrays, on the CPU, every reset emulated."""

    def __init__(self, game: str, num_envs: int = 1, **options: Any):
        own = {"device": "cpu", "output": "numpy", "reset_pool_size": 0, "num_threads": 1}
        super().__init__(game, num_envs, **(own | options))


ale_py.AtariVectorEnv = ale_py.vector_env.AtariVectorEnv = AtariVectorEnv
