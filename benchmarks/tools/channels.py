"""What a step costs on its way from a process that acts to one that learns.

    torchrun --nproc-per-node 2 -m benchmarks.tools.channels --envs 16 256
    torchrun --nproc-per-node 2 -m benchmarks.tools.channels --device cuda --envs 600 2400
    torchrun --nproc-per-node 2 -m benchmarks.tools.channels --device cuda --each 2 --envs 600 2400

Two processes; one sends the steps of an iteration, the other receives them. The question of
GMI-DRL's table 8 (Wang et al., 2022), uni-channel against multi-channel: each tensor of a step as a
message of its own, a parcel for each step, or a channel for each kind of tensor with all steps of
the iteration in a message. On a CPU each through shared memory and over gloo, which connects two
machines; on two GPUs over NCCL; on one GPU (--each 2) through its memory. A JSON line for each,
with its steps a second as a ratio to parcels, over gloo on a CPU: the median of several turns, in
which all ways are measured one after another.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence

import torch

from cule.programs.results import command_line, commit, machine, now
from cule.train.distributed.channels import (
    Inbox,
    Like,
    MessageIn,
    MessageOut,
    Outbox,
    Receiver,
    Sender,
)
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.shared_memory import MemoryIn, MemoryOut
from cule.train.layout import Layout

CPU = torch.device("cpu")
# How tensors are put together.
PACKINGS = ("tensors", "steps", "kinds")


def step_of(envs: int) -> list[Like]:
    """The tensors of a step of A2C with V-trace."""
    return [
        ((envs,), torch.int64), ((envs,), torch.float32), ((envs, 84, 84), torch.uint8),
        ((envs,), torch.bool), ((envs,), torch.float32), ((envs,), torch.float32),
        ((envs,), torch.bool),
    ]  # fmt: skip


def messages_of(packing: str, envs: int, steps: int) -> tuple[list[list[Like]], int]:
    """The channels by their tensors, and how many messages of each have an iteration's steps."""
    step = step_of(envs)
    if packing == "steps":
        return [step], steps
    if packing == "tensors":
        return [[like] for like in step], steps
    return [[((steps, *shape), dtype)] for shape, dtype in step], 1


def ways_between(processes: ProcessGroup, each: int) -> list[str]:
    """How messages can get from one process to the other; the last is what others are beside."""
    if processes.device.type == "cpu":
        return ["memory", "gloo"]
    return ["memory"] if each > 1 else ["nccl"]


def outbox(way: str, like: Sequence[Like], device: torch.device, slots: int) -> Outbox:
    """A channel to process 0."""
    if way == "memory":
        return MemoryOut(like, device, 0, slots)
    return MessageOut(like, device, 0, slots, announces=False)


def inbox(way: str, like: Sequence[Like], device: torch.device) -> Inbox:
    """A channel from process 1."""
    if way == "memory":
        return MemoryIn(like, device, 1)
    return MessageIn(like, device, 1, announced=False)


class Measured:
    """A way for an iteration's steps."""

    def __init__(
        self,
        processes: ProcessGroup,
        packing: str,
        way: str,
        envs: int,
        options: argparse.Namespace,
    ):
        self.processes, self.steps, device = processes, options.steps, processes.device
        likes, self.messages = messages_of(packing, envs, options.steps)
        self.receivers: list[Receiver] = []
        self.senders: list[tuple[Sender, list[torch.Tensor]]] = []
        for like in likes:
            if processes.rank == 0:
                self.receivers.append(Receiver([inbox(way, like, device)]))
                continue
            values = [torch.zeros(shape, dtype=dtype, device=device) for shape, dtype in like]
            sender = Sender([outbox(way, like, device, self.messages)])
            self.senders.append((sender, values))

    def _meet(self) -> None:
        """Waits until both have sent and received all."""
        self.processes.synchronize()
        self.processes.barrier()

    def rate(self, iterations: int) -> float:
        """Steps a second."""
        self._meet()
        begun = time.perf_counter()
        for _ in range(iterations * self.messages):
            for sender, values in self.senders:
                sender.send(values)
            for receiver in self.receivers:
                receiver.receive()
        self._meet()
        return iterations * self.steps / (time.perf_counter() - begun)


def measure(options: argparse.Namespace) -> None:
    """Measures in one of the two processes; process 0 prints."""
    torch.set_num_threads(1)
    processes = ProcessGroup.join(options.device, Layout.staggered(options.each))
    usable = ways_between(processes, options.each)
    base = ("steps", usable[-1])
    for envs in options.envs:
        ways = [(packing, way) for packing in PACKINGS for way in usable]
        made = {one: Measured(processes, *one, envs, options) for one in ways}
        rates: dict[tuple[str, str], list[float]] = {one: [] for one in ways}
        for _ in range(options.turns):
            for one, measured in made.items():
                rates[one].append(measured.rate(options.iterations))
        for (packing, way), its in rates.items():
            ratios = [a / b for a, b in zip(its, rates[base], strict=True)]
            row = {
                "packing": packing, "way": way, "num_envs": envs, "num_steps": options.steps,
                "steps_per_second": round(statistics.median(its), 1),
                "ratio": round(statistics.median(ratios), 3), "commit": commit(), "date": now(),
                "command": command_line(), "mode": "channels", "system": "cule",
                "num_gpus": processes.num_devices, **machine(processes.device, 1),
            }  # fmt: skip
            if processes.rank == 0:
                print(json.dumps(row), flush=True)
    processes.leave()


def main() -> None:
    """Reads the options, and measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--each", type=int, choices=(1, 2), default=1, help="processes on a GPU")
    parser.add_argument("--envs", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--steps", type=int, default=20, help="steps of an iteration")
    parser.add_argument("--iterations", type=int, default=20, help="in a turn")
    parser.add_argument("--turns", type=int, default=5)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
