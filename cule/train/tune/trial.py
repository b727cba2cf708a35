"""Measures a combination of settings: a Trainer that plays and learns for a moment."""

from __future__ import annotations

import dataclasses
import gc
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from cule.errors import SHORTAGES, InvalidValue, lacks_memory, sentence_of
from cule.scope.light import Light
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.emulator import STACK
from cule.train.layout import Layout
from cule.train.lowering.settings_read import Make
from cule.train.plan import annotate
from cule.train.trainer import Trainer
from cule.train.tune.search import Trial

# Seconds that a trial measures.
SECONDS = 0.5
# Steps before learning, if it would begin later: a memory is drawn from, and has stacks of frames.
EARLY = 2 * STACK
# Iterations after the first learning and before the measurement: CUDA graphs are captured in them.
ITERATIONS = {"cuda": 4, "cpu": 1}


def _planned_bytes(trainer: Trainer) -> int:
    """Bytes that a plan needs at once."""
    memory = trainer.plan.memory
    works = [o.work for o in trainer.plan.program.operations if o.work is not None]
    needed = sum(work.bytes for work in works)
    return memory.fixed + memory.ring_bytes + needed


def timed(trainer: Trainer, iterations: int) -> float:
    """Seconds that so many iterations take, in the slowest process."""
    processes = trainer.processes
    processes.synchronize()
    begun = time.perf_counter()
    for _ in range(iterations):
        with annotate.iteration():
            trainer.iterate()
    trainer.settle()
    processes.synchronize()
    return processes.max(time.perf_counter() - begun)


def _measure(trainer: Trainer, seconds: float, left: Callable[[], float]) -> Trial:
    """Measures a trainer; the result has no settings yet.

    Raises:
        ValueError: an iteration takes longer than what is left of the time.
    """
    processes, device = trainer.processes, trainer.device
    took, learned = 0.0, 0
    while learned <= ITERATIONS[device.type]:
        took = timed(trainer, 1)
        learned += trainer.updates > 0
        if processes.any(took > left()):
            raise InvalidValue(f"an iteration takes {took:.1f} s, which is more time than is left")
    iterations = max(1, math.ceil(seconds / max(took, 1e-6)))
    frames, updates = trainer.frames, trainer.updates
    with Light(device, every=1) as light:
        took = timed(trainer, iterations)
    on_gpu = device.type == "cuda"
    memory = torch.cuda.max_memory_allocated(device) if on_gpu else _planned_bytes(trainer)
    return Trial(
        {}, fps=(trainer.frames - frames) / took,
        updates_per_second=(trainer.updates - updates) / took, memory=memory,
        milliseconds=light.milliseconds(), seconds=took,
    )  # fmt: skip


def measure(
    make: Make,
    args: Any,
    settings: Mapping[str, Any],
    processes: ProcessGroup,
    *,
    seconds: float = SECONDS,
    left: Callable[[], float] = lambda: math.inf,
) -> Trial:
    """Measures how fast an algorithm plays and learns with some settings.

    All processes have to call it, and have to have devices of the same kind: a process that lacks
    memory where the others do not would be waited for. What a trial used is free afterwards.

    Args:
        make: makes the algorithm from settings and a context, as its class does.
        args: the settings, filled for the device.
        settings: the values that are tried, by name.
        processes: the processes that search together.
        seconds: the length of the measurement, which has at least one iteration.
        left: the seconds that may still be spent.

    Returns:
        The trial; a failed one if the settings are wrong or need more memory than there is.
    """
    trainer = None
    try:
        with processes.all_or_none():
            tried = dataclasses.replace(args, **settings)
            processes = processes.with_layout(Layout.parse(tried.layout))
            if processes.device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(processes.device)
            tried.check(len(processes.ranks("act")))
            # What comes before learning says nothing about its speed.
            trainer = Trainer(make, tried, processes, latest_start=EARLY)
            trainer.warm_up()
        with processes.all_or_none():
            trial = dataclasses.replace(_measure(trainer, seconds, left), settings=settings)
    except Exception as problem:
        said = sentence_of(problem, (*SHORTAGES, RuntimeError))
        if said is None:
            raise
        trial = Trial(settings, problem=said.partition("\n")[0], no_memory=lacks_memory(problem))
    finally:
        if trainer is not None:
            trainer.close()
            del trainer
    # Only now: the error's traceback held the trainer.
    gc.collect()
    if processes.device.type == "cuda":
        # cuBLAS keeps a workspace for each stream that has ever used it
        # (https://docs.pytorch.org/docs/stable/notes/cuda.html#cublas-workspaces).
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
    # All processes have to search on in the same way.
    return dataclasses.replace(trial, no_memory=processes.any(trial.no_memory))
