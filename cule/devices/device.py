"""Which device envs are on, and what happens to them when their process forks."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from cule import _core
from cule.devices.architecture import missing_code
from cule.errors import Failed, InvalidValue, shown
from cule.processes.forks import after_fork_in_child


def default_device() -> str:
    """The device for None: "cuda" if this build and this machine have it, else "cpu"."""
    return "cuda" if _core.has_cuda() and torch.cuda.is_available() else "cpu"


def find_device(device: str | torch.device | None) -> torch.device:
    """The torch device that `device` means.

    For None it is the CPU, with a warning, if there is a GPU but this build has no code for it.

    Raises:
        ValueError: if it is neither the CPU nor a CUDA device, or this build or machine does not
            have it.
    """
    try:
        found = torch.device(device if device is not None else default_device())
    except (RuntimeError, TypeError, ValueError) as problem:
        raise InvalidValue(
            f"expected a device such as 'cpu', 'cuda' or 'cuda:1', got {shown(device)}"
        ) from problem
    if found.type == "cpu":
        return torch.device("cpu")
    if found.type != "cuda":
        raise InvalidValue(f"expected device 'cpu' or 'cuda', got {shown(device)}")
    if not _core.has_cuda():
        raise InvalidValue(
            f"device={shown(device)} was asked for, but this cule was built without CUDA; "
            "reinstall it where nvcc is found (CULE_CUDA=ON makes a build without it fail), or use "
            "device='cpu'"
        )
    if _forked_after_cuda:
        raise Failed(
            f"device={shown(device)} was asked for in a process that was forked after its parent "
            "had used CUDA, where CUDA cannot work; start processes with multiprocessing's "
            "'spawn' instead, or use CUDA in the children only"
        )
    if not torch.cuda.is_available():
        raise InvalidValue(
            f"device={shown(device)} was asked for, but torch finds no usable CUDA GPU here; use "
            "device='cpu'"
        )
    index = found.index if found.index is not None else torch.cuda.current_device()
    if index >= torch.cuda.device_count():
        raise InvalidValue(
            f"expected a CUDA device below cuda:{torch.cuda.device_count()}, got {shown(device)}"
        )
    if lacking := missing_code(index):
        if device is not None:
            raise InvalidValue(
                f"device={shown(device)} was asked for, but {lacking}, or use device='cpu'"
            )
        warnings.warn(f"envs run on the CPU: {lacking}", stacklevel=3)
        return torch.device("cpu")
    return torch.device("cuda", index)


def cpus_of_threads(threads: int, offset: int, device: torch.device) -> tuple[int, ...]:
    """The CPU that each thread is pinned to: from the usable CPU number `offset` on, in a circle.

    So threads share CPUs if there are more of them, as ale-py's and EnvPool's do.

    Args:
        threads: how many threads there are.
        offset: AtariEnv's `thread_affinity_offset`; -1: none is pinned.
        device: where the envs live.

    Returns:
        (threads,) numbers of CPUs; empty if no thread is pinned.

    Raises:
        ValueError: threads cannot be pinned here.
    """
    if offset == -1:
        return ()
    if device.type != "cpu":
        raise InvalidValue(
            f"expected thread_affinity_offset with device='cpu', got it with device {device}"
        )
    if not hasattr(os, "sched_getaffinity"):
        raise InvalidValue(
            f"expected thread_affinity_offset to be -1, as threads cannot be pinned on "
            f"{sys.platform}, got {offset}"
        )
    usable = sorted(os.sched_getaffinity(0))
    return tuple(usable[(offset + i) % len(usable)] for i in range(threads))


# The most threads that a setting may ask for.
MAX_THREADS = 1024


def compute_with(num_threads: int) -> None:
    """Sets how many CPU threads torch uses.

    Args:
        num_threads: how many; 0: one for each second CPU that this process may use, or fewer if
            torch would use fewer. torch's threads wait for each other, and where other threads
            have the CPUs, such as the emulator's, that takes more time than they save. The number
            depends on the machine and not on its load: sums in another number of threads may be
            rounded otherwise, and then a resumed run would not be exact.
    """
    fewer = min(torch.get_num_threads(), max(1, usable_cpus() // 2))
    torch.set_num_threads(num_threads or fewer)


def _groups(root: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """The folders of this process's control groups, and of the groups above them.

    In a container, a group's path may be the path on the host. The container's own group is then at
    the root.

    Args:
        root: where the system's folders `proc` and `sys` are.
        controller: what the groups limit, such as "memory".

    Yields:
        A folder, which may not be there, and whether its files are those of version 2.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = ["0::/", f"1:{controller}:/"]
    for line in lines:
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            folder = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            folder = root / "sys/fs/cgroup" / controller
        else:
            continue
        group = PurePosixPath(path.lstrip("/"))
        for each in (group, *group.parents):
            yield folder / each, number == "0"


def _memory_limits(root: Path) -> Iterator[int]:
    """The limits of this process's control groups, in bytes."""
    for folder, second in _groups(root, "memory"):
        with suppress(OSError, ValueError):  # no such group, or its limit is "max"
            yield int((folder / ("memory.max" if second else "memory.limit_in_bytes")).read_text())


def _cpu_limits(root: Path) -> Iterator[int]:
    """How many CPUs the quotas of this process's control groups are, rounded up."""
    for folder, second in _groups(root, "cpu"):
        with suppress(OSError, ValueError):  # no such group, or its limit is "max"
            names = ("cpu.max",) if second else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            words = " ".join((folder / name).read_text() for name in names).split()
            quota, period = map(int, words)
            if quota > 0 and period > 0:  # -1: no limit
                yield -(-quota // period)


def usable_cpus(root: Path = Path("/")) -> int:
    """The CPUs that this process may run on, or its container's quota if that is fewer.

    Args:
        root: where the system's folders `proc` and `sys` are.
    """
    pinned = hasattr(os, "sched_getaffinity")
    here = len(os.sched_getaffinity(0)) if pinned else os.cpu_count() or 1
    return min((here, *_cpu_limits(root)))


def usable_memory(root: Path = Path("/")) -> int:
    """The machine's memory in bytes, or the limit of this process's container if that is lower.

    Args:
        root: where the system's folders `proc` and `sys` are.
    """
    return min((_memory(), *_memory_limits(root)))


def _memory() -> int:
    """The machine's memory in bytes."""
    if sys.platform != "win32":
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # MEMORYSTATUSEX: its size, a percentage, and 64-bit numbers, of which this is the first.
    about = (ctypes.c_uint64 * 8)(64)
    ctypes.windll.kernel32.GlobalMemoryStatusEx(about)
    return about[1]


# Forks --------------------------------------------------------------------------------------------

# Objects of the compiled core. Freeing one waits for its threads or for the GPU, which a forked
# child does not have.
_backends: weakref.WeakSet[Any] = weakref.WeakSet()
_forked = _cuda_was_used = _forked_after_cuda = False


def keep_through_forks(backend: Any) -> Any:
    """Makes a forked child leave `backend` alone: it is never freed there. Returns it."""
    _backends.add(backend)
    return backend


def avoid_lost_threads() -> None:
    """Limits torch to one thread if this process was forked.

    GNU OpenMP, which torch's CPU builds use, would wait forever for the threads of the parent
    process. torch's own DataLoader does the same in its workers.
    """
    if _forked and torch.get_num_threads() > 1:
        torch.set_num_threads(1)


def _before_fork() -> None:
    global _cuda_was_used
    _cuda_was_used = _forked_after_cuda or torch.cuda.is_initialized()


def _after_fork_in_child() -> None:
    global _forked, _forked_after_cuda
    _forked, _forked_after_cuda = True, _cuda_was_used
    for backend in _backends:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(backend))


after_fork_in_child(_after_fork_in_child, before=_before_fork)
