"""The processes that train together: a single one, or those that torchrun started."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist

from cule.device import find_device
from cule.train.devices import choose_device


@dataclass(frozen=True)
class World:
    """This process among those that train.

    Attributes:
        rank: its number; 0 logs, evaluates and decides.
        size: how many there are.
        device: where this one computes and its envs live.
    """

    rank: int
    size: int
    device: torch.device

    @staticmethod
    def join(device: str | None) -> World:
        """Joins the processes that torchrun started, if any; each takes the GPU of its local rank.

        Raises:
            ValueError: the device does not exist.
        """
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size > 1 and find_device(device).type == "cuda":
            device = f"cuda:{os.environ['LOCAL_RANK']}"
        found = choose_device(device)
        if size > 1:
            # Optimizers import this module. It has to be imported before there is a process group:
            # else the group is never freed (torch 2.13), its threads still run while Python exits,
            # and they abort the process if they free a tensor.
            importlib.import_module("torch._dynamo")
            # gloo is for tensors in the host's memory, NCCL for those on GPUs.
            dist.init_process_group("cpu:gloo,cuda:nccl" if found.type == "cuda" else "gloo")
        return World(int(os.environ.get("RANK", "0")), size, found)

    def leave(self) -> None:
        """Leaves the other processes."""
        if self.size > 1:
            dist.destroy_process_group()

    def any(self, wish: bool) -> bool:
        """Whether `wish` is true in any process. All processes have to call it."""
        return self.most(float(wish)) > 0

    def most(self, value: float) -> float:
        """The largest of all processes' values. All processes have to call it."""
        if self.size == 1:
            return value
        values = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(values, op=dist.ReduceOp.MAX)
        return values.item()

    @contextmanager
    def together(self) -> Iterator[None]:
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
            raise ValueError(
                "expected all processes to go on, but another one failed; its message says why"
            )

    def barrier(self) -> None:
        """Waits until all processes have called this."""
        self.any(False)

    def sum(self, values: torch.Tensor) -> list[float]:
        """The sums of a 1-dimensional tensor over all processes. Waits for the device."""
        values = values.double().cpu()
        if self.size > 1:
            dist.all_reduce(values)
        return values.tolist()

    def share(self, tensors: list[torch.Tensor]) -> None:
        """Copies these tensors from process 0 to all others."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def synchronize(self) -> None:
        """Waits for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
