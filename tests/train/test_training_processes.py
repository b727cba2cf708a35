"""Training runs that a signal stops, or that have two processes."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import torch
import torch._dynamo  # which each process that joins others needs
from training_runs import (
    ROOT,
    TWO_PROCESSES,
    assert_same,
    one_thread_each,
    options,
    processes,
    saved,
    settings,
    trained,
    wait_for,
    without_times,
)  # fmt: skip

from cule.train.checkpoints import checkpoint
from cule.train.command import options_of
from cule.train.distributed import meeting, placement, ranks
from cule.train.distributed.process_group import ProcessGroup
from cule.train.layout import Layout
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
        "logger": "none", "plot": False, **more,
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
    """Claims a folder, and loads what is there, or says why it cannot."""
    processes = join_as(rank, port)
    try:
        with processes.claimed(folder) as claimed:
            state = checkpoint.load(folder / "checkpoints", claimed)
            queue.put((rank, claimed.far, state and state["numbers"].tolist()))
    except ValueError as problem:
        queue.put((rank, (), str(problem)))
    processes.leave()


def claimed_and_loaded(*folders):
    """What processes see, each in its folder, as on machines with disks of their own."""
    context, port = multiprocessing.get_context("fork"), free_port()
    queue = context.SimpleQueue()
    both = [
        context.Process(target=claim_and_load, args=(rank, port, folder, queue))
        for rank, folder in enumerate(folders)
    ]
    for process in both:
        process.start()
    told = sorted(queue.get() for _ in both)
    for process in both:
        process.join()
        assert process.exitcode == 0
    return told


def save_two(folder, *numbers, marks="aa"):
    """A set of two processes' files."""
    for rank, (some, mark) in enumerate(zip(numbers, marks, strict=True)):
        state = {"numbers": torch.tensor(some), "set": mark}
        path = folder / checkpoint.part_of(100, rank)
        checkpoint.FILE.write(path, functools.partial(torch.save, state))
    (folder / "step-100-of-2.complete").touch()


def test_process_without_the_folder_gets_its_part_from_the_first(tmp_path):
    """As on two machines, each with a disk of its own."""
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "checkpoints").mkdir(parents=True)
    save_two(one / "checkpoints", [1], range(2_000_000))  # several pieces
    first, second = claimed_and_loaded(one, other)
    assert first == (0, (1,), [1])
    assert second[:2] == (1, (1,)) and second[2] == [*range(2_000_000)]
    assert not other.exists() and not (one / "run.lock").exists()
    assert [far for _, far, _ in claimed_and_loaded(one, one)] == [(), ()]


def test_parts_that_are_missing_or_of_another_moment_are_refused(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    folder = one / "checkpoints"
    folder.mkdir(parents=True)
    save_two(folder, [1], [2], marks="ab")
    for folders in ((one, other), (one, one)):
        told = [text for *_, text in claimed_and_loaded(*folders)]
        assert told == [f"expected a whole checkpoint in {f / 'checkpoints'}, got 1, all of them "
                        "damaged" for f in folders]  # fmt: skip
    (folder / checkpoint.part_of(100, 1)).unlink()
    told = [text for *_, text in claimed_and_loaded(one, other)]
    assert all(text.startswith("expected a whole checkpoint in ") for text in told)
    # The machine that had number 0 before has another number now.
    told = [text for *_, text in claimed_and_loaded(other, one)]
    assert all(
        text.startswith(f"expected checkpoints on the machine of process 0, whose {where}")
        for text, where in zip(told, (other, one), strict=True)
    )


def meet_as(rank, size, port, seconds, queue):
    """Joins the others, or says why it cannot."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    if rank == 0:
        meeting.POLL = 0.5  # the others have come when it looks
    try:
        processes = ProcessGroup.join("cpu", timeout=seconds)
        processes.barrier()
        processes.leave()
        queue.put("")
    except (ValueError, RuntimeError) as problem:
        queue.put(str(problem))


@pytest.mark.parametrize(
    ("them", "told"),
    [
        ([(0, 2), (1, 3)], "expected one WORLD_SIZE for all processes that train together, got "),
        ([(0, 3), (1, 3), (1, 3)], "expected a RANK of its own for each of 3 .*, got 1 twice"),
        ([(0, 3), (1, 3)], r"expected 3 processes to meet at 127.0.0.1:\d+ within 4 .*, but 2 of"),
    ],
)  # fmt: skip
def test_processes_with_wrong_numbers_end_with_a_sentence(them, told):
    context, port = multiprocessing.get_context("fork"), free_port()
    queue = context.SimpleQueue()
    every = [context.Process(target=meet_as, args=(*numbers, port, 4, queue)) for numbers in them]
    for process in every:
        process.start()
    said = [queue.get() for _ in every]
    for process in every:
        process.join(60)
        assert process.exitcode == 0
    assert any(re.search(told, text) for text in said)
    assert all(text.startswith("expected ") for text in said), said


@pytest.fixture
def environment(monkeypatch):
    """Sets the environment of a process, and of it alone."""
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def put(**values):
        for name in [name for name in os.environ if name.startswith(("SLURM_", "MASTER_"))]:
            del os.environ[name]
        os.environ.update(values)

    return put


# What srun sets for the third of four tasks on two machines, and the user.
SRUN = {
    "SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
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
        (SRUN | {"SLURM_PROCID": "4"}, "expected SLURM_PROCID .* below 4, as srun sets .*, got 4"),
        (SRUN | {"SLURM_LOCALID": ""}, "expected SLURM_LOCALID .* below 4, as srun .* nothing"),
        (SRUN | {"MASTER_PORT": "x"}, "expected MASTER_PORT .* below 65,536"),
    ],
)
def test_world_of_which_the_environment_says_a_part_is_refused(
    given, message, environment, monkeypatch
):
    environment(**given)
    monkeypatch.setattr("cule._core.has_cuda", lambda: True)
    monkeypatch.setattr(placement, "find_device", lambda name: torch.device("cuda"))
    with pytest.raises(ValueError, match=message):
        ProcessGroup.join("cuda")


def test_world_of_one_task_of_slurm_or_of_a_script_of_sbatch_is_one_process(environment):
    environment(SLURM_PROCID="0", SLURM_NTASKS="4")
    assert ProcessGroup.join("cpu").size == 1
    environment(SLURM_PROCID="0", SLURM_NTASKS="4", SLURM_STEP_NUM_TASKS="1")
    assert ProcessGroup.join("cpu").size == 1
    # The script says where srun's tasks will meet, and runs a program itself.
    environment(SLURM_PROCID="0", SLURM_NTASKS="4", MASTER_ADDR="one", MASTER_PORT="29500")
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


def test_tasks_of_srun_are_processes_if_the_user_says_where_they_meet(environment):
    environment(**SRUN)
    assert ranks.rank_and_size() == (2, 4)
    taken = {"RANK": "2", "LOCAL_RANK": "0", "GROUP_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert taken.items() <= os.environ.items() and os.environ["WORLD_SIZE"] == "4"
    environment(RANK="1", WORLD_SIZE="2", **SRUN)
    assert ranks.rank_and_size() == (1, 2), "torchrun's numbers come first"


def test_gpus_of_several_machines_are_those_of_local_ranks(environment):
    environment(LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
    for text in ("together", "apart:8", "decoupled:3+1", "decoupled:2+2"):
        layout = Layout.parse(text)
        ranks.check_machines(layout, 3, 4)
        assert ranks.gpu_of(layout, 3, 4) == 1
    assert ranks.gpu_of(Layout.parse("staggered:2"), 3, 4) == 0
    with pytest.raises(ValueError, match="expected a multiple of 2 processes on each machine, one"):
        ranks.check_machines(Layout.parse("staggered:2"), 2, 4)
    with pytest.raises(ValueError, match=r"only says how many .* got decoupled:\[0,2\]\+\[1,3\]"):
        ranks.check_machines(Layout.parse("decoupled:[0,2]+[1,3]"), 3, 4)
    os.environ["LOCAL_WORLD_SIZE"] = "4"
    ranks.check_machines(Layout.parse("decoupled:[0,2]+[1,3]"), 3, 4)
    assert ranks.gpu_of(Layout.parse("decoupled:[0,2]+[1,3]"), 3, 4) == 2
