"""The functions of `AtariJaxEnv.xla`, which `jax.jit` and `jax.lax.scan` trace."""

from __future__ import annotations

import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from cule import _core, arguments
from cule.adapters.jax.handler import call_port, register
from cule.errors import InvalidType, InvalidValue
from cule.facts.actions import ContinuousActions, check_numbers
from cule.vector_env import AtariEnv

# The entries of the info, by the names of the batch's arrays.
_ENTRIES = {
    "lives": "lives", "frame_number": "frame_numbers",
    "episode_frame_number": "episode_frame_numbers", "fault": "faults", "game_over": "over",
    "new_game": "began",
}  # fmt: skip
_OF_STEPS = {
    "raw_reward": "raw_rewards", "played_action": "played", "repeated_frames": "repeated",
}  # fmt: skip
# The high half of a negative number.
_ONES = np.uint32(0xFFFFFFFF)
_BITS = ("terminated", "truncated", "over", "began")


def device_number(device: torch.device) -> int:
    """A GPU's number; -1: the CPU."""
    return device.index if device.type == "cuda" else -1


def _is_of_jax(values: Any) -> bool:
    """Whether values are JAX's, be they traced or not, or a list has some that are."""
    if isinstance(values, (list, tuple)):
        return any(map(_is_of_jax, values))
    return isinstance(values, jax.Array)


def as_array(name: str, values: Any) -> jax.Array | np.ndarray:
    """Numbers as an array: JAX's are one of its own, and others, which may be too wide, numpy's.

    Raises:
        TypeError, ValueError: they are not numbers.
    """
    return jnp.asarray(values) if _is_of_jax(values) else arguments.array(name, values)


def as_int32(actions: jax.Array | np.ndarray) -> jax.Array:
    """Action numbers as int32. Those that do not fit become the nearest that does."""
    if actions.dtype in (jnp.int64, jnp.uint32, jnp.uint64):
        most = np.iinfo(np.int32).max
        least = -1 if jnp.issubdtype(actions.dtype, jnp.signedinteger) else 0
        actions = actions.clip(least, most)
    return jnp.asarray(actions.astype(np.int32))


def plain_seed(seed: Any) -> Any:
    """A seed as AtariEnv takes it: in JAX and numpy a single number may be an array."""
    if not isinstance(seed, (jax.Array, np.ndarray)):
        return seed
    plain = arguments.array("seed", seed)
    return plain if plain.ndim else plain.item()


def _halves(given: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The low and high halves of 64-bit seeds, uint32; JAX may have no wider integers."""
    if not jnp.issubdtype(given.dtype, jnp.integer):
        raise InvalidType(f"expected seed to be an integer or one for each env, got {given.dtype}")
    if given.dtype.itemsize == 8:
        low = (given & 0xFFFFFFFF).astype(jnp.uint32)
        return low, (given >> 32).astype(jnp.uint32)
    wide = given.astype(jnp.int32) if jnp.issubdtype(given.dtype, jnp.signedinteger) else given
    return wide.astype(jnp.uint32), jnp.where(given < 0, _ONES, jnp.uint32(0))


def _seeds(seed: Any, mask: jax.Array | None, num_envs: int) -> jax.Array:
    """(num_envs, 2) uint32: each env's seed, low half first, as AtariEnv.reset gives them out."""
    of_jax = _is_of_jax(seed)
    given = jnp.asarray(seed) if of_jax else plain_seed(seed)
    if mask is not None and np.ndim(given):
        raise InvalidValue(
            "expected one number as the seed of a traced reset with a reset_mask, got an array "
            f"of shape {np.shape(given)}"
        )
    if not of_jax:
        # How many envs the mask chooses may not be known yet.
        plain = arguments.seeds(given, None, 1 if mask is not None else num_envs).numpy()
        pairs = jnp.asarray(plain.view(np.uint32).reshape(-1, 2))
        if mask is None:
            return pairs
        low, high = pairs[0]
    else:
        low, high = _halves(given)
    if low.ndim:
        if low.shape != (num_envs,):
            raise InvalidValue(
                f"expected seed to have one integer for each of the {num_envs} envs that are "
                f"reset, got {low.dtype} of shape {low.shape}"
            )
        return jnp.stack([low, high], -1)
    # Only the envs that are reset count.
    chosen = jnp.ones(num_envs, jnp.bool_) if mask is None else mask
    offsets = (jnp.cumsum(chosen.astype(jnp.int32)) - 1).astype(jnp.uint32)
    lows = low + jnp.where(chosen, offsets, 0)
    return jnp.stack([lows, high + (lows < low).astype(jnp.uint32)], -1)


class Traced:
    """An env's port for compiled programs, and the functions that call it.

    Args:
        env: the env, on whose device programs have to run.

    Raises:
        ValueError: the env's options need Python in each step.
        RuntimeError: there is no C++ compiler, or it fails.
    """

    def __init__(self, env: AtariEnv):
        if env.autoreset_mode == AutoresetMode.SAME_STEP:
            raise InvalidValue(
                "expected autoreset_mode NEXT_STEP or DISABLED for xla(), got SAME_STEP"
            )
        if env.render_mode in ("human", "rgb_array_list"):
            raise InvalidValue(
                "expected render_mode None, 'mosaic' or 'rgb_array' for xla(), as compiled "
                f"programs draw nothing, got {env.render_mode!r}"
            )
        register()
        env.wait_until_translated()
        self._env, engine = env, env.engine
        self._continuous = (
            ContinuousActions(env.continuous_action_threshold, torch.device("cpu"))
            if env.continuous
            else None
        )
        self._arrays = engine.batch.arrays(True, engine.runs_on_gpu)
        observed = "ram" if env.obs_type == "ram" else "observations"
        self._infos = dict(_ENTRIES)
        self._step_infos = _ENTRIES | {
            key: name for key, name in _OF_STEPS.items() if name in engine.tensors
        }
        self._reset_out = [observed, *self._infos.values()]
        self._step_out = [
            observed,
            "rewards",
            "terminated",
            "truncated",
            *self._step_infos.values(),
        ]
        self._shapes = {
            name: jax.ShapeDtypeStruct(engine.tensors[name].shape, self._dtype(name))
            for name in {*self._reset_out, *self._step_out}
        }
        # Those of a reset without seeds, if it is the first.
        first = arguments.seeds(env.consoles.first_seed(), None, env.num_envs).to(env.device)
        inputs = ["actions", *["strengths"] * env.continuous]
        self._port = _core.Port(
            engine.backend, engine.batch, env.consoles.guard, inputs, self._reset_out,
            self._step_out, False, device_number(env.device),
            0 if env.continuous else len(env.consoles.action_numbers), first.data_ptr(),
        )  # fmt: skip
        # The envs' memory may be freed, or the process end, while a program runs. Until then the
        # port reads the seeds' memory, which outlives this object.
        weakref.finalize(engine, close_port, self._port, env.device, first)

    def _dtype(self, name: str) -> Any:
        return jnp.bool_ if name in _BITS else jnp.dtype(self._arrays[name][0])

    def _call(
        self, handle: jax.Array, given: list[jax.Array], out: list[str], **attributes: bool
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Calls the port. Returns the handle, and the arrays `out` by their names."""
        shapes = [jax.ShapeDtypeStruct((1,), jnp.uint32), *(self._shapes[name] for name in out)]
        handle, *arrays = call_port(
            self._port.number, [handle, *given], shapes, {0: 0}, has_side_effect=True,
            vmap_method="broadcast_all", **attributes,
        )  # fmt: skip
        return handle, dict(zip(out, arrays, strict=True))

    def _info(self, arrays: dict[str, jax.Array], entries: dict[str, str]) -> dict[str, jax.Array]:
        ids = jnp.arange(self._env.num_envs, dtype=jnp.int32)
        return {"env_id": ids, **{key: arrays[name] for key, name in entries.items()}}

    def close(self) -> None:
        """Refuses later calls, and waits for one that is being played."""
        close_port(self._port, self._env.device)

    def handle(self) -> jax.Array:
        """A handle for the first call of a program."""
        return jnp.zeros(1, jnp.uint32)

    def reset(
        self, handle: jax.Array, seed: Any = None, reset_mask: Any = None
    ) -> tuple[jax.Array, Any]:
        """As AtariJaxEnv.xla says."""
        given, count = [], self._env.num_envs
        arguments.unmasked("reset_mask", reset_mask)
        mask = None if reset_mask is None else jnp.asarray(reset_mask)
        if mask is not None and (mask.shape != (count,) or mask.dtype != jnp.bool_):
            raise InvalidValue(
                f"expected reset_mask to be ({count},) bool, got {mask.dtype} of shape {mask.shape}"
            )
        if seed is not None:
            given.append(_seeds(seed, mask, count))
        if mask is not None:
            given.append(mask)
        handle, arrays = self._call(
            handle, given, self._reset_out, seeds=seed is not None, masks=mask is not None
        )
        return handle, (arrays[self._reset_out[0]], self._info(arrays, self._infos))

    def step(self, handle: jax.Array, actions: Any) -> tuple[jax.Array, Any]:
        """As AtariJaxEnv.xla says."""
        handle, arrays = self._call(handle, self._inputs(actions), self._step_out, steps=True)
        observed, *others = self._step_out[:4]
        info = self._info(arrays, self._step_infos)
        return handle, (arrays[observed], *(arrays[name] for name in others), info)

    def _inputs(self, values: Any) -> list[jax.Array]:
        """The port's inputs for these actions."""
        count, actions = self._env.num_envs, as_array("actions", values)
        if self._continuous is not None:
            return self._translated(actions, self._continuous)
        if not jnp.issubdtype(actions.dtype, jnp.integer):
            raise InvalidType(f"expected actions to be integers, got {actions.dtype}")
        if actions.shape != (count,):
            raise InvalidValue(f"expected actions to have shape {(count,)}, got {actions.shape}")
        device, bound = self._env.device, len(self._env.consoles.action_numbers)
        if isinstance(actions, np.ndarray) and device.type == "cpu":
            check_numbers("actions", actions, (count,), bound, device)
        return [as_int32(actions)]

    def _translated(
        self, values: jax.Array | np.ndarray, continuous: ContinuousActions
    ) -> list[jax.Array]:
        """Numbers and strengths, as ContinuousActions.translate; sines and cosines are XLA's."""
        count, threshold = self._env.num_envs, continuous.threshold
        if values.dtype != jnp.float32:
            raise InvalidType(f"expected actions to be float32, got {values.dtype}")
        if values.shape != (count, 3):
            raise InvalidValue(f"expected actions to have shape {(count, 3)}, got {values.shape}")
        actions = jnp.asarray(values)
        radius = actions[:, 0]
        if self._env.device.type == "cpu":  # where the port refuses them
            radius = jnp.where(jnp.isfinite(actions).all(1), radius, jnp.nan)
        else:
            radius = jnp.clip(jnp.nan_to_num(radius, nan=0.0), 0, 1)
        sides = [
            (x > threshold).astype(jnp.int32) - (x < -threshold).astype(jnp.int32) + 1
            for x in (radius * jnp.cos(actions[:, 1]), radius * jnp.sin(actions[:, 1]))
        ]
        fire = (actions[:, 2] > threshold).astype(jnp.int32)
        return [jnp.asarray(continuous.table.numpy())[sides[0], sides[1], fire], radius]


def close_port(port: _core.Port, device: torch.device, *memory: torch.Tensor) -> None:
    """Refuses a port's later calls, and waits until no call uses the memory of its envs.

    Args:
        port: the port.
        device: where its envs are.
        memory: what the port reads besides the envs, to be kept for as long as it may.
    """
    port.close()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
