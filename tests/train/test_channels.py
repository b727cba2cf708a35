"""Channels between processes, through shared memory and by messages: all arrives, in order."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from training_runs import one_thread_each

from cule.train.distributed import process_group, shared_memory
from tests.support import warm

# Rank 1 sends to rank 0, each faster than the other at times. The arguments: the device, whether
# they share memory, and what else happens.
PROGRAM = """
import os, random, signal, sys, time
import torch
import torch.distributed as dist
from cule.train.distributed.channels import Receiver, Sender
from cule.train.distributed.connections import Connections
from cule.train.distributed.process_group import ProcessGroup
from cule.train.layout import Layout

device, shared, what = sys.argv[1:]
processes = ProcessGroup.join(device, Layout.decoupled([0], [0] if shared == "yes" else [1]))
connections = Connections(processes)
if device == "cpu":
    connections.share_memory = lambda rank: shared == "yes"
assert connections.share_memory(1 - processes.rank) == (shared == "yes")
likes = [((3, 5), torch.float32), ((3,), torch.bool), ((3, 7), torch.uint8)]
chosen, count, slots = random.Random(processes.rank), 200, 3

def values(n, device):
    return [torch.full(shape, n % 251, device=device).to(dtype) for shape, dtype in likes]

def pause():
    if chosen.random() < 0.05:
        time.sleep(0.01)

if processes.rank == 1:
    box = connections.outbox(likes, 0, slots, announces=True)
    sender, again = Sender([box]), Sender([connections.outbox(likes, 0, slots)])
    dist.recv(torch.zeros(1), 0)
    for n in range(count):
        pause()
        if what == "kill" and n == 100:
            mapped = [line.split(maxsplit=5)[5:] for line in open("/proc/self/maps")]
            print(*(name[0].strip() for name in mapped if name), sep="\\n", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        sender.send(values(n, processes.device))
        again.send(values(n + 1, processes.device))
else:
    box, again = connections.inbox(likes, 1, announced=True), connections.inbox(likes, 1)
    receiver = Receiver([box])
    for n in range(count):
        pause()
        box.expect()
        if not n:
            assert not box.ready()
            dist.send(torch.zeros(1), 1)
        while not box.ready():
            time.sleep(0.001)
        for some, number in ((receiver.receive(), n), (Receiver([again]).receive(), n + 1)):
            for got, want in zip(some, values(number, "cpu"), strict=True):
                assert torch.equal(got.cpu(), want), (number, got)
processes.barrier()
processes.synchronize()
processes.leave()
"""


def run(device, shared, what=""):
    env = one_thread_each()
    return warm.run_ranks(2, ["-c", PROGRAM, device, shared, what], env=env, timeout=120)


@pytest.mark.parametrize(
    ("device", "shared"),
    [
        ("cpu", "yes"),
        ("cpu", "no"),
        pytest.param("cuda", "yes", marks=pytest.mark.gpu),
        pytest.param("cuda", "no", marks=pytest.mark.gpu),
    ],
)
def test_all_arrives_once_and_in_order(device, shared):
    if device == "cuda" and shared == "no" and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    for done in run(device, shared):
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shared", ["yes", "no"])
def test_end_of_the_sender_is_an_error_of_the_connection(shared):
    receiver, sender = run("cpu", shared, "kill")
    assert sender.returncode == -signal.SIGKILL and receiver.returncode == 1
    last = receiver.stderr.strip().splitlines()[-1]
    assert "DistError: the process at the other end of a channel has ended" in last or (
        shared == "no" and "RuntimeError" in last
    )


def test_memory_of_channels_leaves_nothing_behind():
    _, sender = run("cpu", "yes", "kill")
    mapped = sender.stdout.splitlines()
    assert "/memfd:cule (deleted)" in mapped
    # Other programs' files come and go there meanwhile: only those that the sender had count.
    assert not [name for name in mapped if name.startswith("/dev/shm/") and os.path.exists(name)]


def test_who_waits_for_a_byte_waits_no_longer_than_the_timeout(monkeypatch):
    monkeypatch.setattr(process_group, "_timeout", timedelta(seconds=0.05))
    read, write = os.pipe()
    with pytest.raises(dist.DistError, match=r"has said nothing for 0\.05 s"):
        shared_memory._byte(read)
    os.close(write)
    with pytest.raises(dist.DistError, match="has ended"):
        shared_memory._byte(read)
    os.close(read)
