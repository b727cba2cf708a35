"""Checks of arguments: each returns the value as its plain type, or raises an error."""

from __future__ import annotations

import difflib
import numbers
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from cule.errors import InvalidType, InvalidValue, shown

# The core keeps counts in 32 bits.
MOST = 2**31 - 1
MAX_SEED = 2**63 - 1
# More than any call takes. A range of a billion would take minutes to become an array.
MOST_NUMBERS = 2**24
# Most of torch's functions do not work with these.
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, *UNSIGNED)


def integer(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """An integer from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidType(f"expected {name} to be an integer, got {shown(value)}")
    if value < least:
        raise InvalidValue(f"expected {name} to be at least {least}, got {value}")
    if value > most:
        raise InvalidValue(f"expected {name} to be at most {most}, got {value}")
    return int(value)


def one_of(name: str, value: Any, choices: Sequence[int]) -> int:
    """An integer that is among the choices."""
    number = integer(name, value, choices[0])
    if number not in choices:
        *first, last = map(str, choices)
        raise InvalidValue(f"expected {name} to be {', '.join(first)} or {last}, got {number}")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidType(f"expected {name} to be True or False, got {shown(value)}")
    return bool(value)


def number(name: str, value: Any, least: float, most: float) -> float:
    """A number from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InvalidType(f"expected {name} to be a number, got {shown(value)}")
    if not value <= most or value < least:
        raise InvalidValue(f"expected {name} to be from {least} to {most}, got {value}")
    return float(value)


def probability(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    return number(name, value, 0, 1)


def closest_of(value: Any, choices: Iterable[str]) -> str:
    """The end of a refusal: the word that is most like the value; empty if none is like it."""
    spelled = value.lower() if isinstance(value, str) else ""
    alike = difflib.get_close_matches(spelled, list(choices), n=1, cutoff=0.6)
    return f"; closest: {alike[0]!r}" if alike else ""


def choice(name: str, value: Any, choices: Sequence[str | None]) -> Any:
    """One of a few words, or None where that is one of them."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise InvalidValue(
            f"expected {name} to be {' or '.join(map(repr, choices))}, got {shown(value)}"
            f"{closest_of(value, filter(None, choices))}"
        )
    return value


def autoreset_mode(name: str, value: Any) -> AutoresetMode:
    """One of gymnasium's autoreset modes, or its name: "NextStep", "next_step", "NEXT_STEP"."""
    if isinstance(value, AutoresetMode):
        return value
    names = {mode.name.lower(): mode for mode in AutoresetMode}
    plain = {spelling.replace("_", ""): mode for spelling, mode in names.items()}
    spelled = value.lower().replace("_", "").replace("-", "") if isinstance(value, str) else None
    if spelled not in plain:
        known = " or ".join(map(repr, names))
        raise InvalidValue(
            f"expected {name} to be {known}, got {shown(value)}{closest_of(value, names)}"
        )
    return plain[spelled]


def unmasked(name: str, values: Any) -> None:
    """Checks that values are no masked array of NumPy's: as a plain one it would lose its mask.

    Raises:
        TypeError: they are.
    """
    # There is none where nobody has imported its module, which NumPy does only when it is used, or
    # where another thread is about to.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
    if isinstance(values, masked):
        raise InvalidType(
            f"expected {name} without a mask of NumPy's, such as masked.filled(0), got "
            f"{shown(values)}"
        )


def array(name: str, values: Any) -> np.ndarray:
    """An array of numbers."""
    unmasked(name, values)
    if isinstance(values, Sequence) and len(values) > MOST_NUMBERS:
        raise InvalidValue(
            f"expected {name} to be at most {MOST_NUMBERS} numbers, got {len(values)}"
        )
    if isinstance(values, (list, tuple)):
        for one in values:
            unmasked(name, one)
            if isinstance(one, torch.Tensor):
                tensor(name, one)
    try:
        found = np.asarray(values)
    except Exception as problem:  # what a value's own conversion raises
        raise InvalidType(
            f"expected {name} to be an array of numbers, got {shown(values)}"
        ) from problem
    if found.dtype.kind not in "biuf" or found.dtype.itemsize > 8:
        raise InvalidType(f"expected {name} to be an array of numbers, got {shown(values)}")
    # The plain type of this size: torch knows neither big-endian types nor C types of other names.
    return found.astype(f"{found.dtype.kind}{found.dtype.itemsize}")


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether its values are in memory, as strides say."""
    if tensor.is_nested or tensor.layout != torch.strided:
        return False
    if tensor.is_contiguous():
        span = tensor.numel() - 1
    else:
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        span = sum((size - 1) * stride for size, stride in steps)
    last = tensor.storage_offset() + span
    try:
        storage = tensor.untyped_storage()
    except NotImplementedError:  # as of a tensor under torch.func.vmap
        return False
    # That of a fake tensor is on "meta", and that of a freed one has no bytes.
    return storage.device.type != "meta" and (
        not tensor.numel() or storage.nbytes() > last * tensor.element_size()
    )


def tensor(name: str, value: torch.Tensor) -> torch.Tensor:
    """A tensor from outside, without its gradient: one whose values can be read.

    Raises:
        TypeError: it is sparse, nested, on "meta", fake, or its memory was freed.
    """
    if not _has_memory(value):
        kind = "nested" if value.is_nested else str(value.layout)
        raise InvalidType(
            f"expected {name} to be a dense tensor whose values are in memory, got one that is "
            f"fake, freed or of another kind ({type(value).__name__}, {kind}, {value.device})"
        )
    return value.detach()


def on_host(name: str, values: Any) -> np.ndarray:
    """An array of numbers, or a tensor of any device as one.

    Raises:
        TypeError, ValueError: they are not numbers, or cannot be read.
    """
    if isinstance(values, torch.Tensor):
        values = tensor(name, values).cpu()
    return array(name, values)


def per_env(name: str, value: Any, num_envs: int) -> list[int | None]:
    """One integer of at least 0, or None, for each env."""
    one = value is None or (isinstance(value, (int, np.integer)) and not isinstance(value, bool))
    plain = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if not (one or plain or (isinstance(value, np.ndarray) and value.ndim == 1)):
        raise InvalidType(
            f"expected {name} to be an integer or one for each env, got {shown(value)}"
        )
    values = [value] * num_envs if one else list(value)
    if len(values) != num_envs:
        raise InvalidValue(
            f"expected {name} to be one integer for all envs or a list of {num_envs}, one for each "
            f"env, got {len(values)} of them, {shown(values)}"
        )
    return [None if one is None else integer(name, one, 0) for one in values]


def env_ids(values: Any, num_envs: int, device: torch.device) -> torch.Tensor:
    """Indices of envs, (n,) int64 on `device`; all of them for None."""
    if values is None:
        return torch.arange(num_envs, device=device)
    if isinstance(values, torch.Tensor):
        ids = tensor("env_ids", values)
    else:
        ids = torch.from_numpy(array("env_ids", values))
    if ids.dim() == 0 and ids.dtype in INTEGERS:
        raise InvalidType(
            f"expected env_ids to be a list of integers, such as [0, 1], got {shown(values)}"
        )
    # An empty list has no dtype of its own.
    if ids.dim() != 1 or not (ids.dtype in INTEGERS or ids.numel() == 0):
        raise InvalidType(
            f"expected env_ids to be a list of integers, got {ids.dtype} of shape "
            f"{tuple(ids.shape)}"
        )
    ids = ids.long()
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= num_envs):
        raise InvalidValue(f"expected env_ids from 0 to {num_envs - 1}, got {ids.tolist()}")
    return ids.to(device)


# What a reset's options may hold.
RESET_OPTIONS = ("reset_mask",)


def reset_mask(options: Any, num_envs: int) -> torch.Tensor | None:
    """`reset_mask` of the options of a reset, (num_envs,) bool; None where there is none."""
    if options is not None and not isinstance(options, dict):
        raise InvalidType(
            f"expected options to be a dict, such as {{'reset_mask': mask}}, got {shown(options)}"
        )
    for key in options or {}:
        if key not in RESET_OPTIONS:
            known = " or ".join(RESET_OPTIONS)
            raise InvalidValue(f"expected options of a reset to be {known}, got {shown(key)}")
    if not options or options.get("reset_mask") is None:
        return None
    mask = options["reset_mask"]
    unmasked("reset_mask", mask)
    if isinstance(mask, (list, tuple)):
        mask = array("reset_mask", mask)
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        mask = torch.from_numpy(np.array(mask, order="C"))
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        kind = getattr(mask, "dtype", type(mask).__name__)
        raise InvalidType(f"expected reset_mask to be a boolean array, got {kind}")
    mask = tensor("reset_mask", mask)
    if tuple(mask.shape) != (num_envs,):
        raise InvalidValue(
            f"expected reset_mask to have shape {(num_envs,)}, got {tuple(mask.shape)}"
        )
    return mask


def seeds(seed: Any, mask: torch.Tensor | None, num_envs: int) -> torch.Tensor:
    """The seed of each env, (num_envs,) int64; -1 for those that `mask` leaves out."""
    count = num_envs if mask is None else int(mask.sum())
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        lowest, highest = int(seed), int(seed) + max(count - 1, 0)
    elif isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str):
        values = array("seed", seed)
        if values.shape != (count,) or not np.issubdtype(values.dtype, np.integer):
            raise InvalidValue(
                f"expected seed to have one integer for each of the {count} envs that are reset, "
                f"got {values.dtype} of shape {values.shape}"
            )
        lowest, highest = (int(values.min()), int(values.max())) if count else (0, 0)
    else:
        raise InvalidType(f"expected seed to be an integer or one for each env, got {shown(seed)}")
    if lowest < 0 or highest > MAX_SEED:
        raise InvalidValue(
            f"expected seeds from 0 to {MAX_SEED}, got {lowest if lowest < 0 else highest}"
        )
    if isinstance(seed, (int, np.integer)):
        values = np.arange(count, dtype=np.int64) + int(seed)
    chosen = torch.full((num_envs,), -1, dtype=torch.int64, device="cpu")
    chosen[slice(None) if mask is None else mask.cpu()] = torch.from_numpy(values.astype(np.int64))
    return chosen
