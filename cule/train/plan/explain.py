"""A plan as text: tensors, their readers and memory, the order, and the changes by passes."""

from __future__ import annotations

import textwrap
from typing import Protocol

import torch

from cule.programs.units import bytes_text
from cule.train.plan.bus import bus_text
from cule.train.plan.domain import Domain
from cule.train.plan.groups import Group
from cule.train.plan.memory import Memory
from cule.train.plan.program import Operation, Program, Recurrent

COLUMNS = 100


class Planned(Protocol):
    """The attributes of a Plan that are explained."""

    program: Program
    groups: list[Group]
    memory: Memory
    notes: list[str]
    seconds: float
    device: torch.device


def explain(plan: Planned) -> str:
    """The plan as text, for people."""
    parts = [_tensors(plan), _order(plan)]
    notes = plan.notes + plan.memory.notes
    if notes:
        parts.append("\n".join(["What was changed:", *(f"  {line}" for line in notes)]))
    if over_bus := bus_text(plan, COLUMNS):
        parts.append(over_bus)
    parts.append(f"Planned in {plan.seconds * 1e3:.0f} ms.")
    return "\n\n".join(parts)


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows with columns of equal width; the last one is wrapped."""
    columns = range(len(rows[0]) - 1)
    widths = [max(len(row[column]) for row in rows) for column in columns]
    indent = " " * (sum(widths) + 2 * len(widths))
    lines = []
    for row in rows:
        head = "".join(row[column].ljust(widths[column] + 2) for column in columns)
        room = max(COLUMNS - len(indent), 30)
        wrapped = textwrap.wrap(row[-1], room, break_long_words=False) or [""]
        lines += [(head + wrapped[0]).rstrip(), *(indent + line for line in wrapped[1:])]
    return "\n".join(lines)


def _tensors(plan: Planned) -> str:
    rows: list[tuple[str, ...]] = [("tensor", "kept", "memory", "who reads it")]
    for recurrent in plan.program.recurrents:
        rows.append(_row(plan, recurrent))
    memory = plan.memory
    total = f"In all {bytes_text(memory.ring_bytes)} of rings on the device"
    on_host = sum(one.host_bytes for one in memory.allocations.values())
    if on_host:
        total += f", {bytes_text(on_host)} on the host"
    if memory.fixed:
        total += f", and {bytes_text(memory.fixed)} of weights and optimizers"
    if memory.budget is not None:
        total += f", of {bytes_text(memory.budget)} that may be used"
    return f"{table(rows)}\n{total}."


def _row(plan: Planned, recurrent: Recurrent) -> tuple[str, ...]:
    readers: dict[str, list[str]] = {}
    for operation in plan.program.operations:
        for access in operation.reads:
            if access.recurrent is recurrent:
                place = str(access).removeprefix(recurrent.name)
                readers.setdefault(place, []).append(operation.name)
    read = "; ".join(f"{place} {', '.join(names)}" for place, names in readers.items())
    if recurrent.object is not None:
        return recurrent.name, "newest version", "", read or "nobody"
    allocation = plan.memory.allocations.get(recurrent)
    if allocation is None:
        return recurrent.name, "not kept", "", "nobody"
    unit = "step" if recurrent.over == "step" else "call"
    how = f"{allocation.length} {unit}{'s' if allocation.length > 1 else ''}"
    if allocation.early.count:
        how += f" and the first {allocation.early.count}"
    if allocation.host:
        how += f" on the host, {allocation.near} here"
    memory = bytes_text(allocation.bytes + allocation.host_bytes)
    return recurrent.name, how, memory, read or "nobody"


def when(domain: Domain, period: int) -> str:
    """When an operation is called, in words."""
    stop = domain.times if domain.stop is None else domain.stop
    times = stop - domain.first
    often = "each step" if domain.every == 1 else f"every {domain.every} steps"
    if times > 1:
        often += f", {times} times"
    if domain.nth > 1:
        often += f", only each {domain.nth}th time"
    if domain.when is not None:
        often += f", where {domain.when}"
    return often + (f", from step {domain.start} on" if domain.start >= period else "")


def _order(plan: Planned) -> str:
    period = plan.program.period
    lines = [f"An iteration is {period} step{'s' if period > 1 else ''}:"]
    for number, group in enumerate(plan.groups):
        lines.append(f"  {number + 1}. {_placed(plan, group)}")
        for operation in group.operations:
            work = _work(operation)
            often = when(operation.domain, period)
            lines += textwrap.wrap(
                f"{operation.name} ({operation.role}): {often}{work}", COLUMNS,
                initial_indent=" " * 7, subsequent_indent=" " * 9,
            )  # fmt: skip
    return "\n".join(lines)


def _placed(plan: Planned, group: Group) -> str:
    words = f"on stream {group.stream}"
    others = [g for g in plan.groups if g is not group and g.stream != group.stream]
    waits = [str(plan.groups.index(g) + 1) for g in group.after if g.stream != group.stream]
    beside = [
        str(plan.groups.index(g) + 1)
        for g in others
        if g not in group.after and group not in g.after and g is not group.follows
    ]
    if waits:
        words += f", after {', '.join(waits)}"
    if beside:
        words += f", beside {', '.join(beside)}"
    if group.follows is not None:
        number = plan.groups.index(group.follows) + 1
        words += f", beside {number}, each call after the steps of {number} before it"
    return words + (", all calls as one" if group.together else "")


def _work(operation: Operation) -> str:
    work = operation.work
    if work is None:
        return ""
    needs = bytes_text(work.bytes)
    if work.least >= work.samples:
        return f"; needs {needs}"
    return f"; {work.at_once:,} of {work.samples:,} samples at once need {needs}"
