"""Chunks that are read while others are computed: order, memory, and on a GPU values."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from cule.devices.host_memory import host_memory
from cule.train.distributed.process_group import ProcessGroup
from cule.train.lowering.reading_ahead import ReadingAhead
from cule.train.plan.passes import Passes
from cule.train.plan.work import Work
from cule.train.trainer import Trainer
from examples.ppo import ppo


class Thing:
    """Something that is read."""


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("ahead", [False, True])
def test_the_next_is_read_before_one_is_used(count, ahead):
    told, reading = [], ReadingAhead(torch.device("cpu"))

    def read(number):
        told.append(f"read {number}")
        return number

    for number in reading.each([lambda i=i: read(i) for i in range(count)], ahead=ahead):
        told.append(f"use {number}")
    uses = [f"use {i}" for i in range(count)]
    assert [what for what in told if "use" in what] == uses
    wanted = [place for i in range(count) for place in (f"read {i}", f"use {i}")]
    if ahead:
        wanted = ["read 0"]
        for i in range(count):
            wanted += [*([f"read {i + 1}"] if i + 1 < count else []), f"use {i}"]
    assert told == wanted


@pytest.mark.parametrize(("ahead", "most"), [(False, 1), (True, 2)])
def test_two_at_most_are_there_at_the_same_time(ahead, most):
    living, counts = weakref.WeakSet(), []

    def read():
        thing = Thing()
        living.add(thing)
        counts.append(len(living))
        return thing

    gc.disable()
    try:
        for thing in ReadingAhead(torch.device("cpu")).each([read] * 6, ahead=ahead):
            assert isinstance(thing, Thing)
            del thing
    finally:
        gc.enable()
    assert max(counts) == most


@pytest.mark.parametrize(
    ("room", "far", "ahead", "at_once", "reads_ahead"),
    [
        (10_000, True, True, 64, False),  # all at once: nothing is left to be read
        (1_000, True, False, 10, False),
        (1_000, True, True, 8, True),
        (1_000, False, True, 10, False),  # it is on the device
        (110, True, True, 1, False),  # no room for another one
        (120, True, True, 1, True),
    ],
)
def test_samples_at_once_fit_into_the_room(room, far, ahead, at_once, reads_ahead):
    work = Work(64, 100, gathered=20, far=far)
    assert work.fit(room, ahead=ahead) == work.at_once == at_once
    assert work.ahead is reads_ahead
    assert work.bytes == at_once * (120 if reads_ahead else 100) <= room


def test_what_is_read_where_it_is_needs_memory_only_if_that_is_the_hosts():
    near, far = (Work(64, 100, gathered=20, in_place=15, far=far) for far in (False, True))
    assert (near.bytes, far.bytes) == (6_400, 64 * 115)
    assert (near.fit(1_000, ahead=True), far.fit(1_000, ahead=True)) == (10, 7)
    assert far.bytes == 7 * 135


def test_what_cannot_be_read_ahead_never_is():
    work = Work(64, 100, far=True)
    work.fit(1_000, ahead=True)
    assert (work.at_once, work.ahead) == (10, False)
    limited = Work(64, 100, limit=5, gathered=20, far=True)
    limited.fit(1_000, ahead=True)
    assert (limited.at_once, limited.ahead) == (5, True)


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.gpu
def test_on_a_gpu_all_values_are_read_before_they_are_used(captured):
    """With reads that are late, and memory that the next ones get."""
    device = torch.device("cuda", 0)
    far = host_memory((16, 1 << 20), torch.float32, device)
    far.copy_(torch.arange(16, device=device).view(-1, 1).expand_as(far))
    reading, sums = ReadingAhead(device), torch.zeros(16, device=device)

    def read(number):
        torch.cuda._sleep(2_000_000)
        return far[number].clone()

    def compute():
        values = reading.each([lambda i=i: read(i) for i in range(16)], ahead=True)
        for number in range(16):
            value = next(values)
            torch.cuda._sleep(1_000_000 * (number % 3))
            sums[number].add_(value.sum())
            del value

    rounds = 3
    if captured:
        graph = torch.cuda.CUDAGraph()
        compute()
        sums.zero_()
        with torch.cuda.graph(graph):
            compute()
        for _ in range(rounds):
            graph.replay()
    else:
        for _ in range(rounds):
            compute()
    wanted = [float(rounds * number * (1 << 20)) for number in range(16)]
    assert sums.tolist() == wanted


@pytest.mark.parametrize(
    ("device", "captured"),
    [
        ("cpu", False),
        pytest.param("cuda", False, marks=pytest.mark.gpu),
        pytest.param("cuda", True, marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("lag", [0, 1])
def test_a_training_that_reads_ahead_learns_the_same(device, captured, lag):
    place = torch.device(device)

    def trainer(ahead, budget=None):
        args = ppo.Args(
            game="breakout", device=device, num_envs=8, num_steps=16, minibatch_size=32, lag=lag,
            width=0.1, num_threads=1, learner_chunk=4, memory_budget=budget,
            deterministic=True, cuda_graphs=captured,
        ).on(place)  # fmt: skip
        return Trainer(ppo.PPO, args, ProcessGroup(0, 1, place), Passes(ahead=ahead))

    free, found = trainer(False), []
    memory = free.plan.memory
    works = [o.work for o in free.plan.program.operations if o.work is not None]
    least = memory.fixed + memory.ring_bytes + sum(work.least_bytes for work in works)
    budget = (least - 1) / 2**30
    free.close()
    for ahead in (False, True):
        tight = trainer(ahead, budget)
        work = tight.learner.work
        assert (work.at_once, work.ahead) == (4, ahead)
        while tight.updates < 24:
            tight.iterate()
        found.append([p.detach().clone() for p in tight.nets.trained["net"].parameters()])
        tight.close()
    for mine, its in zip(*found, strict=True):
        assert torch.equal(mine, its)
