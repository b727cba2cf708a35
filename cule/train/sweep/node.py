"""What runs beside a training on a machine of a cluster: it starts it, stops it, tells its end.

It uses Python's own library and gpu_lock.py alone: Ray and submitit are given it by value, so that
a machine of the cluster does not import torch once more for each training.

A training of a sweep never runs twice at the same time, and never again once it has ended. Whoever
comes second, such as a job of a sweep that was killed, waits here for the lock of the training's
folder, finds its result, and trains nothing. The training itself inherits the lock, and holds it
for as long as it lives, even if this process is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cule.train.distributed.gpu_lock import lock_one_of

# In a sweep's folder: a word that no other sweep has, by which a machine knows the folder.
IDENTITY = "sweep.id"
# The same in a machine's own folder of that name, which no other machine sees.
OWN_IDENTITY = "node.id"
# In a training's folder: the lock, a request to stop, and the job in a queue that has it.
JOB_LOCK, STOP, SUBMITTED = "job.lock", "stop.request", "submitted.json"
RESULT, LOG, OUTPUT = "result.jsonl", "log.jsonl", "output.log"
# What comes back from a folder that the sweep does not see, and how much of each at most.
BROUGHT_BACK, MOST_BYTES = (RESULT, LOG, OUTPUT), 1 << 26
POLL = 0.2
# Seconds that a killed job of the same training, or the server of its lock, may take to give it up.
LOCK_PATIENCE = 180.0
# Seconds that a checkpoint may take when a queue ends the job, and when the sweep does. torchrun
# would kill its processes after half a minute.
STOP_PATIENCE = 75.0
PATIENT = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "600"}
REFUSED = 2


@dataclass
class Task:
    """A training, as a machine of a cluster gets it. submitit calls it.

    Attributes:
        name: the job's.
        words: its command after Python's own, with --folder.
        sweep: the sweep's folder.
        identity: what its file IDENTITY has.
        cwd: where the sweep was started; if there is no such folder, the machine's own is used.
        shared: refuse to train where that folder is not seen.
        outcome: a file for the result of `train`, as JSON; "": there is none.
        stopped: it was asked to stop.
    """

    name: str
    words: list[str]
    sweep: str
    identity: str
    cwd: str
    shared: bool
    outcome: str = ""
    stopped: bool = False
    process: Any = field(default=None, repr=False)

    @property
    def folder(self) -> Path:
        """The training's folder."""
        return Path(self.sweep) / self.name

    def sees_folder(self) -> bool:
        """Whether this machine sees the sweep's own folder."""
        path = Path(self.sweep) / IDENTITY
        try:
            # NFS may still take the file to be missing, until something is written to the folder.
            with tempfile.TemporaryFile(dir=path.parent):
                pass
            return path.read_text() == self.identity
        except OSError:
            return False

    def has_checkpoint(self) -> bool:
        """Whether there is a checkpoint from which the training goes on."""
        return any(self.folder.rglob("*.complete"))

    def finished(self) -> bool:
        """Whether the newest row of results is that of a training to its end."""
        try:
            row = json.loads((self.folder / RESULT).read_text().splitlines()[-1])
            return isinstance(row, dict) and not row.get("interrupted")
        except (OSError, ValueError, IndexError):
            return False

    def __call__(self) -> None:
        """Trains, in the main thread of a process of submitit.

        A request to stop comes as a file or as SIGINT. What comes of it is written to `outcome`:
        whoever read it from submitit's own file, a pickle, would run code that is in a folder.
        """
        signal.signal(signal.SIGINT, self._note)
        done = self.train(lambda: (self.folder / STOP).exists())
        scratch = Path(f"{self.outcome}.part")
        scratch.write_text(json.dumps({"status": done["status"], "problem": done["problem"]}))
        scratch.replace(self.outcome)

    def _note(self, *_: Any) -> None:
        self.stopped = True

    def checkpoint(self) -> Any:
        """Ends the training with a checkpoint, as the queue takes the machine away.

        Returns:
            The submission with which submitit puts the job back into the queue.
        """
        import submitit

        self._end(STOP_PATIENCE)
        return submitit.helpers.DelayedSubmission(Task(**self._settings()))

    def _settings(self) -> dict[str, Any]:
        names = ("name", "words", "sweep", "identity", "cwd", "shared", "outcome")
        return {name: getattr(self, name) for name in names}

    def _end(self, patience: float) -> None:
        """Asks the training to end, and kills it if it does not.

        In a signal's handler, which may have interrupted `Popen.poll` while that holds a lock: so
        only the system is asked.
        """
        if self.process is None:
            return
        pid, end, number = self.process.pid, time.monotonic() + patience, signal.SIGTERM
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            os.kill(pid, number)
            while os.waitid(os.P_PID, pid, ended) is None:
                if time.monotonic() > end and number != signal.SIGKILL:
                    number = signal.SIGKILL
                    os.killpg(pid, number)
                time.sleep(0.05)
        except (ChildProcessError, ProcessLookupError):  # it has ended
            return

    def train(self, asked: Callable[[], bool]) -> dict[str, Any]:
        """Trains, unless that is done.

        Args:
            asked: whether a request to stop has come.

        Returns:
            "status", the exit status; "problem", a sentence if nothing was trained, else "";
            "files", what the sweep cannot see, by name.
        """
        sees = self.sees_folder()
        if problem := self._problem(sees):
            return {"status": REFUSED, "problem": problem, "files": {}}
        end = time.monotonic() + LOCK_PATIENCE
        lock = lock_one_of(
            [self.folder / JOB_LOCK], lambda: self.stopped or asked() or time.monotonic() > end
        )
        if lock is None:
            problem = f"expected a training that nothing else trains, got {self.folder}"
            return {"status": REFUSED, "problem": problem, "files": {}}
        try:
            status = 0 if self.finished() else self._train(lock, asked)
        finally:
            os.close(lock)
        return {"status": status, "problem": "", "files": {} if sees else self._files()}

    def _problem(self, sees: bool) -> str:
        """Why this machine cannot train; makes the folder if it can."""
        host = socket.gethostname()
        if not sees and self.shared:
            return (
                f"expected a folder that all machines share, got {self.sweep}, which is not the "
                f"sweep's on {host}"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not sees:
                path = Path(self.sweep) / OWN_IDENTITY
                if not path.exists():
                    path.write_text(self.identity)
                elif path.read_text() != self.identity:
                    return (
                        f"expected {self.sweep} on {host} to be empty or this sweep's, got "
                        f"another's: name another folder, or delete it there"
                    )
        except OSError as problem:
            return f"expected a folder that can be written on {host}, got {problem}"
        return ""

    def _train(self, lock: int, asked: Callable[[], bool]) -> int:
        """Starts the training as a process and waits for its end; the exit status."""
        parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

        def end_with_parent() -> None:  # as die_with_parent.py
            prctl(1, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with (self.folder / OUTPUT).open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *self.words], stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, pass_fds=[lock], start_new_session=True,
                preexec_fn=end_with_parent, env=os.environ | PATIENT,
                cwd=self.cwd if Path(self.cwd).is_dir() else None,
            )  # fmt: skip
        told = False
        try:
            while self.process.poll() is None:
                if not told and (self.stopped or asked()):
                    self.process.terminate()
                    told = True
                time.sleep(POLL)
        except BaseException:  # of submitit, whose queue does not take the job back any more
            self._end(STOP_PATIENCE)
            raise
        return int(self.process.returncode)

    def _files(self) -> dict[str, bytes]:
        """What a training has written that the sweep shows, by name; of long files the end."""
        found = {}
        for name in BROUGHT_BACK:
            try:
                found[name] = (self.folder / name).read_bytes()[-MOST_BYTES:]
            except OSError:
                continue
        return found


class Seat:
    """An actor of Ray: a place on a machine, in which one training runs.

    `train` has a thread of its own, so that `stop` is heard meanwhile.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()

    def place(self, task: Task) -> dict[str, Any]:
        """Where this is, and what the machine has of a training.

        Returns:
            "place", the machine's name; "sees", whether it sees the sweep's folder; "resumes",
            whether it has a checkpoint.
        """
        import ray

        node = ray.get_runtime_context().get_node_id()[:6]
        return {
            "place": f"{socket.gethostname()}-{node}", "sees": task.sees_folder(),
            "resumes": task.has_checkpoint(),
        }  # fmt: skip

    def train(self, task: Task) -> dict[str, Any]:
        """Trains; see `Task.train`."""
        return task.train(self._asked.is_set)

    def stop(self) -> None:
        """Asks the training to write a checkpoint and to end."""
        self._asked.set()
