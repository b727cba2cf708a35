"""All the memory of a batch, or an error that says how many envs would fit."""

from __future__ import annotations

import numpy as np
import torch

from cule.devices.device import usable_memory
from cule.engine.constants import place_constants
from cule.engine.layout import Layout
from cule.engine.memory import Memory
from cule.engine.start_states import place_start_states
from cule.errors import OutOfMemory


def free_bytes(device: torch.device) -> int:
    """The bytes that are free on a GPU.

    On a CPU, all of its memory: what is in use now may be freed.
    """
    if device.type != "cuda":
        return usable_memory()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]


def allocate(
    layout: Layout, group_of_env: np.ndarray, device: torch.device, progress: bool
) -> Memory:
    """Makes the memory of a batch.

    Args:
        layout: the shapes of its tensors.
        group_of_env: (num_envs,) the index of each env's group.
        device: the device of the memory.
        progress: whether to show a bar if making start states takes seconds.

    Raises:
        torch.OutOfMemoryError: the device has too little memory.
    """
    # A CPU's allocator promises more memory than there is; the process fails when it writes to it.
    if device.type == "cpu" and layout.bytes_per_env * layout.num_envs > free_bytes(device):
        raise OutOfMemory(_too_many_envs(layout, device, free_bytes(device)))
    memory = Memory(device)
    try:
        place_constants(memory, layout, group_of_env)
        memory.place_zeros(layout.fields)
        place_start_states(memory, layout, progress)
    except RuntimeError as problem:  # which is what torch raises on the CPU
        memory.tensors.clear()
        room = free_bytes(device)
        fits = layout.bytes_per_env * layout.num_envs <= room
        if fits and not isinstance(problem, torch.OutOfMemoryError):
            raise
        raise OutOfMemory(_too_many_envs(layout, device, room)) from problem
    memory.set_numbers(layout.numbers)
    return memory


def _too_many_envs(layout: Layout, device: torch.device, room: int) -> str:
    """The error's message, if `room` bytes are free for the envs."""
    each, num_envs = layout.bytes_per_env, layout.num_envs
    # Even if enough is free, it may be in pieces that are too small.
    fitting = min(room // each, num_envs - 1)
    return (
        f"expected num_envs to fit in the memory of {device}, got {num_envs}: an env takes "
        f"{each} bytes, all of them {num_envs * each / 2**30:.1f} GiB, and there are "
        f"{room / 2**30:.1f} GiB, enough for {fitting} at most"
    )
