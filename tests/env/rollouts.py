"""Shared by the tests of this folder: small envs, random actions, and everything that a run
returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import cule


def make(
    game: Any = "pong", num_envs: int = 4, device: str = "cpu", **options: Any
) -> cule.AtariEnv:
    defaults = {"num_threads": 1, "reset_pool_size": 6, "translate": False}
    return cule.AtariEnv(game, num_envs, device=device, **(defaults | options))


def actions_of(env: cule.AtariEnv, steps: int, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    shape = (steps, env.num_envs)
    return torch.from_numpy(rng.integers(env.single_action_space.n, size=shape)).to(env.device)


def outputs(env: cule.AtariEnv, results: tuple[Any, ...]) -> list[torch.Tensor]:
    """Copies of everything that a step returned, and of the RAM."""
    obs, reward, terminated, truncated, info = results
    if "final_obs" in info:  # its rows of envs that are not done have no meaning
        over = info["_final_obs"].reshape(-1, *[1] * (info["final_obs"].ndim - 1))
        info = {**info, "final_obs": torch.where(over, info["final_obs"], 0)}
    seen = [
        obs,
        reward,
        terminated,
        truncated,
        *(value for _, value in sorted(info.items())),
        env.get_ram(),
    ]
    return [value.cpu().clone() for value in seen]


def digest(env: cule.AtariEnv, actions: torch.Tensor) -> list[torch.Tensor]:
    """Plays the actions, and returns everything that the steps return."""
    return [value for row in actions for value in outputs(env, env.step(row))]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
