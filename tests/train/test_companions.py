"""A process whose companion is killed says so and ends; watchdog that end together do not.

So does one whose torchrun is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from training_runs import ROOT, children_of, one_thread_each, processes

from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.watchdog import STATUS, Watchdog


def member(rank, port, told, killed):
    """One of two processes; the second may be killed while the first waits for its message."""
    sys.stderr = open(f"{told}{rank}", "w")  # noqa: SIM115
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    processes = ProcessGroup.join("cpu")
    with Watchdog(processes):
        if killed and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if killed:
            dist.recv(torch.zeros(1), 1)
    processes.leave()


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


def runs(pid):
    """Whether there is a process that has not ended, though nobody may have asked how it did."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# A training's processes, and those of a search whose first trial is told.
TRAINING = """
import time
from pathlib import Path
from cule.train.distributed.watchdog import Watchdog
from cule.train.distributed.process_group import ProcessGroup

processes = ProcessGroup.join("cpu")
with Watchdog(processes):
    Path(f"{folder}/{processes.rank}").touch()
    time.sleep(600)
"""


SEARCH = """
import time
from pathlib import Path
from cule import train
from examples.a2c_vtrace.train import A2C, Args

def wait(trial):
    for rank in range({count}):
        Path(f"{folder}/{rank}").touch()
    time.sleep(600)

args = Args(device="cpu", num_threads=1, num_batches=2, num_steps=4)
train.tune(A2C, args, {"num_envs": [8]}, again=True, on_trial=wait)
"""


@pytest.mark.parametrize(
    ("waiting", "count"),
    [
        pytest.param(TRAINING, 1, id="training-1"), pytest.param(TRAINING, 2, id="training-2"),
        pytest.param(SEARCH, 1, id="search-1"),
        pytest.param(SEARCH, 2, id="search-2", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_they_end_with_a_sentence_if_torchrun_is_killed(waiting, count, tmp_path):
    script, output = tmp_path / "waiting.py", tmp_path / "output"
    script.write_text(waiting.replace("{folder}", str(tmp_path)).replace("{count}", str(count)))
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with output.open("w") as printed, subprocess.Popen(
        [*processes(count)[:-2], str(script)], cwd=ROOT, stdout=printed, stderr=printed,
        env=one_thread_each() | {"PYTHONPATH": path},
    ) as torchrun:  # fmt: skip
        while not all((tmp_path / str(rank)).exists() for rank in range(count)):
            assert torchrun.poll() is None, output.read_text()
            time.sleep(0.05)
        workers = children_of(torchrun.pid)
        assert len(workers) == count
        torchrun.kill()
        torchrun.wait()
        end = time.monotonic() + 30
        while any(map(runs, workers)):
            assert time.monotonic() < end, "a process has stayed"
            time.sleep(0.05)
    told = output.read_text()
    assert "to go on, but it has ended, and so does process" in told
    if count == 1:
        assert "expected torchrun to go on, but it has ended, and so does process 0 " in told
    advice = {TRAINING: "--resume goes on from", SEARCH: "start the search again"}[waiting]
    assert f"(acting and learning); {advice}" in told
