"""The device of each process that trains, and how much of it the process may use."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from cule import _core
from cule.devices.device import find_device
from cule.errors import InvalidValue
from cule.train.devices import choose_device
from cule.train.distributed.budgets import check_limits, limit, no_limit
from cule.train.distributed.ranks import check_machines, gpu_of
from cule.train.distributed.slices import divided, take
from cule.train.layout import Layout


@dataclass(frozen=True)
class Place:
    """Where a process computes.

    Attributes:
        device: its device.
        mig_slice: the name of the MIG slice that it has alone; "": no GPU is divided.
        notes: what it may use of its GPU, in words.
    """

    device: torch.device
    mig_slice: str = ""
    notes: tuple[str, ...] = ()


def choose_place(layout: Layout, rank: int, size: int, name: str | None) -> Place:
    """Where a process computes, within the limits of its instance.

    Limits and slices are chosen before CUDA begins in this process.

    Args:
        layout: who has which GPU, and how much of it.
        rank: the process.
        size: how many processes there are.
        name: the device that is asked for; of several processes on GPUs each has the layout's.

    Raises:
        RuntimeError: the process may use more of its GPU than the layout says.
        ValueError: the layout is for another number of processes or for one machine, LOCAL_RANK is
            not there, a device does not exist or cannot be divided so, or the process has limited
            itself otherwise before.
    """
    one = layout.processes(size)[rank][0]
    check_machines(layout, rank, size)
    if name == "cpu" or not _core.has_cuda():
        device = choose_device(name)
        if layout.limited:
            raise InvalidValue(
                "expected GPUs for instances with a budget or memory of their own, got device "
                f"{device}"
            )
        return Place(device)
    limited = layout.limited and one.limited
    if not limited:
        no_limit()
    mig_slice = ""
    if limited or divided():
        number = _number(layout, rank, size, name)
        mig_slice = take(number)
        if limited and mig_slice:
            raise InvalidValue(
                "expected no budget and no memory of its own for a process on a MIG slice, which "
                f"has both, got layout {layout}"
            )
        if limited:
            limit(one, number)
    device = choose_device("cuda:0" if mig_slice else _device_of(layout, rank, size, name))
    notes = [*check_limits(one, device)] if limited else []
    if mig_slice:
        notes.append(f"computes on {mig_slice}")
    return Place(device, mig_slice, tuple(notes))


def place_of_another(
    layout: Layout, rank: int, size: int, device: torch.device, before: Layout, *, on_slice: bool
) -> torch.device:
    """The device of a process in another layout, after CUDA has begun.

    Args:
        layout: the other layout.
        rank: the process.
        size: how many processes there are.
        device: the process's device.
        before: the layout that it was chosen by.
        on_slice: it is a MIG slice.

    Raises:
        ValueError: the layout is for another number of processes, a GPU does not exist, or a
            process would have other limits or another slice.
    """
    parts = [
        [
            (one.device, one.budget, one.memory) if its.limited and one.limited else ()
            for one, *_ in its.processes(size)
        ]
        for its in (layout, before)
    ]
    if parts[0] != parts[1]:
        raise InvalidValue(
            f"expected limits of processes to stay as they are in the layout {before}, as CUDA has "
            f"begun, got {layout}"
        )
    check_machines(layout, rank, size)
    if on_slice:
        # A single process may have one that its layout does not name.
        if size > 1 or (layout != before and not layout.everywhere):
            take(_number(layout, rank, size, None))
        return choose_device(str(device))
    return choose_device(_device_of(layout, rank, size, str(device)))


def _number(layout: Layout, rank: int, size: int, name: str | None) -> int:
    """The number of a process's GPU or slice."""
    if size > 1:
        return gpu_of(layout, rank, size)
    named = re.fullmatch(r"cuda:(\d+)", name or "")
    return int(named[1]) if named else layout.processes(size)[rank][0].device


def _device_of(layout: Layout, rank: int, size: int, name: str | None) -> str | None:
    """The device of a process: one of several on GPUs has that of the layout.

    So has a single one, if the layout names a GPU and nothing else does.

    Raises:
        ValueError: LOCAL_RANK is not there.
    """
    if size == 1 and (layout.everywhere or ":" in (name or "")):
        return name
    if find_device(name).type != "cuda":
        return name
    return f"cuda:{_number(layout, rank, size, name)}"
