"""What is read over the bus: as many bytes as really are, and times by what a machine measured."""

from __future__ import annotations

import dataclasses
import re

import pytest
import torch

from cule.scope import machine
from cule.scope.machine import GATHER, Copy, Machine
from cule.train.distributed.process_group import ProcessGroup
from cule.train.plan.bus import host_reads
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer
from examples.dqn import dqn
from examples.ppo import ppo

CPU = torch.device("cpu")
SMALL = {"device": "cpu", "game": "breakout", "num_envs": 8, "width": 0.1, "num_threads": 1}
KINDS = {
    "ppo": (ppo.PPO, ppo.Args(num_steps=16, minibatch_size=32, **SMALL)),
    "dqn": (dqn.DQN, dqn.Args(memory=800, first_update=80, minibatch_size=16, **SMALL)),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "cache"))


def trainer_of(name, *, tight, ahead=True):
    """A training whose frames are on the device, or with a tight budget on the host."""
    kind, args = KINDS[name]
    free = Trainer(kind, args.on(CPU), ProcessGroup(0, 1, CPU))
    if not tight:
        return free
    memory = free.plan.memory
    works = [o.work for o in free.plan.program.operations if o.work is not None]
    least = memory.fixed + memory.ring_bytes + sum(work.least_bytes for work in works)
    free.close()
    args = dataclasses.replace(args, memory_budget=(least - 1) / 2**30)
    return Trainer(kind, args.on(CPU), ProcessGroup(0, 1, CPU), Passes(ahead=ahead))


def keep(*copies):
    key = machine.key_of(CPU)
    machine.save(Machine(key, "2026-11-29T01:02:03+00:00", 2, 2, [], list(copies), [], []))


@pytest.mark.parametrize(
    ("name", "calls"),
    [("ppo", {"evaluate values": 1, "gradient": 12}), ("dqn", {"gradient": 1})],
)
def test_bytes_of_calls_are_those_that_are_read(name, calls):
    trainer = trainer_of(name, tight=True)
    plan = trainer.plan
    reads = {one.name: count for one, count in host_reads(plan.program, plan.memory).items()}
    assert reads.keys() == calls.keys()
    (far,) = [plan.storage.far[r] for r, kept in plan.memory.allocations.items() if kept.host]
    take, read = far.take, []

    def counting(slots, envs):
        stacks = take(slots, envs)
        read.append(stacks.nbytes)
        return stacks

    while trainer.phases < 2 or trainer.phases & (trainer.phases + 1) == 0:
        trainer.iterate()  # chunks are checked, which reads more, in phases 1, 2, 4, ...
    far.take = counting
    trainer.iterate()
    wanted = sum(reads[one] * count for one, count in calls.items())
    assert sum(read) <= wanted <= 1.01 * sum(read)
    trainer.close()


def told(trainer):
    """What explain says of the bus, in one line."""
    text = trainer.plan.explain()
    trainer.close()
    assert all(len(line) <= 100 for line in text.partition("What is read")[2].splitlines())
    found = re.search(r"What is read from the host:\n(.*?)\n\n", text, re.DOTALL)
    return " ".join(found[1].split()) if found else None


def test_times_are_bytes_by_the_bandwidth_that_was_measured():
    trainer = trainer_of("ppo", tight=True)
    at_once = trainer.learner.work.at_once * trainer.learner.work.gathered
    assert 2**16 < at_once < 2**18
    keep(
        Copy(GATHER, 2**12, 0.5), Copy(GATHER, 2**16, 2.0), Copy(GATHER, 2**18, 8.0),
        Copy("inside the device", 2**16, 100.0),
    )  # fmt: skip
    # 225,792 and 903,968 bytes at 2 GB/s.
    assert told(trainer) == (
        "evaluate values: 220.5 KiB a call, which take 0.113 ms at 2 GB/s, as measured for "
        "64.0 KiB at once gradient: 882.8 KiB a call, which take 0.452 ms at 2 GB/s, as measured "
        "for 64.0 KiB at once; all but the first are read while others are computed Measured on "
        "2026-11-29; to measure it again: python -m cule.scope machine --device cpu"
    )


def test_without_a_measurement_the_command_is_named():
    found = told(trainer_of("dqn", tight=True))
    assert found == (
        "gradient: 882.2 KiB a call How long that takes is known once this has measured it: "
        "python -m cule.scope machine --device cpu"
    )
    machine.key_of(CPU).path.parent.mkdir(parents=True)
    machine.key_of(CPU).path.write_text("{}")
    assert told(trainer_of("dqn", tight=True)) == found


def test_nothing_is_said_if_no_ring_is_on_the_host():
    keep(Copy(GATHER, 2**12, 0.5))
    assert told(trainer_of("ppo", tight=False)) is None


def test_what_is_not_read_ahead_is_not_said_to_be():
    assert "while others are computed" not in told(trainer_of("ppo", tight=True, ahead=False))
