"""Sweeps on a Ray cluster of two nodes, which are lost, and drivers that are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pretender
import pytest

from cule.train.sweep import Sweep, node
from cule.train.sweep.placing import Placing, executor_of
from tests.support.waiting import wait_for

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

from cule.train.sweep.on_ray import OnRay, address_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DRIVER = pretender.DRIVER.replace("EXECUTOR", "OnRay()")


@pytest.fixture(scope="module")
def head():
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def cluster(head, monkeypatch):
    """A cluster of two nodes with two CPUs each, beside a head that has none."""
    while len(head.worker_nodes) < 2:
        head.add_node(num_cpus=2)
    head.wait_for_nodes()
    monkeypatch.setenv("RAY_ADDRESS", head.address)
    yield head
    ray.shutdown()


def lose_one(cluster):
    """Kills a node, which nothing can be told any more."""
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)


@pytest.fixture
def program(tmp_path):
    return pretender.written(tmp_path)


def test_sweep_goes_on_where_a_node_is_lost(tmp_path, program, cluster):
    """Trainings of the lost node go on from their checkpoints on the other one."""
    jobs = pretender.jobs_of(program, 4, "--pause", "0.3", frames=1000)
    made = Sweep(jobs, tmp_path / "runs", executor=OnRay())
    lost = []

    def lose(states):
        if not lost and all(state.frames >= 200 for state in states):
            lost.extend(state.place for state in states)
            lose_one(cluster)

    rows = made.run(lose)
    assert lost and len(set(lost)) == 2
    assert [row["seed"] for row in rows] == [0, 1, 2, 3]
    pretender.check_once(tmp_path / "runs", 4, frames=1000)
    losses = [state.losses for state in made.states]
    assert sorted(losses) == [0, 0, 1, 1] and [state.starts for state in made.states] == [
        1 + count for count in losses
    ]
    for state in made.states:
        notes = "\n".join(state.notes)
        work = (tmp_path / "runs" / state.job.name / "work").read_text().splitlines()
        assert work.count("100") == 1  # none has begun again
        if state.losses:
            assert "was lost (" in notes and "from the newest checkpoint in the shared" in notes
            assert "goes on from its checkpoint on " in notes
        else:
            assert notes.startswith("begins at the first frame on ") and "\n" not in notes


def test_sweep_killed_and_started_again_trains_nothing_twice(tmp_path, program, cluster):
    folder = tmp_path / "runs"
    words = [sys.executable, "-c", DRIVER, program, str(folder), "3", "1000", "0.3"]
    with subprocess.Popen(
        words, cwd=ROOT, env=pretender.environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        pretender.wait_for_checkpoints(process, folder, 3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    before = [pretender.starts(folder / f"t-{n}") for n in range(3)]
    made = Sweep(pretender.jobs_of(program, 3, "--pause", "0.3", frames=1000), folder,
                 executor=OnRay())  # fmt: skip
    begun = []

    def look(states):
        if not begun:
            begun.append([pid for pids in before for pid in pids if pretender.lives(pid)])

    rows = made.run(look)
    assert begun == [[]]  # none of the old ones lives once the new sweep has begun
    assert len(rows) == 3 and all(len(pids) == 1 for pids in before)
    pretender.check_once(folder, 3, frames=1000)
    for n in range(3):
        assert len(pretender.starts(folder / f"t-{n}")) == 2
        assert (folder / f"t-{n}" / "work").read_text().splitlines().count("100") == 1


@pytest.mark.slow
def test_sweep_stopped_lets_trainings_write_a_checkpoint(tmp_path, program, cluster):
    """Five trainings for four places: the fifth waits, and is queued until it is stopped."""
    folder = tmp_path / "runs"
    words = [sys.executable, "-c", DRIVER, program, str(folder), "5", "100000", "0.2"]
    with subprocess.Popen(
        words, cwd=ROOT, env=pretender.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        pretender.wait_for_checkpoints(process, folder, 4)
        process.send_signal(signal.SIGINT)
        told, error = process.communicate(timeout=120)
    assert told == f"{['stopped'] * 5} True\n", error
    assert error.count("state queued") == 5
    stopped = list(folder.glob("t-*/result.jsonl"))
    assert len(stopped) == 4 and all('"interrupted": true' in one.read_text() for one in stopped)


@pytest.mark.slow
def test_failed_training_is_started_once_more(tmp_path, program, cluster):
    made = Sweep(pretender.jobs_of(program, 1, "--fails", "9"), tmp_path, executor=OnRay())
    (row,) = made.run()
    assert row["error"].endswith("The disk is full.")
    assert (made.states[0].starts, made.states[0].losses) == (2, 0)


def test_machine_that_does_not_see_the_folder_says_so_and_sends_the_result(
    tmp_path, program, cluster, monkeypatch
):
    """As if the folder were another one there: its word is another."""
    monkeypatch.setattr(node, "IDENTITY", "elsewhere.id")
    monkeypatch.setattr("cule.train.sweep.cluster.IDENTITY", "sweep.id")
    received = []
    write = Path.write_bytes
    monkeypatch.setattr(
        Path, "write_bytes", lambda path, data: received.append(path.name) or write(path, data)
    )
    made = Sweep(pretender.jobs_of(program, 1), tmp_path / "runs", executor=OnRay())
    (row,) = made.run()
    assert row["seed"] == 0 and received == ["result.jsonl", "log.jsonl", "output.log"]
    assert "in a folder of that machine alone" in made.states[0].notes[0]
    assert (tmp_path / "runs" / "node.id").read_text() == (tmp_path / "runs/sweep.id").read_text()
    made = Sweep(pretender.jobs_of(program, 1), tmp_path / "suite", executor=OnRay(shared=True))
    (row,) = made.run()
    assert row["error"].startswith("expected a folder that all machines share, got ")


@pytest.mark.parametrize("address", ["", "127.0.0.1", "ray://127.0.0.1:10001", "host:port"])
def test_address_that_is_none(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ValueError, match="expected RAY_ADDRESS or ray_address to be HOST:PORT of"):
        address_of(None)


def test_cluster_that_is_not_there(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(
        ValueError, match=r"expected a Ray cluster that answers at 127\.0\.0\.1:1, "
    ):
        executor_of(Placing(executor="ray", device="cpu", ray_address="127.0.0.1:1"))


def test_cluster_without_room(cluster):
    with pytest.raises(ValueError, match="expected a machine with 3 CPUs and 0 GPUs in the Ray clu"
                       "ster, got 0 and 0, 2 and 0, 2 and 0"):  # fmt: skip
        executor_of(Placing(executor="ray", device="cpu", cpus_per_training=3))
    with pytest.raises(ValueError, match="expected a machine with 1 CPUs and 1 GPUs in the Ray"):
        executor_of(Placing(executor="ray"))


@pytest.mark.slow
def test_training_without_room_is_not_waited_for_for_ever(tmp_path, program, cluster, monkeypatch):
    """All machines that could hold it are lost."""
    monkeypatch.setattr("cule.train.sweep.on_ray.ROOM", 3.0)
    made = Sweep(pretender.jobs_of(program, 1, "--pause", "1"), tmp_path, executor=OnRay())

    def lose(states):
        if states[0].frames and cluster.worker_nodes:
            lose_one(cluster)
            lose_one(cluster)

    (row,) = made.run(lose)
    assert "expected a machine that can hold a training, got none in 3 s" in row["error"]


@pytest.mark.slow
def test_sweep_of_twelve_trainings_survives_the_loss_of_a_node(tmp_path, cluster):
    """Real trainings, as the program starts them; the lost ones have the others' numbers."""
    folder = tmp_path / "runs"
    words = [
        sys.executable, "-m", "cule.train.sweep", "--algorithm", "examples.ppo.ppo", "--folder",
        str(folder), "--device", "cpu", "--executor", "ray", "--games", "pong", "breakout",
        "--seeds", *map(str, range(6)), "--at-once", "2", "--cpus-per-training", "2", "--",
        "--num-envs", "4", "--num-steps", "8", "--minibatch-size", "16", "--width", "0.1",
        "--num-threads", "1", "--eval-episodes", "0", "--no-plot", "--logger", "none",
        "--checkpoint-every", "500", "--log-every", "1", "--total-frames", "6000",
    ]  # fmt: skip
    with subprocess.Popen(
        words, cwd=ROOT, env=pretender.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip

        def in_the_middle():
            done = list(folder.glob("*/result.jsonl"))
            saved = {path.parents[1] for path in folder.glob("*/checkpoints/*.complete")}
            return process.poll() is not None or (
                len(done) >= 3 and len(saved - {path.parent for path in done}) == 2
            )

        wait_for(in_the_middle, 600)
        lose_one(cluster)
        _, error = process.communicate(timeout=900)
    assert process.returncode == 0, error
    assert "was lost (" in error and "goes on from its checkpoint on" in error
    rows = [json.loads(line) for line in (folder / "results.jsonl").open()]
    assert [(row["game"], row["seed"]) for row in rows] == [
        (game, seed) for game in ("pong", "breakout") for seed in range(6)
    ]
    for row in rows:
        own = folder / row["job"]
        assert len((own / "result.jsonl").read_text().splitlines()) == 1
        lines = [json.loads(line) for line in (own / "log.jsonl").open()]
        frames = [line["frames"] for line in lines if line["kind"] == "training"]
        assert frames == sorted(set(frames)) and row["frames"] >= 6000
