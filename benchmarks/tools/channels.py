"""What a step costs on its way from a process that acts to one that learns, on this machine's CPU.

    torchrun --nproc-per-node 2 -m benchmarks.tools.channels --envs 16 256

Two processes; one sends the steps of an iteration, the other receives them. The question of
GMI-DRL's table 8 (Wang et al., 2022), uni-channel against multi-channel: each tensor of a step as a
message of its own, a parcel for each step, or a channel for each kind of tensor with all steps of
the iteration in a message. Each through shared memory and over gloo. A JSON line for each, with its
steps a second as a ratio to parcels over gloo, which connect two machines: the median of several
turns, in which all ways are measured one after another.
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

CPU = torch.device("cpu")
# How tensors are put together, and how they get there.
PACKINGS, WAYS = ("tensors", "steps", "kinds"), ("memory", "gloo")
BASE = ("steps", "gloo")


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


def outbox(way: str, like: Sequence[Like], slots: int) -> Outbox:
    """A channel to process 0."""
    if way == "memory":
        return MemoryOut(like, CPU, 0, slots)
    return MessageOut(like, CPU, 0, slots, announces=False)


def inbox(way: str, like: Sequence[Like]) -> Inbox:
    """A channel from process 1."""
    if way == "memory":
        return MemoryIn(like, CPU, 1)
    return MessageIn(like, CPU, 1, announced=False)


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
        self.processes, self.steps = processes, options.steps
        likes, self.messages = messages_of(packing, envs, options.steps)
        self.receivers: list[Receiver] = []
        self.senders: list[tuple[Sender, list[torch.Tensor]]] = []
        for like in likes:
            if processes.rank == 0:
                self.receivers.append(Receiver([inbox(way, like)]))
                continue
            values = [torch.zeros(shape, dtype=dtype) for shape, dtype in like]
            self.senders.append((Sender([outbox(way, like, self.messages)]), values))

    def rate(self, iterations: int) -> float:
        """Steps a second."""
        self.processes.barrier()
        begun = time.perf_counter()
        for _ in range(iterations * self.messages):
            for sender, values in self.senders:
                sender.send(values)
            for receiver in self.receivers:
                receiver.receive()
        self.processes.barrier()
        return iterations * self.steps / (time.perf_counter() - begun)


def measure(options: argparse.Namespace) -> None:
    """Measures in one of the two processes; process 0 prints."""
    torch.set_num_threads(1)
    processes = ProcessGroup.join("cpu")
    for envs in options.envs:
        ways = [(packing, way) for packing in PACKINGS for way in WAYS]
        made = {one: Measured(processes, *one, envs, options) for one in ways}
        rates: dict[tuple[str, str], list[float]] = {one: [] for one in ways}
        for _ in range(options.turns):
            for one, measured in made.items():
                rates[one].append(measured.rate(options.iterations))
        for (packing, way), its in rates.items():
            ratios = [a / b for a, b in zip(its, rates[BASE], strict=True)]
            row = {
                "packing": packing, "way": way, "num_envs": envs, "num_steps": options.steps,
                "steps_per_second": round(statistics.median(its), 1),
                "ratio": round(statistics.median(ratios), 3), "commit": commit(), "date": now(),
                "command": command_line(), **machine(CPU, 1),
            }  # fmt: skip
            if processes.rank == 0:
                print(json.dumps(row), flush=True)
    processes.leave()


def main() -> None:
    """Reads the options, and measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--envs", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--steps", type=int, default=20, help="steps of an iteration")
    parser.add_argument("--iterations", type=int, default=20, help="in a turn")
    parser.add_argument("--turns", type=int, default=5)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
