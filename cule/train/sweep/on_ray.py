"""A sweep's trainings on a Ray cluster: each is an actor, placed where its resources are free.

The actors belong to the sweep's process. If that is killed, Ray ends them, and they their
trainings; a new sweep waits until they have ended (`open`), known by their names. Ray starts
nothing again by itself: the sweep's loop does, also for what was lost with a machine. Then the
training goes on from its checkpoint if the machines share the folder, and begins again if not.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cule.errors import InvalidValue
from cule.train.checks import wanted_package
from cule.train.distributed import gpu_lock
from cule.train.sweep import node
from cule.train.sweep.cluster import identity_in, task_of
from cule.train.sweep.executor import STOPPED
from cule.train.sweep.jobs import Job

NAMESPACE = "cule.train.sweep"
# Seconds: for a connection, for the actors of a killed sweep to end, for which trainings wait at
# least while no machine of the cluster could hold one, and between two looks at the machines.
CONNECT, OTHERS, ROOM, LOOK = 10.0, 120.0, 300.0, 2.0


def address_of(given: str | None) -> str:
    """The address of the cluster.

    Args:
        given: "HOST:PORT", or "auto" for a cluster that runs on this machine; None: that of
            RAY_ADDRESS.

    Raises:
        ValueError: there is none, or nothing answers.
    """
    address = given or os.environ.get("RAY_ADDRESS", "")
    if address == "auto":
        return address
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise InvalidValue(
            "expected RAY_ADDRESS or ray_address to be HOST:PORT of a cluster's head, or auto, got "
            f"{address or 'none'}"
        )
    try:
        # Ray itself tries for minutes.
        socket.create_connection((host, int(port)), CONNECT).close()
    except (OSError, OverflowError) as problem:
        raise InvalidValue(
            f"expected a Ray cluster that answers at {address}, got {problem}"
        ) from problem
    return address


class OnRay:
    """Trainings on a Ray cluster, for one run of a sweep.

    Args:
        address: as of `address_of`; None also where this process is in a cluster already.
        cpus, gpus: of each training.
        device: "cpu" or "cuda".
        at_once: how many are given to Ray at the same time; 0: all.
        shared: refuse machines that do not see the sweep's folder.
        room: seconds for which trainings wait for a machine that could hold one, which an
            autoscaler may add. 0: it has to be there at the start, and if all are lost after that,
            trainings wait ROOM seconds for another.

    Raises:
        ValueError: Ray is not installed, there is no cluster, or none of its machines has so much.
    """

    name, beside, adopts = "ray", 0, False

    def __init__(
        self, address: str | None = None, cpus: float = 1, gpus: int = 0, device: str = "cpu",
        at_once: int = 0, shared: bool = False, room: float = 0,
    ):  # fmt: skip
        with wanted_package("ray"):
            import ray
        self.ray, self.device, self.shared = ray, device, shared
        self.room = max(room, ROOM)
        self._at_once, self._wants = at_once, {"CPU": float(cpus), "GPU": float(gpus)}
        ray.cloudpickle.register_pickle_by_value(node)
        ray.cloudpickle.register_pickle_by_value(gpu_lock)
        self._connected = not ray.is_initialized()
        if self._connected:
            try:
                ray.init(
                    address=address_of(address), namespace=NAMESPACE, log_to_driver=False,
                    logging_level="ERROR",
                )  # fmt: skip
            except ConnectionError as problem:
                raise InvalidValue(f"expected a Ray cluster that runs, got {problem}") from problem
        elif address is not None:
            raise InvalidValue(
                f"expected no ray_address where this process is in a Ray cluster, got {address}"
            )
        self._fitted = self._looked = time.monotonic()
        if not room and not self._fits():
            has = [one["Resources"] for one in ray.nodes() if one["Alive"]]
            self.close()
            raise InvalidValue(
                f"expected a machine with {cpus:g} CPUs and {gpus} GPUs in the Ray cluster, got "
                + (", ".join(sorted(f"{h.get('CPU', 0):g} and {h.get('GPU', 0):g}" for h in has)))
            )
        self._actor = ray.remote(
            num_cpus=cpus, num_gpus=gpus, max_restarts=0, max_task_retries=0, max_concurrency=4
        )(node.Seat)
        self.folder, self._identity = Path(), ""

    def _fits(self) -> bool:
        """Whether a machine of the cluster could hold a training if nothing else ran there."""
        return any(
            all(one["Resources"].get(kind, 0) >= count for kind, count in self._wants.items())
            for one in self.ray.nodes()
            if one["Alive"]
        )

    def without_room(self) -> bool:
        """Whether for so long no machine could have held a training that it is not waited for."""
        now = time.monotonic()
        if now - self._looked > LOOK:
            self._looked = now
            self._fitted = now if self._fits() else self._fitted
        return self._looked - self._fitted > self.room

    def slots(self, count: int) -> list[str]:
        """A place for each training, which Ray lets wait until there is one."""
        return ["ray"] * (min(count, self._at_once) if self._at_once else count)

    def _name(self, job: Job) -> str:
        return f"{self._identity}/{job.name}"

    def open(self, folder: Path, jobs: Sequence[Job]) -> None:
        """Waits for the trainings of a sweep of this folder that was killed.

        Raises:
            ValueError: they do not end.
        """
        self.folder, self._identity = folder.absolute(), identity_in(folder)
        end = time.monotonic() + OTHERS
        names = {self._name(job) for job in jobs}
        told = False
        while left := names & {
            one["name"]
            for one in self.ray.util.list_named_actors(all_namespaces=True)
            if one["namespace"] == NAMESPACE
        }:
            if not told:
                sys.stderr.write(f"Waiting for {len(left)} trainings of a sweep that was killed.\n")
            told = True
            if time.monotonic() > end:
                raise InvalidValue(
                    f"expected the trainings of an older sweep of {folder} to end, got "
                    f"{', '.join(sorted(left))} in the Ray cluster"
                )
            time.sleep(0.2)

    def start(self, job: Job, folder: Path, slot: str, lock: int) -> RayHandle:
        """Gives a training to Ray.

        Raises:
            OSError: the folder cannot be written.
            ValueError: an actor of the same training does not end.
        """
        folder.mkdir(parents=True, exist_ok=True)
        task = task_of(job, self.folder, self._identity, self.device, shared=self.shared)
        end = time.monotonic() + OTHERS
        while True:
            try:
                return RayHandle(self, self._made(self._name(job)), task)
            except ValueError as problem:  # Ray has not taken note of the last one's end
                if time.monotonic() > end:
                    raise InvalidValue(f"expected Ray to start {job.name}, got {problem}") from None
            time.sleep(0.2)

    def _made(self, name: str) -> Any:
        return self._actor.options(name=name, namespace=NAMESPACE).remote()

    def close(self) -> None:
        """Leaves the cluster, which ends what still runs, unless the caller has joined it."""
        if self._connected:
            self.ray.shutdown()


class RayHandle:
    """A training that Ray has, or lets wait.

    Args:
        executor: of Ray.
        actor: in which the training runs.
        task: the training.
    """

    def __init__(self, executor: OnRay, actor: Any, task: node.Task):
        self._executor, self._ray, self._actor, self._task = executor, executor.ray, actor, task
        self.place: str | None = None
        self.lost, self.problem = False, ""
        self.notes: list[str] = []
        self._status: int | None = None
        self._sees = True
        self._placed = actor.place.remote(task)
        self._ended = actor.train.remote(task)

    def poll(self) -> int | None:
        """The exit status; None while it waits or runs."""
        if self._status is None:
            try:
                self._look()
            except self._ray.exceptions.RayTaskError as problem:
                self._finish(1, f"expected a training on {self.place}, got {problem.cause}")
            except (self._ray.exceptions.RayError, ConnectionError) as problem:
                self._lose(problem)
        return self._status

    def _is_there(self, result: Any) -> bool:
        return bool(self._ray.wait([result], timeout=0)[0])

    def _look(self) -> None:
        if self.place is None:
            if not self._is_there(self._placed):
                if self._executor.without_room():
                    self._finish(1, "expected a machine that can hold a training, got none in "
                                 f"{self._executor.room:g} s")  # fmt: skip
                return
            found = self._ray.get(self._placed)
            self.place, self._sees = found["place"], found["sees"]
            self.notes.append(self._note(found))
        if self._is_there(self._ended):
            done = self._ray.get(self._ended)
            for name, content in done["files"].items():
                (self._executor.folder / self._task.name / name).write_bytes(content)
            self._finish(done["status"], done["problem"])

    def _note(self, found: dict[str, Any]) -> str:
        begins = "goes on from its checkpoint" if found["resumes"] else "begins at the first frame"
        own = "" if found["sees"] else ", in a folder of that machine alone"
        return f"{begins} on {found['place']}{own}"

    def _lose(self, problem: Exception) -> None:
        where = self.place or "a machine"
        then = "another one begins again, as the folder was that machine's alone"
        if self._sees:
            then = "another one goes on from the newest checkpoint in the shared folder"
        self.lost = True
        self._finish(1, f"{where} was lost ({type(problem).__name__}): {then}")

    def _finish(self, status: int, problem: str) -> None:
        self._status, self.problem = status, problem
        self._ray.kill(self._actor)

    def terminate(self) -> None:
        """Asks the training to end; one that waits for a place ends at once."""
        if self.place is None and not self._is_there(self._placed):
            self._finish(STOPPED, "")
        else:
            self._actor.stop.remote()

    def kill(self) -> None:
        """Ends the actor, and with it the training."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor)
