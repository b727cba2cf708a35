"""What cule.scope is told of training: names of operations, and the log's milliseconds.

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

# Where a plan's name is another one.
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
    """The name of a plan's operation."""
    return NAMES.get(planned.name, planned.name)


def part_of(planned: Operation) -> str:
    """The part of an iteration to which a plan's operation belongs."""
    if planned.role in ("act", "simulate"):
        return PLAYING
    return HANDING_OVER if planned.role in ("effect", "hand over") else LEARNING


def parts_of(planned: Iterable[Operation]) -> str:
    """The part that several operations are; those of more than one part are "playing and learning".

    A CUDA graph is launched as one, whatever it holds.
    """
    parts = {part_of(operation) for operation in planned}
    return parts.pop() if len(parts) == 1 else ALL


def launching(planned: Sequence[Operation]) -> AbstractContextManager[object]:
    """What is around the launches of a group; nothing if it has more than one part."""
    part = parts_of(planned)
    return nullcontext() if part == ALL else operation(part)


def reading_of(part: str) -> str:
    """The name of reading what the operations of a part read."""
    return "gathering" if part == LEARNING else "storage"


def log_values(light: Light) -> dict[str, float]:
    """Milliseconds of each operation since the last call, by keys such as "ms_playing"."""
    return {f"ms_{name.replace(' ', '_')}": ms for name, ms in light.milliseconds().items()}
