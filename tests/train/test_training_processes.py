"""Training runs that a signal stops, or that have two processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from training_runs import (
    ROOT,
    TWO_PROCESSES,
    assert_same,
    one_thread_each,
    options,
    saved,
    settings,
    trained,
    wait_for,
    without_times,
)  # fmt: skip

from cule.train.world import World


def test_train_saves_and_exits_on_sigterm_and_goes_on_exactly(tmp_path):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    command = [
        sys.executable,
        "-m",
        "examples.a2c_vtrace.train",
        *options(stopped, total_frames=10**9),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, env=one_thread_each(), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(stopped / "log.jsonl", process, 2)
        process.send_signal(signal.SIGTERM)
        told = process.communicate()[1]
    assert process.returncode == 0
    assert "--resume goes on from it" in told
    frames = saved(stopped)["steps"] * 8 * 4
    assert 0 < frames < 10**9
    trained(settings(stopped, total_frames=frames + 500, resume=True))
    trained(settings(whole, total_frames=frames + 500))
    assert_same(saved(stopped), saved(whole))
    assert without_times(stopped) == without_times(whole)


@pytest.mark.parametrize("launches", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_train_two_processes_learn_the_same_from_different_envs(tmp_path, launches):
    run = tmp_path / "run"
    for launch in range(launches):
        more = {"total_frames": 1500 * (launch + 1), "resume": True}
        done = subprocess.run(
            [*TWO_PROCESSES, *options(run, **more)],
            cwd=ROOT,
            env=one_thread_each(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    first, second = saved(run, 0), saved(run, 1)
    assert first["updates"] == second["updates"] == 23 * launches
    assert_same(first["networks"], second["networks"])
    objects = [state["plan"]["objects"] for state in (first, second)]
    assert_same(objects[0]["learner"]["optimizer"], objects[1]["learner"]["optimizer"])
    assert objects[0]["envs"]["episodes"]["score"].shape == (4,)
    rams = [of["envs"]["envs"]["tensors"]["ram"] for of in objects]
    rings = [of["plan"]["recurrents"]["far"]["actions"]["values"] for of in (first, second)]
    assert not torch.equal(*rams) and not torch.equal(*rings)
    # One of the two writes the log, and counts the frames of both.
    lines = without_times(run)
    assert [line["frames"] for line in lines] == sorted({line["frames"] for line in lines})
    rows = [json.loads(line) for line in (run / "result.jsonl").read_text().splitlines()]
    assert [row["num_gpus"] for row in rows] == [2] * launches
    assert rows[-1]["frames"] == lines[-1]["frames"] >= 1500 * launches


@pytest.mark.slow
def test_train_two_processes_stopped_by_a_signal_go_on_exactly(tmp_path):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    endless = [*TWO_PROCESSES, *options(stopped, total_frames=10**9)]
    with subprocess.Popen(
        endless, cwd=ROOT, env=one_thread_each(), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(stopped / "log.jsonl", process, 2)
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=300)[1]
    assert "--resume goes on from it" in told
    frames = saved(stopped)["steps"] * 8 * 4
    for run, more in ((stopped, {"resume": True}), (whole, {})):
        words = options(run, total_frames=frames + 500, **more)
        subprocess.run(
            [*TWO_PROCESSES, *words],
            cwd=ROOT,
            env=one_thread_each(),
            check=True,
            capture_output=True,
            timeout=300,
        )
    for rank in range(2):
        assert_same(saved(stopped, rank), saved(whole, rank))
    assert without_times(stopped) == without_times(whole)


def threads_after_leaving(rank, port, queue):
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    world = World.join("cpu")
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    assert world.any(rank == 1)
    world.leave()
    queue.put([(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()])


def test_world_leaves_no_threads_behind():
    """A thread that runs while Python ends aborts the process now and then."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        context.Process(target=threads_after_leaving, args=(rank, port, queue)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
        assert not [name for name in queue.get() if "gloo" in name]
