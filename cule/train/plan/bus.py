"""What operations read over the bus, from rings on the host, and how long it takes.

How fast the bus is, `python -m cule.scope machine` has measured: kernels gather rows, as here.
"""

from __future__ import annotations

import textwrap
from typing import Protocol

import torch

from cule.programs.units import bytes_text
from cule.scope.machine import Machine, load
from cule.train.plan.memory import Memory
from cule.train.plan.program import Operation, Program


class Planned(Protocol):
    """The attributes of a Plan that are read here."""

    program: Program
    memory: Memory
    device: torch.device


def host_reads(program: Program, memory: Memory) -> dict[Operation, int]:
    """The bytes that a call of each operation reads from rings on the host; others are left out.

    Of a gradient they are all that its samples have, so that the little that is on the device, such
    as actions beside frames, counts, too.
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


def _line(operation: Operation, count: int, machine: Machine | None) -> str:
    """How much a call reads, and how long it takes if the machine was measured."""
    work, line = operation.work, f"{operation.name}: {bytes_text(count)} a call"
    at_once = count * work.at_once // work.samples if work and work.gathered else count
    if machine is not None and (copy := machine.gather(at_once)) is not None:
        line += (
            f", which take {count / copy.gb_per_s / 1e6:.3g} ms at {copy.gb_per_s:.3g} GB/s, as "
            f"measured for {bytes_text(copy.bytes)} at once"
        )
    if work is not None and work.ahead:
        line += "; all but the first are read while others are computed"
    return line


def bus_text(plan: Planned, columns: int) -> str | None:
    """How long calls read over the bus, for people; None: nothing is on the host.

    Args:
        plan: the plan.
        columns: where lines end.
    """
    reads = host_reads(plan.program, plan.memory)
    if not reads:
        return None
    machine = load(plan.device)
    lines = [_line(operation, count, machine) for operation, count in reads.items()]
    command = f"python -m cule.scope machine --device {plan.device}"
    if machine is None:
        lines.append(f"How long that takes is known once this has measured it: {command}")
    else:
        lines.append(f"Measured on {machine.date[:10]}; to measure it again: {command}")
    wrapped = (
        textwrap.fill(line, columns, initial_indent="  ", subsequent_indent="    ")
        for line in lines
    )
    return "\n".join(["What is read from the host:", *wrapped])
