"""One training on several machines that share no folder, which are network namespaces here."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import machines
import pytest
from machines import Machines, ended
from training_runs import (
    assert_same,
    children_of,
    options,
    saved,
    wait_for,
    wait_for_checkpoint,
    without_times,
)

from tests.support import warm

pytestmark = pytest.mark.skipif(not machines.can_be(), reason="only root makes namespaces")
FRAMES = {"total_frames": 1600, "checkpoint_every": 400}
# Where each process is; the settings of a layout.
LAYOUTS = {
    "together": ([0, 1], {}),
    "staggered:2": ([0, 0, 1, 1], {"layout": "staggered:2"}),
    "decoupled:1+1": ([0, 1], {"layout": "decoupled:1+1", "lag": 1}),
    "decoupled:2+1": ([0, 1, 2], {"layout": "decoupled:2+1", "lag": 1, "num_batches": 4}),
    "together, three processes": ([0, 1, 1], {"num_envs": 6, "num_batches": 1}),
}


@pytest.fixture
def of(tmp_path):
    """Makes machines."""
    with Machines(3, tmp_path) as made:
        yield made


def whole(folder, count, **changes):
    """The same training on one machine, with one folder."""
    run = folder / "whole"
    words = ["-m", "examples.a2c_vtrace.train", *options(run, **FRAMES | changes)]
    for done in warm.run_ranks(count, words, env=machines.one_thread_each()):
        assert done.returncode == 0, done.stderr
    return run


def assert_as(run, other, count):
    for rank in range(count):
        assert_same(saved(run, rank), saved(other, rank))
    assert without_times(run) == without_times(other)


@pytest.mark.parametrize(
    "layout",
    [
        name if name == "decoupled:2+1" else pytest.param(name, marks=pytest.mark.slow)
        for name in LAYOUTS
    ],
)
def test_training_without_a_shared_folder_is_that_of_one_machine(layout, of, tmp_path):
    places, changes = LAYOUTS[layout]
    for frames in (800, 1600):  # the second time it goes on
        of.train(places, resume=True, **FRAMES | changes | {"total_frames": frames})
    run = of.folders[0] / "run"
    assert_as(run, whole(tmp_path, len(places), **changes), len(places))
    # All is on the machine of process 0; on the others there is nothing.
    assert (run / "result.jsonl").exists() and not (run / "run.lock").exists()
    assert [list(folder.iterdir()) for folder in of.folders[1:]] == [[], []]


def killed_at_random(of, tmp_path, kills, chosen):
    """Kills any process at random moments; the run goes on each time, and ends as one unkilled."""
    places, changes = LAYOUTS["decoupled:2+1"]
    changes = FRAMES | changes | {"total_frames": 4000, "resume": True, "timeout": 30}
    run, killed = of.folders[0] / "run", 0
    long = 12.0
    while killed < kills:
        with of.started(places, **changes) as programs:
            time.sleep(chosen.uniform(0.2, 1.0) * long)
            if all(program.poll() is not None for program in programs):
                ended(programs)
                shutil.rmtree(run)  # sooner, as it was done
                long /= 2
                continue
            lost = chosen.randrange(len(places))
            programs[lost].send_signal(signal.SIGKILL)
            statuses, said = ended(programs)
        if statuses[lost] == 0:
            continue  # it had ended
        killed += 1
        for rank, text in enumerate(said):
            if rank != lost and statuses[rank]:
                assert statuses[rank] == 2 and "Traceback" not in text, text
                assert (text.count("expected ") >= 1 and "ends" in text) or "so does" in text, text
    of.train(places, **changes)
    assert_as(run, whole(tmp_path, 3, **changes | {"resume": False}), 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_run_goes_on_exactly_after_20_kills_on_any_machine(seed, of, tmp_path):
    killed_at_random(of, tmp_path, 4, random.Random(1 + seed))


def endless(of, places, **changes):
    return of.started(places, total_frames=10**9, checkpoint_every=400, timeout=8, **changes)


@pytest.mark.parametrize("lost", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_machine_whose_link_goes_down_ends_all_with_a_sentence(lost, of):
    """No connection is closed; the others hear nothing, and the lost machine hears nobody."""
    with endless(of, [0, 1]) as programs:
        wait_for_checkpoint(of.folders[0] / "run", programs[0])
        of.cut(lost)
        statuses, said = ended(programs)
    assert statuses == [2, 2]
    assert said[0].startswith(
        "expected process 1 (acting and learning) to go on, but nothing was heard of it for 8 "
        "seconds, and process 0 (acting and learning) ends; --resume goes on"
    )
    assert said[1].startswith(
        "expected the machine with the processes' store (10.77.0.1) to go on, but nothing was "
        "heard of it for 8 seconds, and process 1 (acting and learning) ends; --resume goes on"
    )
    of.mend(lost)
    of.train([0, 1], resume=True, total_frames=saved(of.folders[0] / "run")["steps"] * 32 + 320)


@pytest.mark.parametrize("lost", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_process_that_stops_without_ending_ends_the_others(lost, of):
    with endless(of, [0, 1, 2], layout="decoupled:2+1", lag=1, num_batches=4) as programs:
        wait_for(of.folders[0] / "run" / "log.jsonl", programs[0], 2)
        programs[lost].send_signal(signal.SIGSTOP)
        others = [program for rank, program in enumerate(programs) if rank != lost]
        statuses, said = ended(others)
        programs[lost].send_signal(signal.SIGKILL)
    assert statuses == [2, 2]
    name = "process 1 (acting)" if lost else "the machine with the processes' store (10.77.0.1)"
    for text in said:
        assert text.startswith(f"expected {name} to go on, but nothing was heard of it for 8 ")
        assert text.count("\n") == 1


def test_process_that_is_killed_is_named_on_all_machines(of):
    """Also where no other process of its machine could tell that it has ended."""
    with endless(of, [0, 1, 2], layout="decoupled:2+1", lag=1, num_batches=4) as programs:
        wait_for(of.folders[0] / "run" / "log.jsonl", programs[0], 2)
        programs[2].send_signal(signal.SIGKILL)
        statuses, said = ended(programs)
    assert statuses == [2, 2, -signal.SIGKILL]
    for text in said[:2]:
        assert text.startswith("expected process 2 (acting) to go on, but it has ended, and so ")
        assert text.count("\n") == 1


def test_other_number_of_processes_goes_on_with_the_networks(of):
    run = of.folders[0] / "run"
    of.train([0, 1], total_frames=800)
    before = saved(run)
    (told, *others) = of.train([0, 1, 2, 2], total_frames=800, resume=True)
    assert "nothing is left to train" in told and not any(others)
    (told, *_) = of.train([0, 1, 2, 2], total_frames=1600, resume=True)
    assert "4 processes go on where 2 processes were: networks, optimizers and counts go" in told
    after = saved(run)
    assert after["steps"] >= 50 and after["updates"] > before["updates"]
    assert after["dealt"]["times"] == [[before["steps"] * 32, 2, 4]]
    row = json.loads((run / "result.jsonl").read_text().splitlines()[-1])
    assert row["dealt"] == after["dealt"]["times"] and row["frames"] == after["steps"] * 32
    frames = [line["frames"] for line in without_times(run)]
    assert frames == sorted({*frames}) and frames[-1] == row["frames"]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_torchrun_starts_all_again_and_the_run_goes_on(killed, of, tmp_path):
    """Two torchruns whose machines share no folder; no lock of what was killed is in the way."""
    run, frames = of.folders[0] / "run", 8_000
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1",
        "--max-restarts", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "10.77.0.1:29555",
    ]  # fmt: skip
    # By the machine's name torchrun would find this machine's address, of no namespace.
    places = [
        ["--local-addr", f"10.77.0.{number + 1}", "--rdzv-conf", f"is_host={1 - number}", "-m"]
        for number in range(2)
    ]
    words = [
        "examples.a2c_vtrace.train",
        *options("run", total_frames=frames, checkpoint_every=400, resume=True, timeout=30),
    ]
    environment = machines.one_thread_each() | {
        "PYTHONPATH": str(warm.ROOT), "GLOO_SOCKET_IFNAME": "eth0",
    }  # fmt: skip
    with contextlib.ExitStack() as started:
        agents = [
            started.enter_context(
                subprocess.Popen(
                    ["ip", "netns", "exec", name, *command, *place, *words],
                    cwd=folder,
                    env=environment,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for name, folder, place in zip(of.names, of.folders, places, strict=False)
        ]
        wait_for(run / "log.jsonl", agents[0], 6)
        (worker,) = children_of(agents[killed].pid)
        os.kill(worker, signal.SIGKILL)
        said = [agent.communicate(timeout=300)[1] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], said
    of.train([0, 1], resume=True, total_frames=frames)
    assert_as(run, whole(tmp_path, 2, total_frames=frames), 2)
