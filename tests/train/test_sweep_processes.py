"""Trainings of several processes in a sweep, options that an executor lacks, and reports."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from training_runs import children_of, one_thread_each

from cule.train.sweep import Job, Sweep, jobs, node, report, sweep
from cule.train.sweep.__main__ import main
from cule.train.sweep.executor import Local
from cule.train.sweep.placing import HONOURED, Placing, device_of, executor_of
from examples.atari57 import run, search

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "--num-envs", "4", "--num-steps", "8", "--minibatch-size", "16", "--width", "0.1",
    "--num-threads", "1", "--eval-episodes", "0", "--no-plot", "--logger", "none", "--no-progress",
    "--checkpoint-every", "256", "--log-every", "1",
)  # fmt: skip


def command(folder, frames):
    return [
        sys.executable, "-m", "cule.train.sweep", "--algorithm", "examples.ppo.ppo", "--games",
        "pong", "--device", "cpu", "--gpus-per-training", "2", "--folder", str(folder), "--",
        *SMALL, "--total-frames", str(frames),
    ]  # fmt: skip


def descendants(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


@pytest.mark.slow
def test_two_processes_train_together_killed_and_started_again(tmp_path):
    """By gloo on the CPU. The kill of the sweep ends torchrun, and that its two processes."""
    folder = tmp_path / "runs"
    with subprocess.Popen(
        command(folder, 4000), cwd=ROOT, env=one_thread_each(), stderr=subprocess.DEVNULL
    ) as process:
        end = time.monotonic() + 200
        while not list(folder.glob("pong-0/checkpoints/*.complete")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        family = descendants(process.pid)
        process.kill()
    assert len(family) == 3  # torchrun and two processes
    end = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in family):
        assert time.monotonic() < end
        time.sleep(0.05)
    known = json.loads((folder / "sweep.json").read_text())["pong-0"]
    assert known[:4] == ["torchrun", "--standalone", "--nproc-per-node", "2"]
    assert not (folder / "results.jsonl").exists()
    done = subprocess.run(
        command(folder, 4000), cwd=ROOT, env=one_thread_each(), capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in (folder / "results.jsonl").open()]
    assert row["command"].startswith("torchrun --nproc-per-node 2 -m examples.ppo.ppo")
    assert row["frames"] >= 4000
    lines = [json.loads(line) for line in (folder / "pong-0" / "log.jsonl").open()]
    frames = [line["frames"] for line in lines if line["kind"] == "training"]
    assert frames == sorted(set(frames))


def test_failed_training_of_two_processes_shows_its_own_sentence(tmp_path):
    (tmp_path / node.OUTPUT).write_text(
        "ppo: expected a game, got none\n"
        "W1129 12:59:33.65 188 torch/distributed/elastic/multiprocessing/api.py:1028] Sending pro\n"
        "E1129 12:59:33.87 188 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
        "(exitcode: 2) local_rank: 0 (pid: 189) of binary: /bin/python\n"
        f"{jobs.TRACEBACK}\n"
        '  File "/site-packages/torch/distributed/run.py", line 1032, in <module>\n    main()\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\n"
    )
    assert jobs.last_lines(tmp_path) == "ppo: expected a game, got none"


@pytest.mark.slow
def test_agent_of_two_processes_has_one_row(tmp_path):
    args = run.Args(
        algorithm="pqn", games=("phoenix",), folder=tmp_path, video=False, device="cpu",
        gpus_per_training=2, total_frames=20_000, episodes=2, max_frames=400, num_threads=1,
    )  # fmt: skip
    assert run.run(args) == 0
    (row,) = (tmp_path / "phoenix-0" / "result.jsonl").read_text().splitlines()
    assert json.loads(row)["frames"] >= 20_000
    # Only the networks stay, once.
    kept = {path.suffix: path.name for path in tmp_path.glob("phoenix-0/*/checkpoints/step-*")}
    assert len(list(tmp_path.glob("phoenix-0/*/checkpoints/step-*"))) == 2
    assert kept[".pt"].endswith("rank0.pt") and kept[".complete"].endswith("of-2.complete")


def test_job_of_several_processes_is_torchruns(tmp_path, monkeypatch):
    """Each gets some of the GPUs that the sweep sees, and waits for no turn."""
    started = []
    monkeypatch.setattr(
        jobs.subprocess, "Popen", lambda words, **more: started.append((words, more))
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    one = Job("a", ("python", "-m", "examples.ppo.ppo", "--seed", "1"), 2)
    jobs.start(one, tmp_path / "a", "cuda:2,3")
    [(words, more)] = started
    assert words[1:] == [
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m",
        "examples.ppo.ppo", "--seed", "1", "--folder", str(tmp_path / "a"), "--device", "cuda",
        "--resume",
    ]  # fmt: skip
    assert more["env"]["CUDA_VISIBLE_DEVICES"] == "6,7" and more["env"]["CULE_GPU_LOCKS"] == "[]"
    assert Local(["cuda:2,3"])._turns(one, "cuda:2,3") == []
    with pytest.raises(ValueError, match="expected processes to be at least 1, got 0"):
        Sweep([Job("a", one.command, 0)], tmp_path, ["cpu"])
    assert Sweep([one], tmp_path, ["cuda:2,3"]).executor.beside == 0
    assert Sweep([Job("a", one.command)], tmp_path, ["cuda:2"]).executor.beside == 4


def test_devices_of_several_gpus(monkeypatch):
    monkeypatch.setattr(sweep, "default_device", lambda: "cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 6)
    assert sweep.devices_of((), None, 2) == ["cuda:0,1", "cuda:2,3", "cuda:4,5"]
    assert sweep.devices_of((3, 1), None) == ["cuda:3", "cuda:1"]
    assert device_of(executor_of(Placing(gpus_per_training=3))) == "cuda:0"
    with pytest.raises(ValueError, match=r"that gpus_per_training \(4\) divides, got 6"):
        sweep.devices_of((), None, 4)
    with pytest.raises(ValueError, match="expected per_gpu 1 with gpus_per_training 2, as"):
        executor_of(Placing(gpus_per_training=2, per_gpu=2))


OTHERS = {
    "gpus": (1,), "per_gpu": 2, "cpus_per_training": 2, "at_once": 3, "retries": 4,
    "ray_address": "auto", "ray_wait": 5.0, "slurm_partition": "p", "slurm_minutes": 7,
    "slurm_options": ("a=b",),
}  # fmt: skip


@pytest.mark.parametrize("executor", HONOURED)
def test_option_that_an_executor_lacks_is_refused(executor):
    lacking = {name: value for name, value in OTHERS.items() if name not in HONOURED[executor]}
    assert len(lacking) >= 2
    for name, value in lacking.items():
        with pytest.raises(ValueError, match=f"expected no {name} with executor {executor}, which"):
            executor_of(Placing(executor=executor, **{name: value}))


@pytest.mark.parametrize("changes, message", [
    ({"executor": "slurm", "slurm_options": ("qos",)}, "expected slurm_options as NAME=VALUE, non"),
    ({"executor": "slurm", "slurm_options": ("time=3",)}, "expected slurm_options as NAME=VALUE"),
    ({"executor": "slurm", "slurm_minutes": 0}, "expected slurm_minutes to be at least 1, got 0"),
    ({"executor": "ray", "ray_wait": -1.0}, "expected ray_wait to be at least 0, got -1.0"),
    ({"gpus_per_training": 0}, "expected gpus_per_training to be at least 1, got 0"),
])  # fmt: skip
def test_options_that_are_wrong(changes, message):
    with pytest.raises(ValueError, match=message):
        executor_of(Placing(**changes))


@pytest.mark.parametrize("executor, package", [
    ("ray", "ray"), ("slurm", "submitit"), ("submitit-local", "submitit"),
])  # fmt: skip
def test_missing_package_is_a_sentence(monkeypatch, capsys, tmp_path, executor, package):
    """Of the sweep, of the suite and of the search, before they make a folder."""
    monkeypatch.setitem(sys.modules, package, None)
    wanted = f"expected {package} to be installed (pip install {package}), got "
    folder = tmp_path / "x"
    words = ["--algorithm", "examples.ppo.ppo", "--games", "pong", "--folder", str(folder)]
    assert main([*words, "--executor", executor]) == 2
    assert wanted in capsys.readouterr().err
    for program, start in ((run, run.run), (search, search.compare)):
        with pytest.raises(ValueError, match="to be installed"):
            start(program.Args(executor=executor, folder=folder))
    assert not folder.exists()


def test_devices_and_an_executor_are_refused(tmp_path):
    with pytest.raises(ValueError, match="expected devices or an executor, got both: cpu"):
        Sweep([Job("a", ("a.py",))], tmp_path, ["cpu"], executor=Local(["cpu"]))


def test_training_that_another_sweep_still_has_is_refused(tmp_path, monkeypatch):
    """As one on a machine of a cluster, whose sweep was killed."""
    from cule.train.distributed.gpu_lock import lock_one_of
    from cule.train.sweep.node import JOB_LOCK

    monkeypatch.setattr(sweep, "PATIENCE", 0.3)
    (tmp_path / "a").mkdir()
    assert lock_one_of([tmp_path / "a" / JOB_LOCK], lambda: True) is not None
    with pytest.raises(ValueError, match=r"expected a folder in which nothing trains, got .*/a"):
        Sweep([Job("a", ("a.py",))], tmp_path, ["cpu"]).run()


# Reports -----------------------------------------------------------------------------------------


def swept(folder, trained, scores):
    """A sweep's folder: the words of each training, and the scores of those that have ended."""
    folder.mkdir()
    (folder / "sweep.json").write_text(json.dumps(trained))
    for name, score in scores.items():
        (folder / name).mkdir()
        row = {"algorithm": "P", "game": "pong", "seed": int(name[-1]), "frames": 9, "fps": 1.0,
               "seconds": 1.0, "score": score}  # fmt: skip
        (folder / name / "result.jsonl").write_text(json.dumps(row) + "\n")


def test_report_has_one_table_and_tells_what_is_twice(tmp_path, monkeypatch, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    words = {f"pong-{seed}": ["-m", "p", "--seed", str(seed)] for seed in range(4)}
    words["pong-2"] = ["-m", "p", "--seed=2"]
    swept(one, {name: words[name] for name in ("pong-0", "pong-1")}, {"pong-0": 1.0, "pong-1": 3.0})
    swept(two, {name: words[name] for name in ("pong-1", "pong-2", "pong-3")},
          {"pong-1": 7.0, "pong-2": 5.0})  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["report", "one", "two", "one/../one"]) == 0
    told = capsys.readouterr().out
    rows, means, twice, left = told.rstrip("\n").split("\n\n")
    lines = [line.split() for line in rows.splitlines()]
    assert [line[:2] + line[-1:] for line in lines[1:]] == [
        ["one", "pong-0", "1.00"], ["one", "pong-1", "3.00"], ["two", "pong-1", "7.00"],
        ["two", "pong-2", "5.00"],
    ]  # fmt: skip
    assert means.splitlines()[1].split() == [
        "P", "pong", "3", "9", "1", "1.0", "3.00", "2.00", "one/pong-0",
    ]  # fmt: skip
    assert twice == (
        "two/pong-1 has trained what one/pong-1 has, with another than its score; the means have "
        "one/pong-1 alone."
    )
    assert left == "Not finished: two/pong-3."


def test_report_has_means_of_equal_settings_alone(tmp_path, monkeypatch, capsys):
    for name, rate, score in (("one", "0.1", 1.0), ("two", "0.2", 21.0)):
        words = ["-m", "p", "--seed", "0", "--learning-rate", rate]
        swept(tmp_path / name, {"pong-0": words}, {"pong-0": score})
    monkeypatch.chdir(tmp_path)
    assert main(["report", "one", "two"]) == 0
    _, means = capsys.readouterr().out.rstrip("\n").split("\n\n")
    lines = [line.split() for line in means.splitlines()[1:]]
    assert [(line[2], line[6], line[-1]) for line in lines] == [
        ("1", "1.00", "one/pong-0"), ("1", "21.00", "two/pong-0"),
    ]  # fmt: skip


class Stays(Local):
    """Trainings outlive the sweep; the second one is refused."""

    adopts = True

    def __init__(self):
        super().__init__(["cpu", "cuda:0"])
        self.started, self.killed = [], []

    def start(self, job, folder, slot, lock):
        if self.started:
            raise ValueError("Socket timed out on send/recv operation")
        self.started.append(job.name)
        handle = Mock(place=None, notes=[])
        handle.poll.return_value = None
        handle.kill = lambda: self.killed.append(job.name)
        return handle


def test_what_outlives_a_sweep_is_not_killed_by_its_error(tmp_path):
    executor = Stays()
    two = [Job(name, ("-m", "p")) for name in ("one", "two")]
    with pytest.raises(ValueError, match="Socket timed out"):
        Sweep(two, tmp_path, executor=executor).run()
    assert executor.started == ["one"] and executor.killed == []


def test_report_of_a_folder_that_is_no_sweeps(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("report: expected the folder of a sweep, got ")
    with pytest.raises(ValueError, match="expected folders of sweeps to report on, got none"):
        report.report([])
