"""How much of a GPU a process may use that shares it with others: multiprocessors and memory.

CUDA's Multi-Process Service (MPS, https://docs.nvidia.com/deploy/mps) limits each process that is
its client, by two variables of the process's environment. They are read when CUDA begins in the
process, and cannot be changed later. A limit is none of what others may use: two processes with 44
multiprocessors each may have the same ones. `python -m cule.train.mps` starts a service.

The service takes whole percentages, and rounds down to multiprocessors that it can give. So these
are rounded up, except where that would be more than the budget. What came is asked of CUDA, which
counts as many multiprocessors and as much free memory as the process may use.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import NoReturn

import torch

from cule.errors import Failed, InvalidValue
from cule.train.instances import Instance

CONTROL = "nvidia-cuda-mps-control"
PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"  # of each GPU by its number, 0=10240M
# Seconds: how long the service, or CUDA in a new process, may take to answer.
ANSWER = 60.0
GIB = 2**30
# CUDA's driver, and CUDA_ERROR_NOT_INITIALIZED.
DRIVER, NOT_INITIALIZED = "libcuda.so.1", 3
# The variables that this process has set for itself, and keeps, as CUDA reads them once.
_own: dict[str, str] = {}
# Prints a GPU's multiprocessors (16 is CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) and bytes.
_SIZE = """
import ctypes, sys
driver, device, count = ctypes.CDLL(sys.argv[1]), ctypes.c_int(), ctypes.c_int()
memory = ctypes.c_size_t()
for function, *arguments in (
    (driver.cuInit, 0),
    (driver.cuDeviceGet, ctypes.byref(device), int(sys.argv[2])),
    (driver.cuDeviceGetAttribute, ctypes.byref(count), 16, device),
    (driver.cuDeviceTotalMem_v2, ctypes.byref(memory), device),
):
    if status := function(*arguments):
        sys.exit(f"{function.__name__} failed with {status}")
print(count.value, memory.value)
"""


def limit(one: Instance, number: int) -> None:
    """Limits this process, in which CUDA has not begun, to what an instance may use.

    Args:
        one: an instance with a budget or memory of its own.
        number: that of its GPU, as CUDA numbers them.

    Raises:
        ValueError: no service runs, or it limits all its clients; the GPU has no more than the
            budget or the limit of memory; CUDA has begun; or the process or its environment has
            other limits.
    """
    _check_service()
    wanted = {}
    every, memory = size_of(number)
    if one.budget is not None:
        if one.budget >= every:
            raise InvalidValue(
                f"expected an instance with a budget below the {every} multiprocessors of cuda:"
                f"{number}, got {one.budget}"
            )
        wanted[PERCENTAGE] = str(_percentage(one.budget, every))
    if one.memory is not None:
        if one.memory * GIB >= memory:
            raise InvalidValue(
                f"expected an instance with a limit of memory below the {memory / GIB:g} GiB of "
                f"cuda:{number}, got {one.memory:g}"
            )
        wanted[MEMORY] = f"{number}={max(1, int(one.memory * 1024))}M"
    present = {name: os.environ[name] for name in (PERCENTAGE, MEMORY) if name in os.environ}
    if _own and wanted != _own:
        _refuse(_in_words(wanted))
    if wanted in (present, _own):
        return
    if present:
        raise InvalidValue(
            "expected limits of a process in the layout or in its environment, got both: "
            f"{_in_words(present)}"
        )
    if cuda_has_begun():
        raise InvalidValue(
            "expected an instance with a budget or memory of its own before CUDA begins in its "
            "process, got it later"
        )
    os.environ.update(wanted)
    _own.update(wanted)


def no_limit() -> None:
    """Checks that this process has not limited itself, for a training before.

    Raises:
        ValueError: it has.
    """
    if _own:
        _refuse("none")


def environment_without_limits() -> dict[str, str]:
    """This process's environment for another training, without the limits that it set itself."""
    return {name: value for name, value in os.environ.items() if name not in _own}


def _refuse(wanted: str) -> NoReturn:
    raise InvalidValue(
        f"expected a process to keep its limits {_in_words(_own)}, as CUDA has begun, got {wanted}"
    )


def _in_words(limits: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in limits.items())


def check_limits(one: Instance, device: torch.device) -> Iterator[str]:
    """Checks that this process, in which CUDA has begun, has the limits of an instance.

    Yields:
        What the process has, in words.

    Raises:
        RuntimeError: it may use more.
    """
    if one.budget is not None:
        given = torch.cuda.get_device_properties(device).multi_processor_count
        if given > one.budget:
            raise Failed(
                "expected CUDA's Multi-Process Service to give this process at most "
                f"{one.budget} multiprocessors of {device}, got {given}"
            )
        yield f"{given} multiprocessors for this process; {one.budget} were asked for"
    if one.memory is not None:
        free = torch.cuda.mem_get_info(device)[0] / GIB
        if free > one.memory:
            raise Failed(
                "expected CUDA's Multi-Process Service to give this process at most "
                f"{one.memory:g} GiB of {device}, got {free:.1f}"
            )
        yield f"{free:.1f} GiB of memory for this process; {one.memory:g} were asked for"


def cuda_has_begun() -> bool:
    """Whether CUDA's driver has been initialized in this process, by torch or by anything else."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return False
    status: int = driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))
    return status != NOT_INITIALIZED


@functools.cache
def size_of(number: int) -> tuple[int, int]:
    """All multiprocessors and bytes of a GPU, which a process without limits is asked for.

    Raises:
        ValueError: there is no such GPU.
    """
    free = {name: value for name, value in os.environ.items() if name not in (PERCENTAGE, MEMORY)}
    said = _answer([sys.executable, "-I", "-c", _SIZE, DRIVER, str(number)], environment=free)
    if not re.fullmatch(r"\d+ \d+", said):
        raise InvalidValue(f"expected a GPU that CUDA calls cuda:{number}, got: {said}")
    multiprocessors, memory = map(int, said.split())
    return multiprocessors, memory


def _percentage(budget: int, every: int) -> int:
    """The percentage of so many multiprocessors, which come in pairs, that is within a budget."""
    up = min(99, -(-100 * budget // every))
    return up if every * up // 200 * 2 <= budget else max(1, up - 1)


def _check_service() -> None:
    """Checks that a service runs that does not limit all its clients.

    Raises:
        ValueError: none does.
    """
    said = _answer([CONTROL], words="get_default_active_thread_percentage\n")
    try:
        percentage = float(said)
    except ValueError:
        raise InvalidValue(
            "expected CUDA's Multi-Process Service for instances with a budget or memory of their "
            f"own, as python -m cule.train.mps -- torchrun ... starts it, got none: {said}"
        ) from None
    if percentage < 100:
        raise InvalidValue(
            "expected CUDA's Multi-Process Service to leave budgets to the layout, got its "
            f"default_active_thread_percentage {said}"
        )


def _answer(command: list[str], words: str = "", environment: dict[str, str] | None = None) -> str:
    """The last line that a command prints, or why there is none."""
    try:
        done = subprocess.run(
            command, input=words, env=environment, capture_output=True, text=True, timeout=ANSWER,
            check=False,
        )  # fmt: skip
    except OSError as problem:
        return f"{command[0]}: {problem.strerror}"
    except subprocess.TimeoutExpired:
        return f"no answer in {ANSWER:g} s"
    lines = (done.stderr + done.stdout if done.returncode else done.stdout).strip().splitlines()
    return lines[-1].strip() if lines else f"{command[0]} ended with {done.returncode}"
