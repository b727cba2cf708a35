"""Methods of AtariEnv that write RAM: at once, or before each frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cule import _core, arguments
from cule.env.consoles import HasConsoles
from cule.env.guard import changes
from cule.env.inputs import ArrayLike
from cule.env.states import target_ids
from cule.errors import InvalidType, InvalidValue, shown
from cule.facts.patches import LARGEST


def _integers(name: str, values: Any, most: int) -> np.ndarray:
    """Integers from 0 to `most`."""
    found = arguments.on_host(name, values)
    if found.dtype.kind not in "iu":
        raise InvalidType(f"expected {name} to be integers, got {shown(values)}")
    if found.size and not 0 <= found.min() <= found.max() <= most:
        raise InvalidValue(f"expected {name} to be from 0 to {most}, got {shown(values)}")
    return found


def _bytes_of(values: Any, device: torch.device) -> torch.Tensor:
    """The values as uint8 on the device. A uint8 tensor that is there already is not read."""
    if isinstance(values, torch.Tensor) and values.dtype == torch.uint8:
        if values.device != device:
            raise InvalidValue(f"expected values on {device}, got a tensor on {values.device}")
        return arguments.tensor("values", values)
    return torch.from_numpy(_integers("values", values, LARGEST).astype(np.uint8)).to(device)


@changes
def set_ram(env: HasConsoles, addresses: Any, values: ArrayLike | int, env_ids: Any = None) -> None:
    """Writes bytes of the consoles' RAM, as ale-py's setRAM does.

    The next frame reads them. `get_ram` has them at once, screens and observations after a step.

    Args:
        addresses: which of the bytes 0 to 127: one, or a list of k, each once.
        values: from 0 to 255: one for all; (k,): one for each address; (n, k), or (n,) with one
            address: one for each env and address.
        env_ids: the n envs, each once; None: all.

    Raises:
        gymnasium.error.ResetNeeded: before the first reset.
        TypeError, ValueError: an address, a value or an env is not as described.
    """
    env.consoles.check_idle("set_ram")
    env.consoles.check_started("set_ram")
    engine = env.consoles.engine
    ids = target_ids(env.consoles, env_ids)
    given = _integers("addresses", addresses, _core.RAM_BYTES - 1)
    chosen = np.atleast_1d(given).astype(np.int64)
    if chosen.ndim > 1 or len(np.unique(chosen)) != len(chosen):
        raise InvalidValue(f"expected addresses, each once, got {shown(addresses)}")
    new = _bytes_of(values, engine.device)
    shape = (len(ids), len(chosen))
    if given.ndim == 0 and new.dim() == 1:
        new = new[:, None]
    if new.shape not in ((), shape[1:], shape):
        raise InvalidValue(
            f"expected values of shape (), {shape[1:]} or {shape} for {shape[0]} envs and "
            f"{shape[1]} addresses, got {tuple(new.shape)}"
        )
    at = torch.from_numpy(chosen).to(engine.device)
    engine.tensors["ram"][ids[:, None], at] = new.expand(shape)


@changes
def set_patches(env: HasConsoles, patches: Any, env_ids: Any = None) -> None:
    """Replaces the patches of some envs: changes of RAM before each frame of a step.

    They are applied in their order before each frame of a step, so the frame's score and picture
    come from changed RAM; and, except for those that add to a byte what is in it, once more after a
    step's last frame, so that RAM shows what is held. This is when HackAtari applies its
    modifications. The frames that a reset plays are not patched. Patches belong to the env and not
    to its state: a state that is restored or copied to it goes on with them.

    A CUDA graph that has been captured applies what is set later, as long as no env gets more
    patches than any had at the time. Otherwise it goes on with those that it had.

    Args:
        patches: None or []: none. A cule.Patch, the name of one of cule.modifications(game), or a
            list of both.
        env_ids: which envs, each once; None: all.

    Raises:
        TypeError, ValueError: patches or envs are not as described.
    """
    env.consoles.check_idle("set_patches")
    env.consoles.patches.set(patches, target_ids(env.consoles, env_ids))
