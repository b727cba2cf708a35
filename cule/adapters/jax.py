"""JAX arrays, handed over by DLPack: on a GPU nothing passes through the host's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import torch

from cule.adapters.keywords import refuse
from cule.vector_env import AtariEnv

_RESERVED = {"output": "it gives JAX arrays"}


def to_jax(tensor: torch.Tensor) -> jax.Array:
    """A copy of a tensor as an array on the same device. JAX takes its arrays for constant; cule's tensors are not."""
    return jax.dlpack.from_dlpack(tensor.clone())


def to_torch(array: jax.Array) -> torch.Tensor:
    """An array's memory as a tensor on the same device."""
    return torch.from_dlpack(array)


class AtariJaxEnv:
    """Atari 2600 games with JAX arrays in and out. `reset` and `step` are called from Python, not traced.

    Args:
        game: as AtariEnv's.
        num_envs: how many consoles.
        device: as AtariEnv's.
        **options: AtariEnv's other keywords, but for output.

    Raises:
        TypeError, ValueError: as AtariEnv's; or JAX does not have the device.
    """

    def __init__(
        self, game: str | Sequence[str], num_envs: int, device: str | torch.device | None = None, **options: Any
    ):
        refuse("AtariJaxEnv", options, _RESERVED)
        self.env = AtariEnv(game, num_envs, device, **options)
        if self.env.device.type == "cuda" and jax.default_backend() != "gpu":
            raise ValueError(
                f"expected a JAX with CUDA for envs on {self.env.device}, got one for {jax.default_backend()}: "
                "install jax[cuda12] or use device='cpu'"
            )
        self.num_envs = num_envs
        self.single_observation_space = self.env.single_observation_space
        self.single_action_space = self.env.single_action_space

    @staticmethod
    def _info(info: dict[str, torch.Tensor]) -> dict[str, jax.Array]:
        return {key: to_jax(value) for key, value in info.items() if key == "_final_obs" or not key.startswith("_")}

    def reset(self, seed: int | None = None) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Starts new episodes: observations, (num_envs, stack_num, img_height, img_width) uint8, and the info."""
        observations, info = self.env.reset(seed=seed)
        return to_jax(observations), self._info(info)

    def step(
        self, actions: jax.Array | np.ndarray | Sequence[Any]
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Plays a step with (num_envs,) integers of any width: a JAX array on the env's device, an array or a list.

        Returns:
            Observations, rewards int32, terminated, truncated, and the info.

        Raises:
            TypeError, ValueError: the actions' dtype, shape, device or range is not as AtariEnv's `step` has it.
        """
        played = to_torch(actions) if isinstance(actions, jax.Array) else actions
        observations, rewards, terminated, truncated, info = self.env.step(played)
        return to_jax(observations), to_jax(rewards), to_jax(terminated), to_jax(truncated), self._info(info)

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()
