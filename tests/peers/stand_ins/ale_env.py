"""cule's single env in the place of `ale_py.env.AtariEnv`, with that one's defaults."""

from __future__ import annotations

from typing import Any

import ale_py.env

from cule.single_env import SingleAtariEnv

DEFAULTS: dict[str, Any] = {
    "obs_type": "rgb",
    "repeat_action_probability": 0.25,
    "reward_clipping": False,
    "noop_max": 0,
    "use_fire_reset": False,
    "reset_pool_size": 0,
    "num_threads": 1,
}


class AtariEnv(SingleAtariEnv):
    """The single env, as ale-py's ids make it."""

    def __init__(self, game: str = "pong", **options: Any):
        super().__init__(game, **(DEFAULTS | options))


ale_py.env.AtariEnv = AtariEnv
