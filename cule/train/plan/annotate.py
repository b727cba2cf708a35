"""Annotations of a training for cule.scope: names of operations, and the log's milliseconds.

Every algorithm has the same names, whatever its plan calls them, so that reports can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from cule.scope import Light, iteration, operation, phase
from cule.train.plan.program import Operation

__all__ = [
    "Light", "iteration", "launching", "log_values", "name_of", "operation", "part_of",
    "parts_of", "phase", "reading_of",
]  # fmt: skip

# cule.scope's names of operations that a plan names otherwise.
NAMES = {
    "act": "inference",
    "emulate": "simulation",
    "gradient": "backpropagation",
    "average gradient": "reduction",
    "update": "optimizer",
    "send": "sending",
    "receive": "receiving",
}
PLAYING, LEARNING, HANDING_OVER = "playing", "learning", "handing over"
ALL = f"{PLAYING} and {LEARNING}"


def name_of(planned: Operation) -> str:
    """The name of a plan's operation in cule.scope."""
    # What follows in parentheses names one of several learnings.
    name, bracket, rest = planned.name.partition(" (")
    return NAMES.get(name, name) + bracket + rest


def part_of(planned: Operation) -> str:
    """The part of an iteration to which a plan's operation belongs."""
    if planned.role in ("act", "simulate"):
        return PLAYING
    return HANDING_OVER if planned.role in ("effect", "hand over") else LEARNING


def parts_of(planned: Iterable[Operation]) -> str:
    """The part of several operations; "playing and learning" if they belong to different ones.

    A CUDA graph of several parts is launched as one.
    """
    parts = {part_of(operation) for operation in planned}
    return parts.pop() if len(parts) == 1 else ALL


def launching(planned: Sequence[Operation]) -> AbstractContextManager[object]:
    """The annotation around the launches of a group; none if it has more than one part."""
    part = parts_of(planned)
    return nullcontext() if part == ALL else operation(part)


def reading_of(part: str) -> str:
    """The annotation of gathering the inputs of a part's operations."""
    return "gathering" if part == LEARNING else "storage"


def log_values(light: Light) -> dict[str, float]:
    """Milliseconds of each operation since the last call, by keys such as "ms_playing"."""
    return {f"ms_{name.replace(' ', '_')}": ms for name, ms in light.milliseconds().items()}
