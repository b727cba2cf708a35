"""Sweeps as jobs of submitit: its own processes stand in for Slurm, and once for Slurm's programs.

The driver is killed and started again, also at the moment when it does not know the job yet.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pretender
import pytest

from cule.train.sweep import Sweep, node
from cule.train.sweep.placing import Placing, executor_of
from examples.atari57 import run
from tests.support.waiting import wait_for

pytest.importorskip("submitit")
from cule.train.sweep import on_slurm
from cule.train.sweep.on_slurm import OnSlurm, SlurmHandle

ROOT = Path(__file__).resolve().parents[2]
DRIVER = pretender.DRIVER.replace("EXECUTOR", 'OnSlurm("local")')


@pytest.fixture
def program(tmp_path):
    return pretender.written(tmp_path)


def driver(program, folder, count, frames, pause):
    """A process with a sweep, in a session of its own as on another machine.

    Its jobs outlive it, and have its output.
    """
    words = [sys.executable, "-c", DRIVER, program, str(folder), str(count), str(frames), pause]
    with (folder.parent / "told").open("w") as told, (folder.parent / "error").open("w") as error:
        return subprocess.Popen(
            words, cwd=ROOT, env=pretender.environment(), stdout=told, stderr=error,
            start_new_session=True,
        )  # fmt: skip


def test_sweep_of_jobs_has_a_row_for_each(tmp_path, program):
    jobs = [*pretender.jobs_of(program, 2), *pretender.jobs_of(program, 3, "--fails", "9")[2:]]
    made = Sweep(jobs, tmp_path / "runs", executor=OnSlurm("local", at_once=2))
    rows = made.run()
    assert [row.get("seed") for row in rows] == [0, 1, None]
    assert rows[2]["error"].endswith("The disk is full.") and made.states[2].starts == 2
    pretender.check_once(tmp_path / "runs", 2)
    assert not list(tmp_path.glob("runs/*/submitted.json"))
    assert re.fullmatch(r"job \d+ of submitit-local is in the queue", made.states[0].notes[0])


class Runs:
    """Pickled, it is code that whoever reads it runs."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_folder_of_somebody_else_runs_no_code(tmp_path, program, monkeypatch):
    """Nobody reads what submitit has pickled about the end of a job."""
    monkeypatch.setattr(on_slurm, "GRACE", 0.0)
    sweep, folder = tmp_path / "runs", tmp_path / "runs" / "t-0"
    folder.mkdir(parents=True)
    others = sweep / "submitit" / "t-0-1"
    others.mkdir(parents=True)
    number = str(2**22 - 1)  # a process that there is not
    (others / f"{number}_0_result.pkl").write_bytes(pickle.dumps(Runs(tmp_path / "ran")))
    about = {"executor": "submitit-local", "job": number, "folder": str(others)}
    (folder / "submitted.json").write_text(json.dumps(about))
    (job,) = pretender.jobs_of(program, 1)
    executor = OnSlurm("local")
    executor.open(sweep, [job])
    handle = executor.start(job, folder, "submitit-local", 0)
    assert handle.poll() == 1 and handle.problem.endswith(f"{number}_0_log.err has it")
    assert "is found again" in handle.notes[0] and not (folder / "submitted.json").exists()
    assert not (tmp_path / "ran").exists()


def test_job_that_slurm_does_not_know_yet_leaves_the_queue_when_it_does(tmp_path, monkeypatch):
    """Also one whose older request to stop came from a sweep that was killed."""
    monkeypatch.setattr(on_slurm, "LOOK", 0.0)
    states, cancelled = ["UNKNOWN", "UNKNOWN", "PENDING"], []
    job = SimpleNamespace(
        job_id="7", paths=SimpleNamespace(result_pickle=tmp_path / "none"), done=lambda: False,
        cancel=lambda check: cancelled.append("7"),
    )  # fmt: skip
    queue = SimpleNamespace(name="slurm", cluster="slurm")
    record = tmp_path / "submitted.json"
    handle = SlurmHandle(queue, job, record, tmp_path / "outcome.json", "is in the queue")
    monkeypatch.setattr(SlurmHandle, "_state", lambda self: states.pop(0))
    handle.terminate()
    assert handle.poll() is None and not cancelled
    assert handle.poll() == on_slurm.STOPPED and cancelled == ["7"]
    executor = OnSlurm("local")
    about = {"executor": "submitit-local", "job": "7", "folder": str(tmp_path)}
    record.write_text(json.dumps(about))
    (tmp_path / node.STOP).touch()
    executor.start(pretender.jobs_of("p", 1)[0], tmp_path, "submitit-local", 0)
    assert not (tmp_path / node.STOP).exists()


def test_sweep_killed_finds_its_jobs_again(tmp_path, program):
    """They go on meanwhile, and none is started twice."""
    folder = tmp_path / "runs"
    with driver(program, folder, 2, 1500, "0.3") as process:
        pretender.wait_for_checkpoints(process, folder, 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert all(pretender.lives(pretender.starts(folder / f"t-{n}")[0]) for n in range(2))
    jobs = pretender.jobs_of(program, 2, "--pause", "0.3", frames=1500)
    with pytest.raises(ValueError, match="expected to go on with the executor that has t-0 in its"):
        Sweep(jobs, folder, ["cpu"]).run()
    made = Sweep(jobs, folder, executor=OnSlurm("local"))
    assert len(made.run()) == 2
    assert all("is found again" in state.notes[0] for state in made.states)
    pretender.check_once(folder, 2, frames=1500)
    assert all(len(pretender.starts(folder / f"t-{n}")) == 1 for n in range(2))


def test_sweep_killed_before_it_knew_its_job_trains_once(tmp_path, program):
    """Its file is not there: a second job comes, waits for the first, and trains nothing."""
    folder = tmp_path / "runs"
    with driver(program, folder, 1, 1000, "0.3") as process:
        wait_for(lambda: process.poll() is not None or pretender.starts(folder / "t-0"))
        process.send_signal(signal.SIGKILL)
        process.wait()
    (folder / "t-0" / node.SUBMITTED).unlink()
    jobs = pretender.jobs_of(program, 1, "--pause", "0.3", frames=1000)
    made = Sweep(jobs, folder, executor=OnSlurm("local"))
    assert len(made.run()) == 1 and made.states[0].starts == 1
    assert made.states[0].notes[0].endswith("is in the queue")
    pretender.check_once(folder, 1, frames=1000)
    assert len(pretender.starts(folder / "t-0")) == 1


def test_sweep_stopped_lets_jobs_write_a_checkpoint(tmp_path, program):
    folder = tmp_path / "runs"
    with driver(program, folder, 2, 100000, "0.2") as process:
        pretender.wait_for_checkpoints(process, folder, 2)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)
    told, error = ((tmp_path / name).read_text() for name in ("told", "error"))
    assert told == f"{['stopped'] * 2} True\n", error
    for n in range(2):
        assert '"interrupted": true' in (folder / f"t-{n}" / "result.jsonl").read_text()
        assert not pretender.lives(pretender.starts(folder / f"t-{n}")[0])


def test_job_that_is_killed_is_lost_and_goes_on(tmp_path, program, monkeypatch):
    """As when its machine fails: there is no result, and the training goes on from a checkpoint."""
    monkeypatch.setattr(on_slurm, "GRACE", 1.0)
    jobs = pretender.jobs_of(program, 1, "--pause", "0.3", frames=1000)
    made = Sweep(jobs, tmp_path, executor=OnSlurm("local"))
    killed = []

    def kill(states):
        if states[0].frames >= 200 and not killed:
            (handle,) = made._running
            # The training itself holds the lock of its folder.
            own = Path(f"/proc/{pretender.starts(tmp_path / 't-0')[0]}/fd")
            assert tmp_path / "t-0" / node.JOB_LOCK in [path.resolve() for path in own.iterdir()]
            killed.append(int(handle._job.job_id))
            os.kill(killed[0], signal.SIGKILL)
            for path in Path("/proc").glob("[0-9]*/environ"):  # and what runs beside the training
                try:
                    mine = f"SUBMITIT_LOCAL_JOB_ID={killed[0]}".encode() in path.read_bytes()
                    beside = b"submitit" in (path.parent / "cmdline").read_bytes()
                except OSError:
                    continue
                if mine and beside:
                    os.kill(int(path.parent.name), signal.SIGKILL)
            (training,) = pretender.starts(tmp_path / "t-0")
            wait_for(lambda: not pretender.lives(training))
            assert not (tmp_path / "t-0" / "result.jsonl").exists()

    (row,) = made.run(kill)
    assert killed and row["frames"] == 1000 and made.states[0].losses == 1
    assert "has ended without a result (INTERRUPTED)" in "\n".join(made.states[0].notes)
    pretender.check_once(tmp_path, 1, frames=1000)
    assert (tmp_path / "t-0" / "work").read_text().splitlines().count("100") == 1


def test_job_whose_time_is_over_writes_a_checkpoint_and_comes_again(tmp_path, program):
    """Slurm says so by SIGUSR2; submitit's own processes begin the same job again at once."""
    jobs = pretender.jobs_of(program, 1, "--pause", "0.3", frames=1000)
    made = Sweep(jobs, tmp_path, executor=OnSlurm("local"))
    told = []

    def tell(states):
        if states[0].frames >= 200 and not told:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = path.read_bytes().decode().split("\0")
                except OSError:
                    continue
                if "submitit.core._submit" in words and str(tmp_path) in words[4]:
                    told.append(path)
                    os.kill(int(path.parent.name), signal.SIGUSR2)

    (row,) = made.run(tell)
    assert len(told) == 1 and row["frames"] == 1000
    assert (made.states[0].starts, made.states[0].losses) == (1, 0)
    assert len(pretender.starts(tmp_path / "t-0")) == 2
    lines = (tmp_path / "t-0" / "result.jsonl").read_text().splitlines()
    assert ['"interrupted"' in line for line in lines] == [True, False]
    pretender.check_once(tmp_path, 1, frames=1000)


@pytest.mark.slow
def test_suite_of_one_game_as_a_job(tmp_path):
    args = run.Args(
        algorithm="pqn", games=("phoenix",), folder=tmp_path, video=False, device="cpu",
        executor="submitit-local", total_frames=2000, episodes=2, max_frames=400, num_threads=1,
    )  # fmt: skip
    assert run.run(args) == 0
    assert (tmp_path / "report.md").exists()


def test_queue_of_another_executor_is_refused(tmp_path, program):
    (tmp_path / "t-0").mkdir()
    record = tmp_path / "t-0" / node.SUBMITTED
    record.write_text(json.dumps({"executor": "slurm", "job": "7", "folder": "x"}))
    made = Sweep(pretender.jobs_of(program, 1), tmp_path, executor=OnSlurm("local"))
    with pytest.raises(ValueError, match="expected to go on with executor slurm, which has "):
        made.run()
    record.write_text("{}")
    with pytest.raises(ValueError, match=r"expected .*submitted\.json as a sweep writes it"):
        made.run()


# Slurm's programs: a queue of processes, which begin once the file `open` is there.
SLURM = {
    "sbatch": """
import os, re, subprocess, sys
from pathlib import Path
here = Path(__file__).parent
text = Path(sys.argv[1]).read_text()
command = re.search(r"^srun .* (\\S+ -u -m submitit.core._submit .*)$", text, re.M)[1]
number = str(len(list(here.glob("*.job"))) + 1)
(here / f"{number}.job").write_text(text)
subprocess.Popen([sys.executable, str(here / "begin"), number, command], close_fds=True,
                 start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("Submitted batch job", number)
""",
    "begin": """
import os, subprocess, sys, time
from pathlib import Path
here, number, command = Path(__file__).parent, *sys.argv[1:]
while not (here / "open").exists():
    time.sleep(0.1)
    if (here / f"{number}.cancelled").exists():
        sys.exit()
process = subprocess.Popen(command, shell=True, env=os.environ | {
    "SUBMITIT_EXECUTOR": "slurm", "SLURM_JOB_ID": number, "SLURM_PROCID": "0"})
(here / f"{number}.running").touch()
process.wait()
(here / f"{number}.ended").touch()
""",
    "sacct": """
import sys
from pathlib import Path
here = Path(__file__).parent
print("JobID|State|NodeList")
for number in sys.argv[sys.argv.index("-j")::2] and sys.argv[4:]:
    if number.isdigit():
        ends = {"cancelled": "CANCELLED", "ended": "COMPLETED", "running": "RUNNING"}
        states = [state for end, state in ends.items() if (here / f"{number}.{end}").exists()]
        print(f"{number}|{(states or ['PENDING'])[0]}|node1")
""",
    "scancel": """
import sys
from pathlib import Path
(Path(__file__).parent / f"{sys.argv[1]}.cancelled").touch()
""",
    "srun": "",
}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Programs that stand in for Slurm's, which are not here; the folder has its queue."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in SLURM.items():
        path = folder / name
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    from submitit import SlurmJob

    SlurmJob.watcher.clear()
    SlurmJob.watcher._registered.clear()
    return folder


def test_sweep_in_slurms_queue(tmp_path, program, slurm, monkeypatch):
    """What sbatch gets; a training that waits is queued, and is found again after a kill."""
    args = Placing(
        executor="slurm", device="cpu", slurm_partition="long", slurm_minutes=90,
        cpus_per_training=3, slurm_options=("account=lab", "mem=4GB"),
    )  # fmt: skip
    folder = tmp_path / "runs"
    jobs = pretender.jobs_of(program, 1)
    seen = []

    class Killed(Exception):
        pass

    def kill(states):
        seen.append((states[0].state, states[0].place))
        raise Killed

    made = Sweep(jobs, folder, executor=executor_of(args))
    with monkeypatch.context() as patch:
        patch.setattr(on_slurm.SlurmHandle, "kill", lambda self: None)  # as by kill -9
        with pytest.raises(Killed):
            made.run(kill)
    assert seen == [("queued", None)]
    text = (slurm / "1.job").read_text()
    for word in ("partition=long", "time=90", "cpus-per-task=3", "account=lab", "mem=4GB",
                 "job-name=t-0", "nodes=1", "ntasks-per-node=1"):  # fmt: skip
        assert f"#SBATCH --{word}" in text
    made = Sweep(jobs, folder, executor=executor_of(args))
    rows = made.run(lambda states: (slurm / "open").touch())
    assert len(rows) == 1 and not (slurm / "2.job").exists()
    assert "job 1 of slurm is found again" in made.states[0].notes
    pretender.check_once(folder, 1)


def test_slurm_that_is_not_here(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ValueError, match="expected Slurm here, with the options of submitit, got C"
                       'ould not detect "srun"'):  # fmt: skip
        executor_of(Placing(executor="slurm"))


def test_option_that_slurm_does_not_have(slurm):
    with pytest.raises(ValueError, match="expected Slurm here, with the options of submitit, got"):
        executor_of(Placing(executor="slurm", slurm_options=("colour=red",)))
