"""Training runs that a signal stops, or that have two processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import torch
from training_runs import (
    ROOT,
    TWO_PROCESSES,
    assert_same,
    one_thread_each,
    options,
    processes,
    save,
    saved,
    settings,
    trained,
    wait_for,
    without_times,
)  # fmt: skip

from cule.train.checkpoints import checkpoint
from cule.train.command import options_of
from cule.train.distributed.process_group import ProcessGroup
from tests.support import warm


def test_train_saves_and_exits_on_sigterm_and_goes_on_exactly(tmp_path):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    command = ["-m", "examples.a2c_vtrace.train", *options(stopped, total_frames=10**9)]
    with warm.start(command, env=one_thread_each()) as process:
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
    again = "torchrun --nproc-per-node 2 -m examples.a2c_vtrace.train --folder"
    assert all(row["command"].startswith(again) for row in rows)
    assert rows[-1]["frames"] == lines[-1]["frames"] >= 1500 * launches


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "more", "updates"),
    [
        # 16 steps of its 4 envs are two minibatches; of 8 envs they would be four.
        ("examples.ppo.ppo", {"num_steps": 4, "minibatch_size": 8, "update_epochs": 1}, 2 * 4),
        # 10 steps of all envs come before the first update.
        ("examples.dqn.dqn", {"memory": 64, "first_update": 80, "minibatch_size": 8}, 16 - 9),
    ],
)  # fmt: skip
def test_minibatches_are_each_process_s_and_frames_all_processes(program, more, updates, tmp_path):
    given = {
        "folder": tmp_path, "game": "breakout", "device": "cpu", "num_envs": 8, "width": 0.1,
        "num_threads": 1, "total_frames": 16 * 8 * 4, "eval_episodes": 0, "progress": False,
        "tensorboard": False, "plot": False, **more,
    }  # fmt: skip
    done = subprocess.run(
        [*processes(2, program), *options_of(given)], cwd=ROOT, env=one_thread_each(),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    row = json.loads((tmp_path / "result.jsonl").read_text())
    assert (row["frames"], row["updates"] // row.get("updates_at_once", 1)) == (16 * 8 * 4, updates)


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


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def join_as(rank, port):
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    return ProcessGroup.join("cpu")


def claim_and_load(rank, port, folder, queue):
    """Claims a folder, or says why it cannot."""
    processes = join_as(rank, port)
    try:
        with processes.claimed(folder):
            queue.put((rank, "claimed"))
            processes.barrier()
    except ValueError as problem:
        queue.put((rank, str(problem)))
    # Without a claim, too: the other one's list of sets decides, so that no process waits.
    try:
        queue.put((rank, str(checkpoint.load(folder / "checkpoints", processes))))
    except ValueError as problem:
        queue.put((rank, str(problem)))
    processes.leave()


def test_processes_that_share_no_folder_end_with_a_sentence(tmp_path):
    """As on two machines, each with a disk of its own."""
    one, other = tmp_path / "one", tmp_path / "other"
    save(one / "checkpoints", 100, {"number": 1})
    context, port = multiprocessing.get_context("fork"), free_port()
    queue = context.SimpleQueue()
    both = [
        context.Process(target=claim_and_load, args=(rank, port, folder, queue))
        for rank, folder in enumerate([one, other])
    ]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    told = sorted(queue.get() for _ in range(4))
    assert told[0][1].startswith("expected a whole checkpoint in")
    assert told[1][1].startswith("expected all processes to go on")
    assert told[2][1].startswith(f"expected a folder that all machines share, got {other}")
    assert f"than for process {both[0].pid} on" in told[2][1]
    assert told[3][1].startswith("expected a whole checkpoint in")
    assert not other.exists() and not (one / "run.lock").exists()


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RANK": "1"}, "expected WORLD_SIZE in the environment to be a number below 1,048,576"),
        ({"WORLD_SIZE": "2"}, "expected RANK in .* below 2, as torchrun sets .*, got nothing"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "expected RANK in .* got 2"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "expected RANK in .* got one"),
        (
            {"RANK": "0", "WORLD_SIZE": "2"},
            "expected MASTER_ADDR and MASTER_PORT in the environment of one of 2 processes",
        ),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
            "expected LOCAL_RANK in the environment .* nothing",
        ),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}, "got one of 4 tasks of Slurm alone"),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}, "got one of 4 tasks of Slurm alone"),
    ],
)
def test_world_of_which_the_environment_says_a_part_is_refused(environment, message, monkeypatch):
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        "cule.train.distributed.process_group.find_device", lambda name: torch.device("cuda")
    )
    with pytest.raises(ValueError, match=message):
        ProcessGroup.join("cuda")


def test_world_of_one_task_of_slurm_or_of_a_script_of_sbatch_is_one_process(monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert ProcessGroup.join("cpu").size == 1
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    assert ProcessGroup.join("cpu").size == 1


def threads_after_leaving(rank, port, queue):
    processes = join_as(rank, port)
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    assert processes.any(rank == 1)
    processes.leave()
    queue.put([(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()])


def test_world_leaves_no_threads_behind():
    """A thread that runs while Python ends aborts the process now and then."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    port = free_port()
    processes = [
        context.Process(target=threads_after_leaving, args=(rank, port, queue)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
        assert not [name for name in queue.get() if "gloo" in name]
