"""GPUs that are divided into slices, by NVIDIA's Multi-Instance GPU (MIG): a process has one.

CUDA shows a process only the first slice that it sees (MIG user guide,
https://docs.nvidia.com/datacenter/tesla/mig-user-guide). So the slices are found through NVML, and
counted as GPUs are, and each process sees only its own. It may be a whole GPU, where the machine
has some that are not divided. Between slices there is neither CUDA's inter-process communication
nor NCCL: messages and gradients go by way of the host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from cule.errors import InvalidValue
from cule.train.distributed.budgets import cuda_has_begun

VISIBLE = "CUDA_VISIBLE_DEVICES"
# The number and the name of what this process sees alone.
_taken: tuple[int, str] | None = None


def slices() -> list[str]:
    """The names of all slices and whole GPUs that a process may see, by their numbers.

    Nothing if no GPU is divided, or as `visible`.
    """
    found = visible()
    return found if any(name.startswith("MIG-") for name in found) else []


def visible() -> list[str]:
    """The names of all that a process may see, divided or not.

    NVML numbers GPUs by their places on the PCI bus, and so does CUDA with the variable
    CUDA_DEVICE_ORDER=PCI_BUS_ID; else it begins with the fastest one.

    Nothing if nvidia-ml-py or the driver is missing, or it does not answer.
    """
    try:
        import pynvml as nvml
    except ImportError:
        return []
    try:
        nvml.nvmlInit()
        try:
            return [*_visible(nvml)]
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError:
        return []


def divided() -> bool:
    """Whether processes have slices here, or this one has taken one or a GPU beside them."""
    return _taken is not None or bool(slices())


def _visible(nvml: Any) -> Iterator[str]:
    """The names of what the environment lets this process see, in its order."""
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    names = {nvml.nvmlDeviceGetUUID(handle): handle for handle in handles}
    for word in map(str.strip, os.environ.get(VISIBLE, ",".join(names)).split(",")):
        if word.startswith("MIG-"):
            yield word
            continue
        if re.fullmatch(r"\d+", word) and int(word) < len(handles):
            chosen = [[*names][int(word)]]
        else:
            chosen = [name for name in names if word and name.startswith(word)]
        if len(chosen) != 1:
            return  # CUDA sees nothing from here on, either
        yield from _parts(nvml, chosen[0], names[chosen[0]])


def _parts(nvml: Any, name: str, handle: Any) -> Iterator[str]:
    """The names of a GPU's slices, or its own if it is not divided."""
    try:
        divided = nvml.nvmlDeviceGetMigMode(handle)[0]
    except nvml.NVMLError:  # an older GPU
        divided = False
    if not divided:
        yield name
        return
    for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except nvml.NVMLError:  # there may be fewer
            continue
        yield nvml.nvmlDeviceGetUUID(part)


def take(number: int) -> str:
    """Makes a slice the only GPU that this process sees, before CUDA begins in it.

    The first slice may be taken later, too, as CUDA shows it anyway.

    Args:
        number: that of the slice, counted over all GPUs.

    Returns:
        Its name; "" where no GPU is divided, and nothing was changed.

    Raises:
        ValueError: there is no such slice, this process has another one, or CUDA has begun and
            shows another one.
    """
    global _taken
    if _taken is not None:
        if number != _taken[0]:
            raise InvalidValue(
                f"expected a process to keep its MIG slice {_taken[0]}, as CUDA has begun, got "
                f"{number}"
            )
        return _taken[1]
    found = slices()
    if not found:
        return ""
    if number >= len(found):
        raise InvalidValue(
            f"expected the number of one of {len(found)} MIG slices, counted from 0, got {number}"
        )
    # CUDA shows the first slice to a process that has not chosen.
    shown = number == 0 and found[0].startswith("MIG-")
    if not shown and cuda_has_begun():
        raise InvalidValue(
            "expected a process to choose its MIG slice before CUDA begins in it, got it later"
        )
    os.environ[VISIBLE] = found[number]
    _taken = number, found[number]
    return found[number]
