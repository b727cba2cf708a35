"""The processes that train together: a single one, or those that torchrun started."""

from __future__ import annotations

import importlib
import itertools
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from cule.devices.device import find_device
from cule.disk.claims import Claim, seen_in
from cule.errors import InvalidValue
from cule.train.devices import choose_device
from cule.train.layout import BOTH, Layout, Part, Share

# How often this process has joined others.
_JOINED = itertools.count()
# Above any number of processes.
MOST_PROCESSES = 2**20


@dataclass(frozen=True)
class ProcessGroup:
    """This process among those that train.

    Attributes:
        rank: its number; process 0 logs, evaluates and decides.
        size: how many processes there are.
        device: where this process computes and its envs live.
        layout: who acts and who learns.
    """

    rank: int
    size: int
    device: torch.device
    layout: Layout = field(default_factory=Layout)

    @staticmethod
    def join(device: str | None, layout: Layout | None = None) -> ProcessGroup:
        """Joins the processes that torchrun started, if any; each takes the GPU of the layout.

        Raises:
            ValueError: the device does not exist, the layout is for other processes, or what
                torchrun sets in the environment is there only in part.
        """
        layout = layout or Layout()
        rank, size = _rank_and_size()
        device = _place(layout, rank, size, device)
        chosen = choose_device(device)
        if size > 1:
            # Optimizers import this module. It has to be imported before there is a process group:
            # else the group is never freed (torch 2.13), its threads still run while Python exits,
            # and they abort the process if they free a tensor.
            importlib.import_module("torch._dynamo")
            # Each time a part of the store of its own: else one that joins again may find addresses
            # of the last time.
            store, rank, size = next(dist.rendezvous("env://"))
            # gloo is for tensors in the host's memory, NCCL for those on GPUs.
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo",
                store=dist.PrefixStore(f"joined {next(_JOINED)}", store),
                rank=rank, world_size=size,
            )  # fmt: skip
        return ProcessGroup(rank, size, chosen, layout)

    def with_layout(self, layout: Layout) -> ProcessGroup:
        """The same processes with another layout, on the GPUs that it gives them.

        Raises:
            ValueError: the layout is for another number of processes, or a GPU does not exist.
        """
        # Always: this process may have had the GPU of yet another layout in the meantime.
        device = choose_device(_place(layout, self.rank, self.size, str(self.device)))
        return self if layout == self.layout else replace(self, device=device, layout=layout)

    def ranks(self, part: Part) -> list[int]:
        """The ranks of the processes that act, or that learn."""
        return self.layout.ranks(self.size, part)

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
    def decoupled(self) -> bool:
        """Whether each process either acts or learns."""
        return self.layout.kind == "decoupled"

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
    def claimed(self, folder: Path) -> Iterator[None]:
        """Claims a run's folder for these processes while a block runs. All have to run it.

        Raises:
            ValueError: another training has it, it cannot be written, or not all processes see the
                same folder.
        """
        claim, path = None, folder / "run.lock"
        with self.all_or_none(), _writing(folder):
            if self.rank == 0:
                claim = Claim(path, "a folder of a training")
        holder = self.broadcast(claim and claim.holder, 0)
        with self.all_or_none(), _writing(folder):
            if self.rank > 0 and seen_in(path) != holder:
                raise InvalidValue(
                    f"expected a folder that all machines share, got {folder}, which is another "
                    f"one for process {self.rank} on {socket.gethostname()} than for {holder}"
                )
        try:
            yield
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


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InvalidValue(
            f"expected a folder for the training that can be written, got {folder}: "
            f"{problem.strerror}"
        ) from problem


def _place(layout: Layout, rank: int, size: int, device: str | None) -> str | None:
    """The device of a process: one of several on GPUs has that of the layout.

    Raises:
        ValueError: the layout is for another number of processes.
    """
    placed = layout.processes(size)
    if size == 1 or find_device(device).type != "cuda":
        return device
    if layout.kind == "decoupled":
        return f"cuda:{placed[rank][0].device}"
    # Processes of another machine have GPUs with the same numbers.
    return f"cuda:{_number('LOCAL_RANK', size) // layout.each}"


def _number(name: str, size: int) -> int:
    """A number below `size` that torchrun sets in the environment of each process.

    Raises:
        ValueError: it is not there, or is no such number.
    """
    text = os.environ.get(name, "")
    if not (text.isascii() and text.isdigit() and int(text) < size):
        raise InvalidValue(
            f"expected {name} in the environment to be a number below {size:,}, as torchrun sets "
            f"it for processes that train together, got {text or 'nothing'}"
        )
    return int(text)


def _rank_and_size() -> tuple[int, int]:
    """This process's number and how many there are, as torchrun says in the environment.

    Raises:
        ValueError: that is there only in part, or Slurm alone has started several processes.
    """
    if not {"RANK", "WORLD_SIZE"} & os.environ.keys():
        _refuse_slurm()
        return 0, 1
    size = max(1, _number("WORLD_SIZE", MOST_PROCESSES))
    rank = _number("RANK", size)
    if size > 1 and (missing := {"MASTER_ADDR", "MASTER_PORT"} - os.environ.keys()):
        raise InvalidValue(
            f"expected {' and '.join(sorted(missing))} in the environment of one of {size} "
            "processes that train together, as torchrun sets them, got nothing"
        )
    return rank, size


def _refuse_slurm() -> None:
    """Refuses processes that srun has started, which would each train all.

    A script of sbatch has the number of tasks, too, and is only one process, the first.

    Raises:
        ValueError: this is one of them.
    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS")
    if tasks is None and os.environ.get("SLURM_PROCID", "0") != "0":
        tasks = os.environ.get("SLURM_NTASKS")
    if tasks is not None and tasks != "1":
        raise InvalidValue(
            f"expected torchrun to start processes that train together, got one of {tasks} tasks "
            "of Slurm alone, which would each train all: srun --ntasks-per-node=1 torchrun ..., "
            "or env -u SLURM_STEP_NUM_TASKS -u SLURM_PROCID for trainings of their own"
        )
