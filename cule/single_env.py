"""One console as a gymnasium.Env, for tools that take no vector environments: gymnasium.make("cule/Pong-v5")."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from cule.adapters.keywords import refuse
from cule.vector_env import AtariEnv

_RESERVED = {
    "num_envs": "it has one console",
    "output": "it gives arrays",
    "autoreset_mode": "whoever plays it resets it",
}


class SingleAtariEnv(gymnasium.Env):
    """One Atari 2600 console.

    Args:
        game: as AtariEnv's.
        device: as AtariEnv's; the CPU, where a single console is fastest, unless another is named.
        render_mode: None, or "rgb_array": `render` gives (height, 320, 3) uint8.
        **options: AtariEnv's other keywords, but for num_envs, output and autoreset_mode.

    Raises:
        TypeError, ValueError: as AtariEnv's.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(
        self, game: str, device: str = "cpu", *, render_mode: Literal["rgb_array"] | None = None, **options: Any
    ):
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"expected render_mode to be None or 'rgb_array', got {render_mode!r}")
        refuse("SingleAtariEnv", options, _RESERVED)
        self.render_mode = render_mode
        self.env = AtariEnv(
            game, 1, device, output="numpy", autoreset_mode=AutoresetMode.DISABLED, render_mode="rgb_array", **options
        )
        self.observation_space = self.env.single_observation_space
        self.action_space = self.env.single_action_space

    @staticmethod
    def _info(infos: dict[str, np.ndarray]) -> dict[str, int]:
        return {key: int(value[0]) for key, value in infos.items() if not key.startswith("_")}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode: the observation, (stack_num, img_height, img_width) uint8, and a dict of numbers."""
        super().reset(seed=seed)
        observations, infos = self.env.reset(seed=seed)
        return observations[0], self._info(infos)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Plays `frameskip` frames."""
        observations, rewards, terminated, truncated, infos = self.env.step(np.asarray(action)[None])
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), self._info(infos)

    def render(self) -> np.ndarray | None:
        """(height, 320, 3) uint8 where `render_mode` asks for it."""
        return self.env.render()[0] if self.render_mode else None

    def close(self) -> None:
        """Frees the console."""
        self.env.close()
