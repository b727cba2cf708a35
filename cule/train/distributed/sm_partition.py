"""A GPU's multiprocessors in two disjoint sets, each with streams of its own.

CUDA's green contexts do it (CUDA driver API, "Green Contexts", CUDA 12.4 and newer), through
cuda-bindings: torch's own GreenContext (torch 2.13) cannot make two disjoint sets, and does not say
what it got. Sizes are rounded by the driver, on Hopper up to a multiple of eight. The sets share
the second level of cache and the memory.

A set lasts as long as the process: torch's allocator and a closed env remember streams, which would
end with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from cule.errors import Failed, InvalidValue, MissingPackage


@dataclass
class Partition:
    """Some of a GPU's multiprocessors.

    Attributes:
        device: the GPU.
        multiprocessors: how many were given.
    """

    device: torch.device
    multiprocessors: int
    _context: Any
    _streams: list[Any] = field(default_factory=list)

    def stream(self) -> torch.cuda.Stream:
        """A new stream, whose work runs on these multiprocessors."""
        driver = _driver()
        flags = int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        handle = _result(driver.cuGreenCtxStreamCreate, self._context, flags, 0)
        self._streams.append(handle)
        return torch.cuda.ExternalStream(int(handle), device=self.device)


@functools.cache
def split(device: torch.device, wanted: int) -> tuple[Partition, Partition]:
    """Two sets: one with at least `wanted` multiprocessors, and one with all others.

    Equal calls give the same sets.

    Raises:
        ImportError: cuda-bindings is missing.
        RuntimeError: the driver cannot do it.
        ValueError: the device is not a GPU, or nothing is left for the second set.
    """
    if device.type != "cuda":
        raise InvalidValue(
            f"expected a GPU, whose multiprocessors can act and learn apart, got device {device}"
        )
    driver = _driver()
    torch.cuda.init()
    gpu = _result(driver.cuDeviceGet, device.index or 0)
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    every = _result(driver.cuDeviceGetDevResource, gpu, kind)
    if wanted >= every.sm.smCount:
        raise InvalidValue(
            f"expected fewer than {every.sm.smCount} multiprocessors that act, as others of "
            f"{device} have to learn, got {wanted}"
        )
    groups, count, rest = _result(driver.cuDevSmResourceSplitByCount, 1, every, 0, wanted)
    if not count or not rest.sm.smCount:
        raise InvalidValue(
            f"expected multiprocessors of {device} to be left for learning, but all "
            f"{every.sm.smCount} act: {wanted}, rounded up"
        )
    return _partition(device, gpu, groups[0]), _partition(device, gpu, rest)


def in_words(apart: tuple[Partition, Partition] | None, wanted: int | None) -> Iterator[str]:
    """What each set has, where there are any.

    Args:
        apart: the sets that act and that learn.
        wanted: how many multiprocessors were to act.
    """
    if apart is not None:
        acting, learning = (part.multiprocessors for part in apart)
        yield f"{acting} multiprocessors act, {learning} others learn; {wanted} were asked for"


def _partition(device: torch.device, gpu: Any, resource: Any) -> Partition:
    driver = _driver()
    described = _result(driver.cuDevResourceGenerateDesc, [resource], 1)
    flags = int(driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM)
    context = _result(driver.cuGreenCtxCreate, described, gpu, flags)
    return Partition(device, resource.sm.smCount, context)


def is_there() -> bool:
    """Whether the package that partitions need is installed."""
    try:
        _driver()
    except ImportError:
        return False
    return True


def _driver() -> Any:
    """The CUDA driver's functions.

    Raises:
        ImportError: cuda-bindings is missing.
    """
    try:
        from cuda.bindings import driver
    except ImportError as problem:
        raise MissingPackage(
            "the layout apart needs cuda-bindings: pip install cuda-bindings"
        ) from problem
    return driver


def _result(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of the driver; returns its results without the status.

    Raises:
        RuntimeError: it failed.
    """
    status, *values = function(*arguments)
    if int(status):
        raise Failed(f"expected {function.__name__} to succeed, got {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
