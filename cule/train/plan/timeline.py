"""When an iteration's operations run, by their measured times, and a picture of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cule.train.plan.execution import Executor, Step, in_turns
from cule.train.plan.groups import Group
from cule.train.plan.program import Operation

COLOURS = {
    "simulate": "tab:blue", "act": "tab:cyan", "learn": "tab:orange", "reduce": "tab:purple",
    "copy": "tab:gray", "hand over": "tab:green", "effect": "tab:red",
}  # fmt: skip


@dataclass(frozen=True)
class Bar:
    """Calls of an operation: all of an iteration, or those between two waits for another stream.

    Attributes:
        operation: the operation.
        stream: the number of its stream.
        begin, end: seconds from the iteration's begin. Operations of a group that take turns, such
            as acting and emulating, are drawn one after the other.
    """

    operation: Operation
    stream: int
    begin: float
    end: float


def measure(
    executors: Sequence[Executor], iteration: int, wait: Callable[[], object]
) -> list[tuple[Group, dict[Operation, float]]]:
    """Executes an iteration call by call; the seconds that operations take.

    Args:
        executors: of all groups, in their order.
        iteration: the number of the iteration.
        wait: waits for the device.

    Returns:
        Groups, with the seconds of each operation in all; those of a group that another one follows
        in parts, between which the other one has its own.
    """
    measured = []
    for turn in in_turns(executors, iteration):
        seconds: dict[Operation, float] = {}
        for step in turn.steps:
            for operations, piece in _pieces(turn.executor, step):
                wait()
                begun = time.perf_counter()
                turn.executor.make(piece)
                wait()
                took = time.perf_counter() - begun
                for operation in operations:
                    seconds[operation] = seconds.get(operation, 0.0) + took / len(operations)
        measured.append((turn.executor.group, seconds))
    return measured


def _pieces(executor: Executor, step: Step) -> list[tuple[list[Operation], Step]]:
    """A step in pieces of one call; in one piece where the host's threads work side by side."""
    operations = [operation for operation, _ in step.calls]
    if any(o.asynchronous is not None for o in executor.group.operations):
        return [(operations, step)]
    moved: tuple[list[Operation], Step] = ([], Step(step.t, step.j, ()))
    return [moved, *(([call[0]], Step(0, 0, (call,))) for call in step.calls)]


def schedule(measured: Sequence[tuple[Group, dict[Operation, float]]]) -> list[Bar]:
    """When operations run, if each group begins as soon as its stream and its dependences allow.

    Args:
        measured: the result of measure().
    """
    bars, stream_ends, ends = [], dict[int, float](), dict[Group, float]()
    for group, seconds in measured:
        before = [other for other in (*group.after, group.follows) if other in ends]
        begin = max([stream_ends.get(group.stream, 0.0), *(ends[other] for other in before)])
        for operation in group.operations:
            if operation in seconds:
                end = begin + seconds[operation]
                bars.append(Bar(operation, group.stream, begin, end))
                begin = end
        stream_ends[group.stream] = ends[group] = begin
    return bars


def summary(bars: Sequence[Bar]) -> str:
    """What running side by side gains, in a sentence."""
    whole = sum(bar.end - bar.begin for bar in bars)
    last = max((bar.end for bar in bars), default=0.0)
    return (
        f"Measured call by call, an iteration takes {whole * 1e3:.1f} ms one after the other, and "
        f"{last * 1e3:.1f} ms with what can run side by side."
    )


def draw(bars: Sequence[Bar], figure: Any) -> None:
    """Draws the bars of each stream into an empty matplotlib figure."""
    axes = figure.subplots()
    streams = sorted({bar.stream for bar in bars})
    figure.set_size_inches(10, 1.5 + 1.2 * len(streams))
    for role in dict.fromkeys(bar.operation.role for bar in bars):
        some = [bar for bar in bars if bar.operation.role == role]
        axes.barh(
            [streams.index(bar.stream) for bar in some],
            [(bar.end - bar.begin) * 1e3 for bar in some],
            left=[bar.begin * 1e3 for bar in some],
            height=0.6, color=COLOURS[role], edgecolor="white", label=role,
        )  # fmt: skip
    last = max((bar.end for bar in bars), default=0.0)
    for bar in bars:
        if bar.end - bar.begin > 0.03 * last:
            middle = (bar.begin + bar.end) / 2 * 1e3
            axes.text(
                middle, streams.index(bar.stream), bar.operation.name, ha="center", va="center",
                fontsize=8, rotation=20,
            )  # fmt: skip
    axes.set_yticks(range(len(streams)), [f"stream {stream}" for stream in streams])
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds of an iteration")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=7, fontsize=8)
