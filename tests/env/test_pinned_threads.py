"""`thread_affinity_offset` pins an env's threads, and says where it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import cule
from cule import _core
from cule.devices.device import cpus_of_threads

CPU = torch.device("cpu")
pinnable = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="threads cannot be pinned on this system"
)


def thread_numbers() -> set[int]:
    return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}


@pinnable
def test_threads_run_on_cpus_of_their_own_and_the_callers_is_left_alone() -> None:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("needs two CPUs")
    before = thread_numbers()
    env = cule.AtariEnv(
        "pong", 4, device="cpu", num_threads=2, thread_affinity_offset=1, reset_pool_size=1
    )
    env.reset(seed=0)
    workers = [
        os.sched_getaffinity(number)
        for number in thread_numbers() - before
        if len(os.sched_getaffinity(number)) == 1
    ]
    assert workers == [{usable[2 % len(usable)]}]
    assert sorted(os.sched_getaffinity(0)) == usable
    free = cule.AtariEnv("pong", 4, device="cpu", num_threads=2, reset_pool_size=1)
    free.reset(seed=0)
    for number in range(5):
        actions = [number % env.single_action_space.n] * 4
        assert torch.equal(env.step(actions)[0], free.step(actions)[0])


@pinnable
def test_cpus_go_round_in_a_circle() -> None:
    usable = sorted(os.sched_getaffinity(0))
    count = len(usable)
    assert cpus_of_threads(count, -1, CPU) == ()
    assert cpus_of_threads(count, 0, CPU) == tuple(usable)
    assert cpus_of_threads(count, count - 1, CPU) == tuple(usable[-1:] + usable[:-1])
    assert cpus_of_threads(1, 5 * count, CPU) == (usable[0],)
    assert cpus_of_threads(count + 1, 0, CPU) == (*usable, usable[0])


def test_other_devices_and_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"thread_affinity_offset with device='cpu', got .* cuda"):
        cpus_of_threads(1, 0, torch.device("cuda"))
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    with pytest.raises(ValueError, match=r"threads cannot be pinned on .*, got 3"):
        cpus_of_threads(1, 3, CPU)


@pinnable
def test_a_cpu_that_there_is_not_is_refused() -> None:
    with pytest.raises(RuntimeError, match="expected to pin a thread to CPU 1000000, as"):
        _core.cpu_backend(2, (0, 1_000_000))
