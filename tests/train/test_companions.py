"""A process whose companion is killed says so and ends; companions that end together do not."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys

import pytest
import torch
import torch.distributed as dist

from cule.train.companions import STATUS, Companions
from cule.train.world import World


def member(rank, port, told, killed):
    """One of two processes; the second may be killed while the first waits for its message."""
    sys.stderr = open(f"{told}{rank}", "w")  # noqa: SIM115
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    world = World.join("cpu")
    with Companions(world):
        if killed and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if killed:
            dist.recv(torch.zeros(1), 1)
    world.leave()


@pytest.mark.parametrize("killed", [True, False])
def test_companions_end_with_a_sentence_if_one_is_killed(killed, tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cule.train", "test_companions"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        context.Process(target=member, args=(rank, port, str(tmp_path / "told"), killed))
        for rank in range(2)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(60)
    told = (tmp_path / "told0").read_text()
    if killed:
        assert [process.exitcode for process in started] == [STATUS, -signal.SIGKILL]
        assert told.startswith(
            "expected process 1 (acting and learning) to go on, but it has ended, and so does "
            "process 0 (acting and learning); --resume goes on from the newest checkpoint"
        )
    else:
        assert [process.exitcode for process in started] == [0, 0] and told == ""
