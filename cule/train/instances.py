"""Instances, the parts of a GPU that have a role, and how a text lists them.

After GMI-DRL (Wang et al., 2022). A layout (layout.py) says which processes have which instances.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, cast, get_args

from cule.errors import InvalidValue

Role = Literal["act", "learn", "both"]
_COUNT = r"\d+"
_WORD = re.compile(
    rf"({_COUNT})?({'|'.join(get_args(Role))})(?::({_COUNT}))?(?::(\d+(?:\.\d+)?)GiB)?"
    rf"(?:@({_COUNT}))?"
)


@dataclass(frozen=True)
class Instance:
    """A part of a GPU.

    Attributes:
        device: the number of the GPU on its machine; where GPUs are divided into MIG slices, that
            of the slice (distributed/slices.py).
        role: "act": it plays envs. "learn": it learns from what others play. "both": it plays envs,
            and learns from these.
        budget: how many of the GPU's multiprocessors it uses. In a process with two instances
            these are its own, as the driver rounds them, and the other one has all others
            (distributed/sm_partition.py); in a process of its own it uses at most so many, as the
            driver rounds down, though others may use the same (distributed/budgets.py). None: all
            that are left.
        memory: GiB of the GPU's memory that its process may use at most; None: all there is.

    Raises:
        ValueError: there is no such role, or a number is too small.
    """

    device: int = 0
    role: Role = "both"
    budget: int | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise InvalidValue(
                f"expected an instance with the role act, learn or both, got {self.role!r}"
            )
        if self.device < 0:
            raise InvalidValue(
                f"expected an instance with a GPU, counted from 0, got {self.device}"
            )
        if self.budget is not None and self.budget < 1:
            raise InvalidValue(
                "expected an instance with a budget of at least 1 multiprocessor, got "
                f"{self.budget}"
            )
        if self.memory is not None and not 0 < self.memory < math.inf:
            raise InvalidValue(
                f"expected an instance with more than 0 GiB of memory, got {self.memory}"
            )

    @property
    def limited(self) -> bool:
        """Whether it may use only a part of its GPU."""
        return self.budget is not None or self.memory is not None


def written(instances: Sequence[Instance], *, everywhere: bool) -> str:
    """The text that lists some instances, such as 2act:44:10GiB@0+learn@0.

    Args:
        instances: in their order.
        everywhere: each GPU has them, so that none is named.
    """
    words = []
    for one, same in itertools.groupby(instances):
        count = len(list(same))
        words.append(
            f"{count if count > 1 else ''}{one.role}"
            f"{'' if one.budget is None else f':{one.budget}'}"
            f"{'' if one.memory is None else f':{Decimal(str(one.memory)).normalize():f}GiB'}"
            f"{'' if everywhere else f'@{one.device}'}"
        )
    return "+".join(words)


def read(text: str) -> tuple[list[Instance], bool] | None:
    """The instances that a text lists, and whether each GPU has them; None: it is no such list.

    Raises:
        ValueError: a number is too small.
    """
    words = [_WORD.fullmatch(word) for word in text.split("+")]
    found = [word.groups() for word in words if word is not None]
    named = {device is not None for *_, device in found}
    if len(found) < len(words) or len(named) > 1:
        return None
    instances: list[Instance] = []
    for count, role, budget, memory, device in found:
        one = Instance(
            int(device or 0), cast(Role, role), None if budget is None else int(budget),
            None if memory is None else float(memory),
        )  # fmt: skip
        instances += [one] * int(count or 1)
    return instances, named == {False}
