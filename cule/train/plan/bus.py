"""What operations read over the bus, from rings on the host, and how long it takes.

How fast the bus is, `python -m cule.scope machine` has measured: kernels gather rows, as here.
"""

from __future__ import annotations

from typing import Protocol

import torch

from cule.programs.units import bytes_text
from cule.scope.machine import load
from cule.train.plan.memory import Memory
from cule.train.plan.program import Operation, Program


class Planned(Protocol):
    """The attributes of a Plan that are read here."""

    program: Program
    memory: Memory
    device: torch.device


def host_reads(program: Program, memory: Memory) -> dict[Operation, int]:
    """The bytes that a call of each operation reads from rings on the host; others are left out.

    Of a gradient they are those of all that its samples have, of which less than a hundredth, such
    as actions, may be on the device.
    """
    found = {}
    for operation in program.operations:
        if operation.role in ("simulate", "act"):  # these read the newest slots, on the device
            continue
        far = [
            access
            for access in operation.reads
            if (kept := memory.allocations.get(access.recurrent)) is not None and kept.host
        ]
        work = operation.work
        if far and work is not None and work.gathered:
            found[operation] = work.samples * work.gathered
        elif far:
            each = [one.most * one.recurrent.slot_bytes * one.recurrent.stack for one in far]
            found[operation] = sum(each)
    return found


def bus_text(plan: Planned) -> str | None:
    """How long calls read over the bus, for people; None: nothing is on the host."""
    reads = host_reads(plan.program, plan.memory)
    if not reads:
        return None
    machine, lines = load(plan.device), ["What is read from the host:"]
    for operation, count in reads.items():
        work, line = operation.work, f"  {operation.name}: {bytes_text(count)} a call"
        at_once = count * work.at_once // work.samples if work and work.gathered else count
        copy = None if machine is None else machine.gather(at_once)
        if copy is not None:
            line += (
                f", which take {count / copy.gb_per_s / 1e6:.3g} ms at {copy.gb_per_s:.3g} GB/s, "
                f"as measured for {bytes_text(copy.bytes)} at once"
            )
        if work is not None and work.ahead:
            line += "; all but the first are read while others are computed"
        lines.append(line)
    command = f"python -m cule.scope machine --device {plan.device}"
    if machine is None:
        lines.append(f"  How long that takes is known once this has measured it: {command}")
    else:
        lines.append(f"  Measured on {machine.date[:10]}, to be measured again by: {command}")
    return "\n".join(lines)
