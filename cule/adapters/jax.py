"""JAX arrays, exchanged by DLPack: on a GPU nothing passes through the host's memory.

`AtariJaxEnv` is called from Python; `AtariJaxEnv.xla` gives functions that `jax.jit` and
`jax.lax.scan` take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from jax.experimental import io_callback

from cule.arguments import array, unmasked
from cule.env.keywords import refuse
from cule.errors import InvalidType, InvalidValue
from cule.vector_env import AtariEnv

_RESERVED = {
    "batch_size": "it steps all envs",
    "num_players": "it has one player",
    "output": "it gives JAX arrays",
    "sound_obs": "its observations have no sound",
}


def to_jax(tensor: torch.Tensor) -> jax.Array:
    """A copy of a tensor as an array on the same device.

    JAX assumes that arrays do not change; the env overwrites its own tensors.
    """
    return jax.dlpack.from_dlpack(tensor.clone())


def to_torch(array: jax.Array) -> torch.Tensor:
    """An array's memory as a tensor on the same device."""
    return torch.from_dlpack(array)


def _plain_seed(seed: Any) -> Any:
    """A seed as AtariEnv takes it: in JAX and numpy a single number may be an array."""
    if not isinstance(seed, (jax.Array, np.ndarray)):
        return seed
    plain = array("seed", seed)
    return plain if plain.ndim else plain.item()


def _refuse_tracing(what: str, *values: Any) -> None:
    """Checks that JAX traces none of the values, as it does in jax.jit, jax.vmap and jax.lax.scan.

    Raises:
        TypeError: it traces one.
    """
    if any(isinstance(value, jax.core.Tracer) for value in values):
        raise InvalidType(
            f"expected {what}() to be called from Python, got a call that JAX is tracing: "
            "call it outside jax.jit, or use the functions of AtariJaxEnv.xla() there"
        )


class AtariJaxEnv:
    """Atari 2600 games with JAX arrays in and out.

    `reset` and `step` are called from Python, not traced; `xla` gives functions that are traced.

    Args:
        game: as AtariEnv's.
        num_envs: how many consoles.
        device: as AtariEnv's.
        **options: AtariEnv's other keywords, except batch_size, num_players, output and sound_obs.

    Attributes:
        env: the AtariEnv.
        observation_space, action_space: of all envs.
        single_observation_space, single_action_space: of one.

    Raises:
        TypeError, ValueError: as AtariEnv's; or JAX does not have the device.
    """

    def __init__(
        self,
        game: str | Sequence[str],
        num_envs: int,
        device: str | torch.device | None = None,
        **options: Any,
    ):
        refuse("AtariJaxEnv", options, _RESERVED)
        self.env = AtariEnv(game, num_envs, device, output="torch_shared", **options)
        if self.env.device.type == "cuda" and jax.default_backend() != "gpu":
            raise InvalidValue(
                f"expected a JAX with CUDA for envs on {self.env.device}, "
                f"got one for {jax.default_backend()}: install jax[cuda12] or use device='cpu'"
            )
        self.num_envs = num_envs
        self.single_observation_space = self.env.single_observation_space
        self.single_action_space = self.env.single_action_space

    @property
    def observation_space(self) -> gymnasium.Space:
        """(num_envs, *single_observation_space.shape) uint8."""
        return self.env.observation_space

    @property
    def action_space(self) -> gymnasium.Space:
        """`single_action_space` for each env."""
        return self.env.action_space

    @property
    def action_meanings(self) -> list[str]:
        """The names of the actions, in the order of the action space."""
        return self.env.action_meanings

    @staticmethod
    def _info(info: dict[str, torch.Tensor]) -> dict[str, jax.Array]:
        return {
            key: to_jax(value)
            for key, value in info.items()
            if key == "_final_obs" or not key.startswith("_")
        }

    def reset(
        self,
        seed: int | Sequence[int] | np.ndarray | jax.Array | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Starts new episodes.

        Args:
            seed: as AtariEnv's.
            options: as AtariEnv's: `reset_mask`, (num_envs,) bool, which may be a JAX array.

        Returns:
            Observations, (num_envs, stack_num, img_height, img_width) uint8, and the info.

        Raises:
            TypeError, ValueError: as AtariEnv's; or JAX is tracing the call.
        """
        # In jax.jit new arrays are traced, too. Without the last argument, a reset without
        # arguments would pass here, and be played once, at compile time.
        mask = (options or {}).get("reset_mask") if isinstance(options, dict) else None
        _refuse_tracing("reset", seed, mask, jnp.zeros(()))
        if isinstance(mask, jax.Array):
            options = {**(options or {}), "reset_mask": np.asarray(mask)}
        observations, info = self.env.reset(seed=_plain_seed(seed), options=options)
        return to_jax(observations), self._info(info)

    def step(
        self, actions: jax.Array | np.ndarray | Sequence[Any]
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Plays a step.

        Args:
            actions: (num_envs,) integers of any width: a JAX array on the env's device, an array or
                a list.

        Returns:
            Observations, rewards int32, terminated, truncated, and the info.

        Raises:
            TypeError, ValueError: the actions' dtype, shape, device or range is not as in
                AtariEnv.step; or JAX is tracing the call.
        """
        _refuse_tracing("step", actions)
        played = to_torch(actions) if isinstance(actions, jax.Array) else actions
        observations, rewards, terminated, truncated, info = self.env.step(played)
        return (
            to_jax(observations),
            to_jax(rewards),
            to_jax(terminated),
            to_jax(truncated),
            self._info(info),
        )

    def xla(self) -> tuple[jax.Array, Callable[..., Any], Callable[..., Any]]:
        """A handle and two functions for `jax.jit` and `jax.lax.scan`, as in ale-py's `xla`.

        The compiled program calls the env, in order, by `jax.experimental.io_callback`, which
        `jax.vmap` and `jax.grad` do not support.

        Returns:
            The handle, an array that the functions take and return.
            `reset(handle, seed=None, reset_mask=None)`, which gives (handle, (observations, info)).
            `step(handle, actions)`, which gives (handle, (observations, rewards, terminated,
            truncated, info)).

        Raises:
            ValueError: the envs are on a GPU, from which JAX cannot call back; or `autoreset_mode`
                is SAME_STEP, whose steps do not all give the same entries.
        """
        if self.env.device.type != "cpu":
            raise InvalidValue(
                f"expected envs on the CPU for xla(), got {self.env.device}: "
                "call step() outside jax.jit"
            )
        if self.env.autoreset_mode == AutoresetMode.SAME_STEP:
            raise InvalidValue(
                "expected autoreset_mode NEXT_STEP or DISABLED for xla(), got SAME_STEP"
            )
        return jnp.zeros(1, jnp.uint8), self._traced_reset, self._traced_step

    def _shapes(self, stepped: bool) -> tuple[Any, ...]:
        """The shapes and dtypes that a traced reset or step returns."""

        def each(dtype: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((self.num_envs,), dtype)

        observations = jax.ShapeDtypeStruct(
            (self.num_envs, *self.single_observation_space.shape), jnp.uint8
        )
        numbers = ["env_id", "lives", "frame_number", "episode_frame_number", "fault"]
        info = {name: each(jnp.int32) for name in numbers + ["raw_reward"] * stepped}
        info |= {name: each(jnp.bool_) for name in ("game_over", "new_game")}
        if stepped:
            return observations, each(jnp.int32), each(jnp.bool_), each(jnp.bool_), info
        return observations, info

    def _fresh(self, result: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results as arrays that the next call does not overwrite."""
        *tensors, info = result
        kept = {key: value.numpy().copy() for key, value in info.items() if not key.startswith("_")}
        return (*(tensor.numpy().copy() for tensor in tensors), kept)

    def _traced_reset(
        self, handle: jax.Array, seed: Any = None, reset_mask: Any = None
    ) -> tuple[jax.Array, Any]:
        def play(seed: Any, mask: Any) -> tuple[Any, ...]:
            options = None if mask is None else {"reset_mask": np.asarray(mask)}
            return self._fresh(self.env.reset(seed=_plain_seed(seed), options=options))

        return handle, io_callback(play, self._shapes(False), seed, reset_mask, ordered=True)

    def _traced_step(self, handle: jax.Array, actions: Any) -> tuple[jax.Array, Any]:
        unmasked("actions", actions)

        def play(actions: Any) -> tuple[Any, ...]:
            return self._fresh(self.env.step(np.asarray(actions)))

        return handle, io_callback(play, self._shapes(True), jnp.asarray(actions), ordered=True)

    def render(self) -> Any:
        """The screens, as AtariEnv's `render` gives them."""
        return self.env.render()

    def get_ram(self) -> jax.Array:
        """(num_envs, 128) uint8: the consoles' RAM."""
        return to_jax(self.env.get_ram())

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()

    def __enter__(self) -> AtariJaxEnv:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
