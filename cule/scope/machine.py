"""What `python -m cule.scope machine` has measured of a machine: kept in the cache, and as text.

measures.py measures it. A plan (cule/train/plan/bus.py) reads what is kept.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import torch

from cule.devices.device import usable_cpus
from cule.disk.cache import cache_folder, digest_of, keep
from cule.disk.files import content_of
from cule.disk.forms import formed, is_number
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.programs import results
from cule.programs.units import bytes_text
from cule.scope.table import columns

# A kernel of the device takes rows from all over the host's memory, as plans do over the bus.
GATHER = "rows from the host, by a kernel"


@dataclass(frozen=True)
class Key:
    """By what a measurement is looked up.

    Attributes:
        device_name: the GPU's, or the CPU's with its threads.
        cpu_name: the CPU's.
        torch: the version.
    """

    device_name: str
    cpu_name: str
    torch: str

    @property
    def path(self) -> Path:
        """The file."""
        return cache_folder() / "machines" / f"{digest_of(self)}.json"


@dataclass(frozen=True)
class Launch:
    """What it costs to start work.

    Attributes:
        what: an operator, or a CUDA graph.
        kernels: how many kernels it has.
        cpu_us: microseconds of the CPU for each launch.
        gpu_us: microseconds from one to the next on the GPU; None: there is none.
    """

    what: str
    kernels: int
    cpu_us: float
    gpu_us: float | None = None


@dataclass(frozen=True)
class Copy:
    """How fast bytes are copied.

    Attributes:
        what: from where to where.
        bytes: how many.
        gb_per_s: 10^9 bytes a second, each counted once.
    """

    what: str
    bytes: int
    gb_per_s: float


@dataclass(frozen=True)
class Rate:
    """How fast matrices are multiplied.

    Attributes:
        dtype: of the matrices, or "TF32" for float32 that is rounded to it.
        size: rows and columns of each.
        tflops: 10^12 operations a second; a multiplication and an addition are two.
    """

    dtype: str
    size: int
    tflops: float


@dataclass(frozen=True)
class Threads:
    """How fast the host is with some threads.

    Attributes:
        threads: how many torch uses.
        copy_gb_per_s: of a copy in memory, as of Copy.
        matrix_tflops: of a product in float32, as of Rate.
        loop_us: microseconds of a loop over numbers that fit into a cache.
    """

    threads: int
    copy_gb_per_s: float
    matrix_tflops: float
    loop_us: float


@dataclass(frozen=True)
class Machine:
    """What was measured of a device and its host.

    Attributes:
        key: of which device.
        date: when, in UTC, as ISO 8601 has it.
        cpus: CPUs that the process could use.
        threads: threads that torch used, but for `by_threads`.
        launches, copies, rates: of the device.
        by_threads: of the host, with more and more threads.
    """

    key: Key
    date: str
    cpus: int
    threads: int
    launches: list[Launch]
    copies: list[Copy]
    rates: list[Rate]
    by_threads: list[Threads]

    def gather(self, count: int) -> Copy | None:
        """The copy by a kernel that is most like one of `count` bytes; None: none was measured.

        It is the largest of at most so many bytes, or else the smallest.
        """
        some = sorted((one for one in self.copies if one.what == GATHER), key=lambda one: one.bytes)
        return next((one for one in reversed(some) if one.bytes <= count), next(iter(some), None))


def key_of(device: torch.device) -> Key:
    """The key of a device's measurement."""
    name = results.machine(device, usable_cpus())["device_name"]
    return Key(name, results.cpu_name(), torch.__version__)


def save(machine: Machine) -> None:
    """Keeps a measurement; if it cannot be written, there is a warning."""
    try:
        keep(machine.key.path, json.dumps(dataclasses.asdict(machine)).encode())
    except OSError as problem:
        warnings.warn(f"the measurement of the machine is not kept: {problem}", stacklevel=2)


Row = TypeVar("Row")


def _row(kind: type[Row], values: dict[str, Any]) -> Row:
    """A dataclass from a file, whose numbers are above 0.

    Raises:
        AttributeError, TypeError, ValueError: it is damaged.
    """
    forms = get_type_hints(kind)
    for name, value in values.items():
        form: Any = forms.get(name, str)
        if isinstance(formed(value, form), bool | int | float) and not (
            is_number(value) and value > 0
        ):
            raise InvalidValue(f"{name} is no number above 0")
    return kind(**values)


def load(device: torch.device) -> Machine | None:
    """What is kept of a device; None: there is none that can be read, and is this user's."""
    key = key_of(device)
    with suppress(OSError, *DAMAGE):
        values = json.loads(content_of(key.path, own=True))
        rows = {"launches": Launch, "copies": Copy, "rates": Rate, "by_threads": Threads}
        lists: dict[str, Any] = {
            name: [_row(kind, row) for row in values.pop(name)] for name, kind in rows.items()
        }
        found = _row(Machine, {**values, "key": _row(Key, values["key"]), **lists})
        datetime.datetime.fromisoformat(found.date)
        return found if found.key == key else None
    return None


# As text ------------------------------------------------------------------------------------------


def _figure(value: float | None) -> str:
    """Three digits; "." for None."""
    return "." if value is None else f"{value:#.3g}".rstrip(".")


def _launches(machine: Machine) -> str:
    lines = [
        [one.what, str(one.kernels), _figure(one.cpu_us), _figure(one.gpu_us)]
        for one in machine.launches
    ]
    return columns(["launch", "kernels", "CPU us", "GPU us"], lines)


def _copies(machine: Machine) -> str:
    rates = {(one.what, one.bytes): one.gb_per_s for one in machine.copies}
    sizes = sorted({one.bytes for one in machine.copies})
    lines = [
        [what, *(_figure(rates.get((what, size))) for size in sizes)]
        for what in dict.fromkeys(one.what for one in machine.copies)
    ]
    return columns(["copy, GB/s", *map(bytes_text, sizes)], lines)


def _rates(machine: Machine) -> str:
    lines = [[one.dtype, str(one.size), _figure(one.tflops)] for one in machine.rates]
    return columns(["matrix product", "size", "TFLOP/s"], lines)


def _gains(values: Sequence[float]) -> list[str]:
    """By how much each is more than the first."""
    return [f"{value / values[0]:.2f}x" for value in values]


def _by_threads(machine: Machine) -> str:
    some = machine.by_threads
    parts = [
        (one.copy_gb_per_s for one in some),
        (one.matrix_tflops for one in some),
        (1 / one.loop_us for one in some),
    ]
    gains = zip(*(_gains(list(part)) for part in parts), strict=True)
    lines = [
        [str(one.threads), _figure(one.copy_gb_per_s), copy, _figure(one.matrix_tflops), matrix,
         _figure(one.loop_us), loop]
        for one, (copy, matrix, loop) in zip(some, gains, strict=True)
    ]  # fmt: skip
    head = ["host threads", "copy GB/s", "gain", "float32 TFLOP/s", "gain", "loop us", "gain"]
    return columns(head, lines)


def table(machine: Machine) -> str:
    """A measurement as text."""
    cpus = f"{machine.cpus} usable CPU{'s' if machine.cpus > 1 else ''}"
    title = (
        f"{machine.key.device_name}; {cpus}, torch {machine.key.torch} with {machine.threads} "
        f"host thread{'s' if machine.threads > 1 else ''}"
    )
    parts = [_launches(machine), _copies(machine), _rates(machine), _by_threads(machine)]
    return "\n\n".join([title, *parts])
