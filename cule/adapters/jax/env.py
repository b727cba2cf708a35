"""JAX arrays, exchanged by DLPack: on a GPU nothing passes through the host's memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import torch

from cule.adapters.jax.traced import Traced, plain_seed
from cule.env.keywords import refuse
from cule.env.parts import refuse_objects
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
    """An array's memory as a tensor on the same device.

    On a GPU JAX reuses the memory once nobody has the array, whether torch has read it or not.
    """
    return torch.from_dlpack(array)


class Lent:
    """JAX's arrays that torch's work on a GPU may still read."""

    def __init__(self) -> None:
        self._lent: deque[tuple[torch.cuda.Event, jax.Array]] = deque()

    def add(self, array: jax.Array, device: torch.device) -> None:
        """Keeps an array until the work that has been given to the current stream is done."""
        while self._lent and self._lent[0][0].query():
            self._lent.popleft()
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(device))
        self._lent.append((event, array))


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
        refuse_objects("AtariJaxEnv", options)
        self.env = AtariEnv(game, num_envs, device, output="torch_shared", **options)
        if self.env.device.type == "cuda" and jax.default_backend() != "gpu":
            raise InvalidValue(
                f"expected a JAX with CUDA for envs on {self.env.device}, "
                f"got one for {jax.default_backend()}: install jax[cuda12] or use device='cpu'"
            )
        self._traced: Traced | None = None
        self._lent = Lent()
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
        observations, info = self.env.reset(seed=plain_seed(seed), options=options)
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
        if isinstance(actions, jax.Array) and self.env.device.type == "cuda":
            self._lent.add(actions, self.env.device)
        return (
            to_jax(observations),
            to_jax(rewards),
            to_jax(terminated),
            to_jax(truncated),
            self._info(info),
        )

    def xla(self) -> tuple[jax.Array, Callable[..., Any], Callable[..., Any]]:
        """A handle and two functions for `jax.jit` and `jax.lax.scan`, as in ale-py's `xla`.

        The compiled program steps the envs itself, on the CPU or the GPU: Python has no part in it.
        Each call takes the handle that the call before it has returned, which orders them. The
        first use on a machine compiles a small library, which takes seconds and a C++ compiler. On
        a GPU this call waits until the game is compiled.

        Wait for what a program returns before you call the env from Python.

        Returns:
            The handle, an array that the functions take and return.
            `reset(handle, seed=None, reset_mask=None)`, which gives (handle, (observations, info)).
            `step(handle, actions)`, which gives (handle, (observations, rewards, terminated,
            truncated, info)).

        Raises:
            ValueError: `autoreset_mode` is SAME_STEP, whose steps do not all give the same entries,
                or `render_mode` draws each step.
            RuntimeError: there is no C++ compiler, or it fails.
        """
        if self._traced is None:
            self.env.consoles.check_idle("xla")
            self._traced = Traced(self.env)
        return self._traced.handle(), self._traced.reset, self._traced.step

    def render(self) -> Any:
        """The screens, as AtariEnv's `render` gives them."""
        return self.env.render()

    def get_ram(self) -> jax.Array:
        """(num_envs, 128) uint8: the consoles' RAM."""
        return to_jax(self.env.get_ram())

    def close(self) -> None:
        """Frees the envs. Programs that step them are refused from here on."""
        if self._traced is not None:
            self._traced.close()
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
