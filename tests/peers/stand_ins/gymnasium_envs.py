"""cule's envs in the place of gymnasium's CartPole, on which it tests its functions and
wrappers."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.envs import classic_control
from gymnasium.envs.classic_control import cartpole

import cule
from cule.single_env import SingleAtariEnv

OPTIONS: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 2}


class CartPoleVectorEnv(cule.AtariEnv):
    """Envs of Pong, as gymnasium.make_vec makes them from cule's ids, with short episodes, as
    CartPole's are."""

    def __init__(
        self,
        num_envs: int = 1,
        max_episode_steps: int = 20,
        render_mode: str | None = None,
        **options: Any,
    ):
        own = {"device": "cpu", "output": "numpy", "render_mode": render_mode}
        frames = 4 * min(max_episode_steps, 20)
        super().__init__(
            "pong", num_envs, max_num_frames_per_episode=frames, **OPTIONS, **own, **options
        )


class CartPoleEnv(SingleAtariEnv):
    """An env of Pong."""

    def __init__(self, **options: Any):
        super().__init__("pong", max_num_frames_per_episode=80, **OPTIONS, **options)


classic_control.CartPoleEnv = cartpole.CartPoleEnv = CartPoleEnv
cartpole.CartPoleVectorEnv = CartPoleVectorEnv
for name in ("CartPole-v0", "CartPole-v1"):
    spec = gymnasium.registry[name]
    spec.entry_point, spec.vector_entry_point = CartPoleEnv, CartPoleVectorEnv
