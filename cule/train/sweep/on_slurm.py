"""A sweep's trainings as jobs of Slurm, by submitit: each is a job of one machine.

Jobs outlive the sweep's process. A file in each training's folder names its job, so that the same
sweep finds it again. If the process is killed before it writes that file, a second job comes to the
queue, which trains nothing while the first one does, and nothing after it (node.py).

When Slurm's time for a job is nearly over, or another job takes its machine, the training writes a
checkpoint and the job goes back to the queue.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from cule.disk.files import content_of, replacing
from cule.disk.forms import formed
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.train.checks import wanted_package
from cule.train.distributed import gpu_lock
from cule.train.sweep import node
from cule.train.sweep.cluster import identity_in, task_of
from cule.train.sweep.executor import STOPPED
from cule.train.sweep.jobs import Job

Cluster = Literal["slurm", "local"]
# What submitit writes, in a sweep's folder, and there what came of a job.
SUBMISSIONS, OUTCOME = "submitit", "outcome.json"
# Seconds: between two looks at a job, after which a job of which Slurm knows nothing is lost, and
# which a file system may take to show the result of a job that has ended.
LOOK, UNKNOWN, GRACE = 1.0, 900.0, 15.0
# The ends of jobs that are no failure of the training: its machine's, or submitit's own processes'.
LOST = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "TIMEOUT", "REVOKED", "INTERRUPTED", "FINISHED")
# Minutes before which submitit's own processes, which stand in for Slurm, end a job.
LOCAL_MINUTES = 7 * 24 * 60
END = 10.0  # seconds for a job that is cancelled


class OnSlurm:
    """Trainings as jobs of Slurm.

    Args:
        cluster: "slurm"; "local" for submitit's own processes on this machine.
        cpus, gpus: of each training.
        device: "cpu" or "cuda".
        at_once: how many are in the queue at the same time; 0: all.
        minutes: Slurm's limit for a job, after which it goes back to the queue.
        requeues: how often at most.
        options: further ones of submitit for Slurm, such as {"partition": "gpu", "account": "x"}.

    Raises:
        ValueError: submitit is not installed, there is no Slurm, or it has no such option.
    """

    beside, adopts = 0, True

    def __init__(
        self, cluster: Cluster = "slurm", cpus: int = 1, gpus: int = 0, device: str = "cpu",
        at_once: int = 0, minutes: int = 60, requeues: int = 10,
        options: Mapping[str, str] | None = None,
    ):  # fmt: skip
        with wanted_package("submitit"):
            import cloudpickle
            import submitit
        self.submitit, self.cluster, self.device = submitit, cluster, device
        self.name = "slurm" if cluster == "slurm" else "submitit-local"
        self._at_once, self._requeues = at_once, requeues
        self._settings: dict[str, Any] = {
            "timeout_min": minutes, "cpus_per_task": cpus, "gpus_per_node": gpus, "nodes": 1,
            "tasks_per_node": 1,
        }  # fmt: skip
        self._options = {f"slurm_{key}": value for key, value in (options or {}).items()}
        if cluster == "local":
            self._settings["timeout_min"] = LOCAL_MINUTES
        cloudpickle.register_pickle_by_value(node)
        cloudpickle.register_pickle_by_value(gpu_lock)
        self.folder, self._identity = Path(), ""
        self._executor(Path(tempfile.gettempdir()), "cule")  # fails now, not after the first start

    def _executor(self, folder: Path, name: str) -> Any:
        """The executor of submitit that writes to a folder.

        Raises:
            ValueError: there is no Slurm, or no such option.
        """
        try:
            executor = self.submitit.AutoExecutor(
                folder, cluster=self.cluster, slurm_max_num_timeout=self._requeues
            )
            executor.update_parameters(name=name, **self._settings, **self._options)
        except (RuntimeError, ValueError, NameError, TypeError) as problem:
            raise InvalidValue(
                f"expected Slurm here, with the options of submitit, got {problem}"
            ) from problem
        return executor

    def slots(self, count: int) -> list[str]:
        """A place in the queue for each training."""
        return [self.name] * (min(count, self._at_once) if self._at_once else count)

    def open(self, folder: Path, jobs: Sequence[Job]) -> None:
        """Notes the sweep's folder, and checks which queue has its trainings.

        Raises:
            ValueError: another one.
        """
        self.folder, self._identity = folder.absolute(), identity_in(folder)
        for job in jobs:
            self._submitted(folder / job.name)

    def _submitted(self, folder: Path) -> tuple[str, Path] | None:
        """The job that has a training, by its number and submitit's folder; None: there is none.

        Raises:
            ValueError: another queue has it, or what says so is damaged.
        """
        path = folder / node.SUBMITTED
        try:
            known = formed(json.loads(content_of(path)), dict[str, str])
            place = known["executor"], known["job"], Path(known["folder"])
        except FileNotFoundError:
            return None
        except (OSError, KeyError, *DAMAGE) as problem:
            raise InvalidValue(f"expected {path} as a sweep writes it, got {problem}") from problem
        if place[0] != self.name:
            raise InvalidValue(
                f"expected to go on with executor {place[0]}, which has {folder} in its queue, got "
                f"{self.name}; delete {path} once nothing is in the queue any more"
            )
        return place[1:]

    def start(self, job: Job, folder: Path, slot: str, lock: int) -> SlurmHandle:
        """Puts a training into the queue, or finds it there.

        Raises:
            OSError: the folder cannot be written.
            ValueError: Slurm refuses it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        record = folder.absolute() / node.SUBMITTED
        if (known := self._submitted(folder)) is not None:
            (folder / node.STOP).unlink(missing_ok=True)  # asked for by a sweep that was killed
            outcome = known[1] / OUTCOME
            return SlurmHandle(self, self._found(*known), record, outcome, "is found again")
        # A folder of its own: submitit's names of files are numbers that may come again.
        own = self.folder / SUBMISSIONS / f"{job.name.replace('/', '_')}-{time.time_ns()}"
        task = task_of(
            job, self.folder, self._identity, self.device, shared=True, outcome=str(own / OUTCOME)
        )
        try:
            made = self._executor(own, job.name).submit(task)
        except RuntimeError as problem:
            raise InvalidValue(
                f"expected Slurm to take {job.name} (at_once limits how many it gets), got "
                f"{problem}"
            ) from problem
        about = {"executor": self.name, "job": made.job_id, "folder": str(own)}
        with replacing(record) as file:
            file.write(json.dumps(about).encode())
        return SlurmHandle(self, made, record, own / OUTCOME, "is in the queue")

    def _found(self, number: str, folder: Path) -> Any:
        """The job of this number, which another process has put into the queue."""
        if self.cluster == "slurm":
            return self.submitit.SlurmJob(folder, number)
        return self.submitit.LocalJob(folder, number)

    def close(self) -> None:
        """The queue keeps what it has."""


class SlurmHandle:
    """A training that Slurm has.

    Args:
        executor: of Slurm.
        job: submitit's.
        record: the file that names the job, which is deleted once it has ended.
        outcome: the file that says what came of it.
        begun: what has happened to it, in words.
    """

    def __init__(self, executor: OnSlurm, job: Any, record: Path, outcome: Path, begun: str):
        self._executor, self._job, self._record = executor, job, record
        self._outcome = outcome
        self.place: str | None = None
        self.lost, self.problem = False, ""
        self.notes = [f"job {job.job_id} of {executor.name} {begun}"]
        self._status: int | None = None
        self._looked, self._known = 0.0, time.monotonic()
        self._ended: float | None = None
        self._stopping = False

    def poll(self) -> int | None:
        """The exit status; None while it waits or runs. Asks submitit about once a second."""
        if self._status is None and time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            self._look()
        return self._status

    def _state(self) -> str:
        """The job's state, as Slurm calls it."""
        if self._executor.cluster == "slurm" or self._job._process is not None:
            return str(self._job.state).upper()
        return "RUNNING" if _runs(self._job.job_id) else "FINISHED"

    def _look(self) -> None:
        state, now = self._state(), time.monotonic()
        self._known = self._known if state == "UNKNOWN" else now
        if state in ("RUNNING", "COMPLETING"):
            self.place = f"{self._executor.name} {self._job.job_id}"
        elif state in ("PENDING", "REQUEUED", "PREEMPTED"):
            self.place = None
        with suppress(FileNotFoundError, KeyError, *DAMAGE):
            done = formed(json.loads(content_of(self._outcome)), dict[str, Any])
            self._finish(int(done["status"]), str(done["problem"]))
            return
        if not self._job.paths.result_pickle.exists():
            self._wait(state, now)
            self._leave(state)
            return
        self._ended = self._ended or now
        if now - self._ended >= GRACE:
            self._finish(1, f"expected a training in job {self._job.job_id}, got an error: "
                         f"{self._job.paths.stderr} has it")  # fmt: skip

    def _wait(self, state: str, now: float) -> None:
        """Notes the end of a job without a result, once it is sure that none will come."""
        if state == "UNKNOWN":
            if now - self._known >= UNKNOWN:
                self._lose(f"Slurm knows nothing of it for {UNKNOWN:g} s", True)
            return
        slurm = self._executor.cluster == "slurm"
        # Reading the folder anew lets a file system look again.
        ended = self._job.done() if slurm else state != "RUNNING"
        self._ended = (self._ended or now) if ended else None
        if self._ended is not None and now - self._ended >= GRACE:
            self._lose(state, state.startswith(LOST))

    def _lose(self, why: str, lost: bool) -> None:
        self.lost = lost
        self._finish(1, f"job {self._job.job_id} has ended without a result ({why}): another one "
                     "goes on from the newest checkpoint")  # fmt: skip

    def _finish(self, status: int, problem: str) -> None:
        self._status, self.problem = status, problem
        self._record.unlink(missing_ok=True)

    def terminate(self) -> None:
        """Asks the training to end; one that is in the queue leaves it."""
        (self._record.parent / node.STOP).touch()
        self._stopping = True
        self._leave(self._state())

    def _leave(self, state: str) -> None:
        """Takes a job that is to stop from the queue, as soon as Slurm says that it is there."""
        if self._stopping and self._status is None and state in ("PENDING", "REQUEUED"):
            self._job.cancel(check=False)
            self._finish(STOPPED, "")

    def kill(self) -> None:
        """Cancels the job, and waits a moment for its end."""
        self._job.cancel(check=False)
        end = time.monotonic() + END
        with suppress(OSError):
            if self._executor.cluster == "local" and _runs(self._job.job_id):
                os.kill(int(self._job.job_id), signal.SIGINT)
            while self.poll() is None and time.monotonic() < end:
                time.sleep(0.1)


def _runs(number: str) -> bool:
    """Whether a process of submitit's with this number runs on this machine."""
    with suppress(OSError):
        return b"submitit.local" in Path(f"/proc/{number}/cmdline").read_bytes()
    return False
