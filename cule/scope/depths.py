"""How much of a GPU is used, in three depths, side by side.

1. NVML: the share of time in which "a kernel ran", as nvidia-smi says it. Its samples are a sixth
   of a second and longer, so it is taken from the training before the window, too.
2. Kernels: the share of the window in which at least one kernel or copy really ran.
3. Counters: the shares of multiprocessors that were active and of issue slots that were used, over
   the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cule.scope.breakdown import clipped, union
from cule.scope.counters import read_counters, weighed
from cule.scope.events import BOOKKEEPING, Process


@dataclass(frozen=True)
class GpuUse:
    """How much of a GPU was used, in percent; None where it is not known.

    Attributes:
        gpu: the GPU's name.
        uuid: the GPU's UUID.
        processes: the names of the processes that used it.
        nvml: nvidia-smi's utilization.
        kernels: the share of the window in which something ran.
        multiprocessors: the share of the multiprocessors' time in which they had work.
        issue_slots: the share of the issue slots that were used.
    """

    gpu: str
    uuid: str
    processes: tuple[str, ...]
    nvml: float | None
    kernels: float
    multiprocessors: float | None
    issue_slots: float | None


def _nvml(processes: Sequence[Process], uuid: str) -> float | None:
    samples = {}
    for process in processes:
        begun = process.about.get("first_iteration") or process.start
        for sampled, time, percent in process.about.get("utilization", ()):
            if sampled == uuid and begun <= time * 1e9 <= process.end:
                samples[time] = percent
    return sum(samples.values()) / len(samples) if samples else None


def _counters(users: Sequence[tuple[Process, int]], window: int) -> list[float | None]:
    """The shares of multiprocessors and of issue slots, in percent."""
    sums = [0.0, 0.0]
    for process, device in users:
        counted = None
        if process.folder is not None:
            counted = read_counters(process.folder, process.about.get("name", process.name))
        if not counted:
            return [None, None]
        work = [one for one in process.work if one.device == device]
        for place, value in enumerate(weighed(work, counted)):
            sums[place] += value
    return [100 * value / window for value in sums]


def gpu_use(processes: Sequence[Process]) -> list[GpuUse]:
    """How much of each GPU was used, of those that did anything.

    Raises:
        ValueError: a file of counters is damaged.
    """
    users: dict[str, list[tuple[Process, int]]] = {}
    names: dict[str, str] = {}
    for process in processes:
        busy = {work.device for work in process.work}
        for gpu in process.about.get("gpus", ()):
            if gpu["index"] in busy:
                users.setdefault(gpu["uuid"], []).append((process, gpu["index"]))
                names[gpu["uuid"]] = gpu["name"]
    uses = []
    for uuid, of_gpu in users.items():
        window = max(p.end for p, _ in of_gpu) - min(p.start for p, _ in of_gpu)
        window -= max(sum(end - start for start, end in p.pauses) for p, _ in of_gpu)
        ran = union(
            clipped(work, process)
            for process, device in of_gpu
            for work in process.work
            if work.device == device and work.key.operation != BOOKKEEPING
        )
        multiprocessors, slots = _counters(of_gpu, window)
        uses.append(GpuUse(
            names[uuid], uuid, tuple(process.name for process, _ in of_gpu),
            _nvml(processes, uuid), 100 * ran / window, multiprocessors, slots,
        ))  # fmt: skip
    return uses
