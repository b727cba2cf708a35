"""EnvPool 0.x: `from cule.adapters import envpool_v0 as envpool` in CleanRL's scripts.

It behaves as EnvPool 0.8.4 with a gym older than 0.26: with env_type="gym", `reset` returns
observations only, and `step` four values. Everything else is as in `cule.adapters.envpool`.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

import numpy as np

from cule.adapters.envpool import EnvPool, list_all_envs
from cule.adapters.envpool_rows import Rows
from cule.adapters.envpool_spec import EnvSpec, make_spec
from cule.errors import InvalidValue, shown

__all__ = [
    "EnvPool",
    "EnvSpec",
    "GymEnvPool",
    "list_all_envs",
    "make",
    "make_gym",
    "make_gymnasium",
    "make_spec",
]


class GymEnvPool(EnvPool):
    """A batch of envs with gym's old interface: four values. Made by `make` with env_type="gym"."""

    def _make_spaces(self) -> None:
        """Makes gym's spaces if gym has been imported, as scripts may check for them."""
        super()._make_spaces()
        gym = sys.modules.get("gym")
        if gym is not None:
            box, count = self.spec.observation_space, int(self.spec.action_space.n)
            self.observation_space = gym.spaces.Box(0, 255, box.shape, np.uint8)
            self.action_space = gym.spaces.Discrete(count)
            self.single_observation_space = self.observation_space
            self.single_action_space = self.action_space

    def _info(self, rows: Rows, over: np.ndarray) -> dict[str, Any]:
        return {key: value for key, value in super()._info(rows, over).items() if key != "ram"}

    def _reset_result(self, observations: np.ndarray, info: dict[str, Any]) -> Any:
        return (observations, info) if self.config["gym_reset_return_info"] else observations

    def _step_result(
        self,
        observations: np.ndarray,
        rewards: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        info: dict[str, Any],
    ) -> tuple[Any, ...]:
        info["TimeLimit.truncated"] = truncated
        return observations, rewards, terminated | truncated, info


def make(task_id: str, env_type: Literal["gym", "gymnasium"] = "gym", **options: Any) -> EnvPool:
    """An EnvPool of Atari games, as in EnvPool 0.8.4.

    `cule.adapters.envpool.make` lists the differences. `mode` and `difficulty` are EnvPool 1.x's.

    Args:
        task_id: "Pong-v5" or another name that AtariEnv knows.
        env_type: "gym": `reset` returns observations, and with `gym_reset_return_info=True` an
            info, too; `step` returns observations, rewards, done and an info, which has
            "TimeLimit.truncated" and no "ram". "gymnasium": two and five values.
        **options: as in `cule.adapters.envpool.make`.

    Raises:
        TypeError, ValueError: a keyword is unknown, or its value is wrong.
    """
    if env_type not in ("gym", "gymnasium"):
        raise InvalidValue(f"expected env_type to be 'gym' or 'gymnasium', got {shown(env_type)}")
    if env_type == "gymnasium":
        return EnvPool(make_spec(task_id, **options))
    return GymEnvPool(make_spec(task_id, **({"gym_reset_return_info": False} | options)))


def make_gym(task_id: str, **options: Any) -> EnvPool:
    """`make` with env_type="gym"."""
    return make(task_id, "gym", **options)


def make_gymnasium(task_id: str, **options: Any) -> EnvPool:
    """`make` with env_type="gymnasium"."""
    return make(task_id, "gymnasium", **options)
