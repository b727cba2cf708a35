"""Envs that have been played a little, for tests of states."""

from __future__ import annotations

from typing import Any

import torch

import cule


def started(
    game: Any = "breakout", num_envs: int = 2, device: str = "cpu", **options: Any
) -> cule.AtariEnv:
    env = cule.AtariEnv(
        game, num_envs, device=device, num_threads=1, **({"reset_pool_size": 2} | options)
    )
    env.reset(seed=0)
    return env


def play(env: cule.AtariEnv, steps: int) -> torch.Tensor:
    still = torch.ones(env.num_envs, dtype=torch.int64, device=env.device)
    return torch.stack([env.step(still)[0].cpu().clone() for _ in range(steps)])
