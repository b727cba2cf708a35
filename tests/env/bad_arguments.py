"""Small envs for the tests of wrong arguments."""

from __future__ import annotations

from typing import Any

import cule


def make(game: Any = "pong", num_envs: Any = 2, **options: Any) -> cule.AtariEnv:
    options = {"device": "cpu", "num_threads": 1, "reset_pool_size": 2} | options
    return cule.AtariEnv(game, num_envs, **options)


def started(game: Any = "pong", num_envs: int = 2, **options: Any) -> cule.AtariEnv:
    env = make(game, num_envs, **options)
    env.reset(seed=0)
    return env
