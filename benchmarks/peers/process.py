"""A system in a process of its own, whose iterations begin when they are asked for."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from benchmarks.peers.setting import Setting


class Ended(RuntimeError):
    """A system could not go on; the text says why."""


@dataclass(frozen=True)
class Iteration:
    """What an iteration took.

    Attributes:
        seconds: how long it took; the first one includes the start.
        peak_bytes: the most memory so far: of tensors on a GPU, or of the process.
    """

    seconds: float
    peak_bytes: int


def train(name: str, setting: Setting, pipe: Connection) -> None:
    """Trains; the main function of a system's process."""
    sys.stdout = sys.stderr  # what libraries print is no result
    torch.set_num_threads(1)
    # TF32, as some of them allow it themselves.
    torch.set_float32_matmul_precision("high")
    device = torch.device(setting.device)
    on_gpu = device.type == "cuda"
    if on_gpu and setting.memory is not None:
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, setting.memory * 2**30 / total))
    begun = time.perf_counter()

    def iterated() -> None:
        nonlocal begun
        if on_gpu:
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - begun
        peak = (
            torch.cuda.max_memory_allocated(device)
            if on_gpu
            else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        )
        pipe.send(Iteration(seconds, peak))
        pipe.recv()
        begun = time.perf_counter()

    try:
        from benchmarks.peers.systems import SYSTEMS

        SYSTEMS[name](setting, iterated)
    except EOFError:
        pass  # nobody asks for more
    except Exception as problem:
        pipe.send(f"{type(problem).__name__}: {problem}")
        raise


class System:
    """A context manager: a system that trains in a process of its own.

    Args:
        name: one of systems.SYSTEMS.
        setting: in which it trains.
        patience: the most seconds of an iteration.
    """

    def __init__(self, name: str, setting: Setting, patience: float):
        self.name, self.patience = name, patience
        context = multiprocessing.get_context("spawn")
        self._pipe, its = context.Pipe()
        self._process = context.Process(target=train, args=(name, setting, its))
        self._process.start()
        its.close()
        self._begun = False

    def __enter__(self) -> System:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def iterate(self) -> Iteration:
        """Lets it do an iteration.

        Raises:
            Ended: it could not.
        """
        try:
            if self._begun:
                self._pipe.send(None)
            self._begun = True
            if not self._pipe.poll(self.patience):
                raise Ended(f"an iteration takes longer than {self.patience:g} s")
            answer: Any = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(10)
            raise Ended(f"its process ended with status {self._process.exitcode}") from None
        if isinstance(answer, str):
            raise Ended(answer)
        assert isinstance(answer, Iteration)
        return answer


def in_turns(
    systems: Sequence[System], warm_up: int, rounds: int
) -> dict[str, list[Iteration] | str]:
    """Iterations of each system in turns, after some that do not count; or why it ended."""
    found: dict[str, list[Iteration] | str] = {system.name: [] for system in systems}

    def iterate(system: System) -> None:
        done = found[system.name]
        if isinstance(done, list):
            try:
                done.append(system.iterate())
            except Ended as problem:
                found[system.name] = str(problem)

    for system in systems:
        for _ in range(warm_up):
            iterate(system)
    for _ in range(rounds):
        for system in systems:
            iterate(system)
    return {name: done if isinstance(done, str) else done[warm_up:] for name, done in found.items()}
