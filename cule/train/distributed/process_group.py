"""The processes that train together: a single one, or those that torchrun started."""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from cule.disk.claims import Claim, seen_in
from cule.errors import InvalidValue
from cule.train.distributed.meeting import connect, meet
from cule.train.distributed.placement import Place, choose_place, place_of_another
from cule.train.distributed.ranks import rank_and_size
from cule.train.layout import BOTH, Layout, Part, Role, Share

# Seconds after which a process that says nothing is given up; NCCL's own number.
TIMEOUT = 600.0
# How often a process that waits for a longer work of another one asks whether that is done.
ASKED_EVERY = 0.2
_timeout = timedelta(seconds=TIMEOUT)  # since the last join
# How often this process has waited so.
_WORKS = itertools.count()


@dataclass(frozen=True)
class ProcessGroup:
    """This process among those that train.

    Attributes:
        rank: its number; process 0 logs, evaluates and decides.
        size: how many processes there are.
        device: where this process computes and its envs live.
        layout: who acts and who learns.
        timeout: seconds that a message may take, and after which a silent process is given up.
        far: the processes that do not see the run's folder, which is process 0's; see `claimed`.
        prefix: that of the processes' part of torch's store.
        mig_slice: the name of the MIG slice that this process has alone; "": no GPU is divided.
        divided: whether any of the processes has one.
        notes: what this process may use of its GPU, in words.
    """

    rank: int
    size: int
    device: torch.device
    layout: Layout = field(default_factory=Layout)
    timeout: float = TIMEOUT
    far: tuple[int, ...] = ()
    prefix: str = ""
    mig_slice: str = ""
    divided: bool = False
    notes: tuple[str, ...] = ()

    @staticmethod
    def join(
        device: str | None, layout: Layout | None = None, timeout: float = TIMEOUT
    ) -> ProcessGroup:
        """Joins the processes that torchrun or srun started, if any; each takes the layout's GPU.

        Raises:
            RuntimeError: not all processes have come in time, or one may use more of its GPU than
                the layout says.
            ValueError: the device does not exist, or cannot be divided as the layout says; the
                layout is for other processes, what torchrun sets in the environment is there only
                in part, or another process fails.
        """
        layout = layout or Layout()
        rank, size = rank_and_size()
        found: list[Place] = []
        prefix = ""

        def choose() -> None:
            found.append(choose_place(layout, rank, size, device))

        if size == 1:
            choose()
        else:
            # Optimizers import this module. It has to be imported before there is a process group:
            # else the group is never freed (torch 2.13), its threads still run while Python exits,
            # and they abort the process if they free a tensor.
            importlib.import_module("torch._dynamo")
            global _timeout
            _timeout = timedelta(seconds=timeout)
            store, prefix = meet(rank, size, timeout, choose)
            # gloo is for tensors in the host's memory, NCCL for those on GPUs.
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if found[0].device.type == "cuda" else "gloo",
                store=store, rank=rank, world_size=size, timeout=_timeout,
            )  # fmt: skip
        joined = ProcessGroup(
            rank, size, found[0].device, layout, timeout, prefix=prefix,
            mig_slice=found[0].mig_slice, notes=found[0].notes,
        )  # fmt: skip
        # Machines may differ, and all have to choose the same ways to each other.
        return replace(joined, divided=joined.any(bool(joined.mig_slice)))

    def with_layout(self, layout: Layout) -> ProcessGroup:
        """The same processes with another layout, on the GPUs that it gives them.

        Raises:
            ValueError: the layout is for another number of processes, a GPU does not exist, or a
                process would have another part of its GPU.
        """
        # Always: this process may have had the GPU of yet another layout in the meantime.
        device = place_of_another(
            layout, self.rank, self.size, self.device, self.layout, on_slice=bool(self.mig_slice)
        )
        return self if layout == self.layout else replace(self, device=device, layout=layout)

    def ranks(self, part: Part) -> list[int]:
        """The ranks of the processes that act, or that learn."""
        return self.layout.ranks(self.size, part)

    def only(self, role: Role) -> list[int]:
        """The ranks of the processes that have this role and no other."""
        return self.layout.only(self.size, role)

    def group(self, part: Part) -> Any:
        """Torch's process group of those that act, or of those that learn, for its collectives.

        All of several processes have to call it, also those that are not in it.
        """
        return dist.new_group(self.ranks(part), timeout=timeout_now())

    @property
    def num_devices(self) -> int:
        """How many GPUs there are, or what stands in for them on a CPU."""
        return len({processes[0].device for processes in self.layout.processes(self.size)})

    @property
    def acts(self) -> bool:
        """Whether this process acts."""
        return self.rank in self.ranks("act")

    @property
    def learns(self) -> bool:
        """Whether this process learns."""
        return self.rank in self.ranks("learn")

    @property
    def role(self) -> str:
        """The role of this process: "acting", "learning" or "acting and learning"."""
        return self.role_of(self.rank)

    def role_of(self, rank: int) -> str:
        """The role of a process, as `role`."""
        acts, learns = (rank in self.ranks(part) for part in BOTH)
        return "acting and learning" if acts and learns else "acting" if acts else "learning"

    @property
    def number(self) -> int:
        """This process's number among those that act, and then those that only learn."""
        actors = self.ranks("act")
        return actors.index(self.rank) if self.acts else len(actors) + self.rank

    @property
    def has_budget(self) -> bool:
        """Whether this process has a budget, so that CUDA counts only its multiprocessors."""
        one = self.layout.processes(self.size)[self.rank][0]
        return self.layout.limited and one.budget is not None

    @property
    def decoupled(self) -> bool:
        """Whether some processes only act, and others only learn."""
        return self.layout.crosses

    @property
    def does_both(self) -> bool:
        """Whether this process learns from its own envs."""
        return self.acts and self.learns

    def envs(self, num_envs: int) -> range:
        """The envs that this process plays, or from whose steps it only learns.

        Args:
            num_envs: the envs of all processes, over which these are counted.
        """
        if self.acts:
            return self.layout.envs(self.size, num_envs)[self.rank]
        shares = self.shares(num_envs)
        return range(shares[0].begin, shares[-1].end)

    def shares(self, num_envs: int) -> list[Share]:
        """Whose steps this process learns from, or who learns from its steps; see Layout.shares.

        Args:
            num_envs: the envs of all processes.
        """
        every = self.layout.shares(self.size, num_envs)
        return [share for share in every if self.rank in (share.actor, share.learner)]

    def leave(self) -> None:
        """Leaves the other processes."""
        if self.size > 1:
            dist.destroy_process_group()

    def any(self, wish: bool) -> bool:
        """Whether `wish` is true in any process. All processes have to call it."""
        return self.max(float(wish)) > 0

    def max(self, value: float) -> float:
        """The largest of all processes' values. All processes have to call it."""
        if self.size == 1:
            return value
        values = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(values, op=dist.ReduceOp.MAX)
        return values.item()

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """If one process fails in a block, all fail at its end. All processes have to run it.

        So no process waits for one that has ended.

        Raises:
            ValueError: another process failed. An error of this process is raised as it is.
        """
        try:
            yield
        except Exception:
            self.any(True)
            raise
        if self.any(False):
            raise InvalidValue(
                "expected all processes to go on, but another one failed; its message says why"
            )

    @contextmanager
    def claimed(self, folder: Path) -> Iterator[ProcessGroup]:
        """Claims a run's folder for these processes while a block runs. All have to run it.

        It is process 0's folder. The block gets these processes with `far`, those that do not see
        it, as on machines without a common disk: they write nothing, and send process 0 what is to
        be saved.

        Raises:
            ValueError: another training has it, or it cannot be written.
        """
        claim, path = None, folder / "run.lock"
        with self.all_or_none(), _writing(folder):
            if self.rank == 0:
                claim = Claim(path, "a folder of a training")
        mark, near = self.broadcast(claim and claim.mark, 0), True
        try:
            with self.all_or_none(), _writing(folder):
                if self.rank > 0:
                    near = _sees(path, mark)
            far = [rank for rank, sees in enumerate(self.gather(near)) if not sees]
            yield replace(self, far=tuple(far))
        finally:
            if claim is not None:
                claim.release()

    def barrier(self) -> None:
        """Waits until all processes have called this."""
        self.any(False)

    def sum(self, values: torch.Tensor) -> list[float]:
        """The sums of a 1-dimensional tensor over all processes. Waits for the device."""
        values = values.double().cpu()
        if self.size > 1:
            dist.all_reduce(values)
        return values.tolist()

    def broadcast(self, value: Any, rank: int) -> Any:
        """The value that a process has, in all processes; all have to call it."""
        values = [value]
        if self.size > 1:
            dist.broadcast_object_list(values, src=rank, device=torch.device("cpu"))
        return values[0]

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, by rank; all have to call it."""
        if self.size == 1:
            return [value]
        values = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    @contextmanager
    def while_first_works(self) -> Iterator[None]:
        """Waits at the end of a block for process 0's end of it. All processes have to run it.

        That takes as long as it takes, where a message would have to come within `timeout`. A
        process that is lost meanwhile is the watchdog's.
        """
        if self.size == 1:
            yield
            return
        key = f"work {next(_WORKS)}"
        try:
            yield
        finally:
            store = dist.PrefixStore(self.prefix, connect(self.timeout))
            if self.rank == 0:
                store.set(key, "")
            while not store.check([key]):
                time.sleep(ASKED_EVERY)

    def broadcast_tensors(self, tensors: list[torch.Tensor]) -> None:
        """Copies these tensors from process 0 to all others."""
        if self.size > 1:
            for tensor in tensors:
                # Through the host, as NCCL connects no two processes of a GPU.
                host = tensor.cpu()
                dist.broadcast(host, src=0)
                tensor.copy_(host)

    def synchronize(self) -> None:
        """Waits for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def timeout_now() -> timedelta:
    """How long a message between the processes that have joined may take."""
    return _timeout


def _sees(path: Path, mark: str) -> bool:
    """Whether this process sees the claim with this mark, and so the folder in which it is.

    Raises:
        OSError: it does, but cannot write there.
    """
    try:
        return seen_in(path) == mark
    except OSError:
        with suppress(OSError):
            if mark in path.read_text(errors="replace"):
                raise
        return False


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InvalidValue(
            f"expected a folder for the training that can be written, got {folder}: "
            f"{problem.strerror}"
        ) from problem
