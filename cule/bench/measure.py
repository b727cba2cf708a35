"""Measures a case, in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from cule.bench.cases import Case
from cule.bench.kinds import Other, Ours, others_of, ours_of
from cule.bench.systems import MAX_SPREAD_STEPS, spread_out

System = Ours | Other
T = TypeVar("T")

# Steps after which the speed is first estimated.
TRIAL_STEPS = 8
LONGEST_REASON = 400


@dataclass(frozen=True)
class Measurement:
    """The result of one system in a case. The last three attributes are None except for cule.

    Attributes:
        rounds: FPS in each round.
        warmup_steps: the number of steps before the first round.
        distinct_share: the share of distinct states among the envs after those steps.
        bytes_per_env: the device memory of an env.
        faulty_envs: how many envs report a fault at the end.
    """

    rounds: list[float]
    warmup_steps: int
    distinct_share: float | None = None
    bytes_per_env: int | None = None
    faulty_envs: int | None = None


def steps_within(system: System, seconds: float) -> int:
    """How many steps take about `seconds`."""
    system.play(TRIAL_STEPS)  # what is allocated or compiled at first use is not timed
    trial = TRIAL_STEPS
    while (took := system.seconds(trial)) < min(0.1, seconds / 4):
        trial *= 4
    return max(1, round(trial * seconds / took))


def measure(case: Case) -> dict[str, Measurement]:
    """Each system's measurement, by its name; the systems take turns."""
    torch.set_num_threads(case.num_threads)
    systems: list[System] = []
    try:
        ours = ours_of(case)(case)
        systems.append(ours)
        for kind in others_of(case):
            systems.append(kind(case))
        # With many envs ale-py would be minutes in a warm-up of unknown length. Only a GPU is
        # slower with envs at different points.
        on_cpu = case.env_groups or torch.device(case.device).type == "cpu"
        most = case.warmup_steps if on_cpu else MAX_SPREAD_STEPS
        warmup_steps, share = spread_out(ours, case.warmup_steps, most)
        for other in systems[1:]:
            other.play(warmup_steps, random=True)
        counts = [steps_within(system, case.seconds / case.rounds) for system in systems]
        rounds: dict[str, list[float]] = {system.name: [] for system in systems}
        for _ in range(case.rounds):
            for system, count in zip(systems, counts, strict=True):
                fps = count * case.num_envs * case.frameskip / system.seconds(count)
                rounds[system.name].append(round(fps, 1))
        measured = {name: Measurement(fps, warmup_steps) for name, fps in rounds.items()}
        measured[ours.name] = Measurement(
            rounds[ours.name],
            warmup_steps,
            round(share, 4),
            ours.env.engine.bytes_per_env,
            ours.faulty_envs(),
        )
        return measured
    finally:
        for system in systems:
            system.close()


class Worker:
    """A process that measures one case after the other.

    It is replaced if a case ends it, as the system does when memory is short, or if a case fails in
    a way that may leave it useless: after a CUDA error, the process can no longer use the device.
    """

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def measure(self, case: Case) -> dict[str, Measurement] | str:
        """Each system's measurement by its name, or the reason why there is none."""
        return self.call(measure, case)

    def call(self, function: Callable[..., T], *arguments: Any) -> T | str:
        """Calls a function in the process; returns its result, or the reason why it has none."""
        if self._pool is None:
            # A forked process could not use CUDA if this one has used it.
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            return self._pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            self.close()
            return "the process that measured it ended, as for lack of memory"
        except Exception as problem:
            if not isinstance(problem, torch.OutOfMemoryError):
                self.close()
            first_line = str(problem).partition("\n")[0]
            return f"{type(problem).__name__}: {first_line}"[:LONGEST_REASON]

    def close(self) -> None:
        """Ends the process."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
