"""Measures what a learner's plan needs of a machine: launches, copies, products, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from cule.devices.device import usable_cpus
from cule.devices.host_memory import host_memory
from cule.programs.results import now
from cule.scope.loops import (
    GPU_CALLS,
    GPU_ROUNDS,
    GRAPH_NODES,
    gpu_nanoseconds_of,
    graph_of,
    nanoseconds_of,
)
from cule.scope.machine import GATHER, Copy, Launch, Machine, Rate, Threads, key_of

# Nanoseconds of a round, and the most of all rounds.
ROUND, MOST = 2_000_000, 500_000_000
# Bytes of copies. The largest are beyond the caches of GPUs.
SIZES = (2**12, 2**16, 2**20, 2**24, 2**27)
# Bytes of a row that a kernel gathers, about a frame's.
ROW = 2**12
# Rows and columns of matrices that keep all multiprocessors, or CPUs, busy.
GPU_MATRIX, CPU_MATRIX = 4096, 512
# Numbers of the host's parallel loop, 1 MiB.
LOOP = 2**18
TF32 = "TF32"

Function = Callable[[], Any]


class Timer:
    """How long a call takes, when calls follow each other; the fastest of some rounds counts.

    Args:
        device: where the functions compute.
    """

    def __init__(self, device: torch.device):
        self._of_device = gpu_nanoseconds_of if device.type == "cuda" else nanoseconds_of

    def on_cpu(self, function: Function) -> float:
        """Seconds of the CPU for a call, which does not wait for a GPU."""
        return self._fastest(function, nanoseconds_of)

    def on_device(self, function: Function) -> float:
        """Seconds of the device for a call."""
        return self._fastest(function, self._of_device)

    def _fastest(self, function: Function, measure: Callable[[Function, int], float]) -> float:
        measure(function, 1)  # loads what it needs
        once = max(measure(function, 1), 1.0)
        calls = min(max(int(ROUND / once), 1), GPU_CALLS)
        rounds = min(max(int(MOST / (calls * once)), 1), GPU_ROUNDS)
        return min(measure(function, calls) for _ in range(rounds)) / 1e9


def _launches(device: torch.device, timer: Timer) -> list[Launch]:
    tensor = torch.zeros(64, device=device)

    def add() -> None:
        tensor.add_(1)

    if device.type == "cpu":
        return [Launch("operator", 1, timer.on_cpu(add) * 1e6)]
    add()  # a kernel cannot be loaded during a capture
    works: list[tuple[str, int, Function]] = [("operator", 1, add)]
    works += [("CUDA graph", n, graph_of(n, tensor).replay) for n in (1, GRAPH_NODES)]
    return [
        Launch(what, kernels, timer.on_cpu(work) * 1e6, timer.on_device(work) * 1e6)
        for what, kernels, work in works
    ]


def _of_memory(to: torch.Tensor, source: torch.Tensor) -> Callable[[int], Function]:
    """A function that makes copies of the first bytes of one memory to another."""
    return lambda size: lambda: to[:size].copy_(source[:size], non_blocking=True)


def _gathers(far: torch.Tensor, near: torch.Tensor) -> Callable[[int], Function]:
    """A function that makes copies of rows of `far`, in no order, by a kernel."""
    random = torch.Generator().manual_seed(0)
    order = torch.randperm(len(far), generator=random).to(near.device)
    rows = near.view(torch.int64).view(len(far), -1)

    def gather(size: int) -> Function:
        count = size // ROW
        return lambda: torch.index_select(far, 0, order[:count], out=rows[:count])

    return gather


def _copies(device: torch.device, timer: Timer) -> list[Copy]:
    most = SIZES[-1]
    # Not zeros, of which the system makes no memory before they are written.
    near, other = (torch.ones(most, dtype=torch.uint8, device=device) for _ in range(2))
    far = host_memory((most // ROW, ROW // 8), torch.int64, device).fill_(1)
    kinds = {GATHER: _gathers(far, near), "inside the device": _of_memory(near, other)}
    if device.type == "cuda":
        pageable = torch.ones(most, dtype=torch.uint8)
        for name, host in (("pinned", pageable.pin_memory()), ("pageable", pageable)):
            kinds[f"host to device, {name}"] = _of_memory(near, host)
            kinds[f"device to host, {name}"] = _of_memory(host, near)
    return [
        Copy(what, size, size / timer.on_device(copy_of(size)) / 1e9)
        for what, copy_of in kinds.items()
        for size in SIZES
    ]


def _dtypes(device: torch.device) -> dict[str, torch.dtype]:
    """The dtypes of matrices by name; on a GPU those that it has units for."""
    names: dict[str, torch.dtype] = {"float32": torch.float32}
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0):
        names[TF32] = torch.float32
    if device.type == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False):
        names["bfloat16"] = torch.bfloat16
    return {**names, "float16": torch.float16}


@contextmanager
def _rounding(name: str) -> Iterator[None]:
    """A GPU multiplies float32 as it is, or for TF32 rounded to it."""
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32" if name == TF32 else "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = before


def _product(size: int, dtype: torch.dtype, device: torch.device) -> Function:
    one, two, out = (torch.randn(size, size, device=device).to(dtype) for _ in range(3))
    return lambda: torch.mm(one, two, out=out)


def _tflops(size: int, seconds: float) -> float:
    return 2 * size**3 / seconds / 1e12


def _rates(device: torch.device, timer: Timer) -> list[Rate]:
    size, found = GPU_MATRIX if device.type == "cuda" else CPU_MATRIX, []
    for name, dtype in _dtypes(device).items():
        with _rounding(name) if device.type == "cuda" else nullcontext():
            seconds = timer.on_device(_product(size, dtype, device))
        found.append(Rate(name, size, _tflops(size, seconds)))
    return found


def _numbers_of_threads(cpus: int) -> list[int]:
    """1, 2, 4, ..., and all CPUs."""
    return [*(1 << n for n in range((cpus - 1).bit_length())), cpus]


def _by_threads(timer: Timer) -> list[Threads]:
    cpu, before, found = torch.device("cpu"), torch.get_num_threads(), []
    to, source = (torch.ones(SIZES[-1], dtype=torch.uint8) for _ in range(2))
    copy = _of_memory(to, source)(SIZES[-1])
    product = _product(CPU_MATRIX, torch.float32, cpu)
    numbers, powers = torch.rand(LOOP), torch.empty(LOOP)
    try:
        for count in _numbers_of_threads(usable_cpus()):
            torch.set_num_threads(count)
            found.append(Threads(
                count, SIZES[-1] / timer.on_cpu(copy) / 1e9,
                _tflops(CPU_MATRIX, timer.on_cpu(product)),
                timer.on_cpu(lambda: torch.exp(numbers, out=powers)) * 1e6,
            ))  # fmt: skip
    finally:
        torch.set_num_threads(before)
    return found


@torch.no_grad()
def measure(device: torch.device, timer: Timer | None = None) -> Machine:
    """Measures a device and its host.

    Args:
        device: the device.
        timer: times the functions; None: a Timer.

    Raises:
        RuntimeError: the device has too little memory.
    """
    timer = timer or Timer(device)
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        return Machine(
            key_of(device), now(), usable_cpus(), torch.get_num_threads(), _launches(device, timer),
            _copies(device, timer), _rates(device, timer), _by_threads(timer),
        )  # fmt: skip
