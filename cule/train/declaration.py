"""What an algorithm declares: tensors over steps, how it acts, and from what it learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.checks import described, is_name
from cule.train.learning import Learning
from cule.train.plan.index import Index
from cule.train.plan.program import Access, Program, Recurrent

# What is stored of each step besides the observation and the action.
STEP = {"rewards": torch.float32, "discounts": torch.float32, "played": torch.bool}


@dataclass(frozen=True)
class Acting:
    """How actions are chosen at a step; see Declaration.acting."""

    act: Callable[..., Mapping[str, torch.Tensor]]
    reads: Sequence[Access]
    writes: Mapping[str, Access]


@dataclass(frozen=True)
class Emulating:
    """The envs take a step."""


@dataclass(frozen=True)
class LearningPhase:
    """When and from what to learn; see Declaration.learning."""

    learning: Learning
    reads: Mapping[str, Callable[[Index], Access]]


def check_kinds(attribute: str, kinds: Any) -> None:
    """Checks `keeps` or `evaluates`.

    Raises:
        ValueError: it is no mapping of names to dtypes.
    """
    if not isinstance(kinds, Mapping):
        raise InvalidValue(
            f'expected {attribute} to have dtypes by name, such as {{"values": torch.float32}}, '
            f"got {described(kinds)}"
        )
    for name, kind in kinds.items():
        if not is_name(name):
            raise InvalidValue(f"expected {attribute} to name parts as attributes, got {name!r}")
        if not isinstance(kind, torch.dtype):
            raise InvalidValue(f"expected a torch.dtype as {name} of {attribute}, got {kind!r}")


class Declaration:
    """Takes what an algorithm declares; see Algorithm.declare.

    Args:
        num_envs: of this process.
        observation: the tensor of observations over steps.
        keeps, evaluates: the algorithm's.

    Attributes:
        program: to which operations are added.
        observation, started: tensors over steps. started is whether an observation is the first of
            an episode.
        stored: the tensors over steps that are stored, by name: actions, rewards, discounts,
            played, and what `keeps` and `evaluates` name.
        steps: what is done at each step, in this order.
        phase: when and from what to learn; None: that is not declared yet.

    Raises:
        ValueError: `keeps` or `evaluates` are wrong.
    """

    def __init__(
        self,
        num_envs: int,
        observation: Recurrent,
        keeps: Mapping[str, torch.dtype],
        evaluates: Mapping[str, torch.dtype],
    ):
        check_kinds("keeps", keeps)
        check_kinds("evaluates", evaluates)
        self.num_envs, self.observation = num_envs, observation
        self.program = Program()
        names = {"actions": torch.int64, **STEP, **keeps}
        self.stored = {name: self.recurrent(name, dtype) for name, dtype in names.items()}
        for name, dtype in evaluates.items():
            self.stored[f"acting's {name}"] = self.recurrent(f"acting's {name}", dtype)
        self.started = Recurrent("started", (num_envs,), torch.bool, initial=True)
        self.steps: list[Acting | Emulating] = []
        self.phase: LearningPhase | None = None

    @property
    def t(self) -> Index:
        """The step."""
        return self.program.t

    def recurrent(
        self, name: str, dtype: torch.dtype = torch.float32, *shape: int, **more: Any
    ) -> Recurrent:
        """A tensor over steps with a value (num_envs, *shape) at each."""
        return self.program.recurrent(name, (self.num_envs, *shape), dtype, **more)

    def acting(
        self,
        act: Callable[..., Mapping[str, torch.Tensor]],
        reads: Sequence[Access] = (),
        writes: Mapping[str, Access] | None = None,
    ) -> None:
        """Declares how actions are chosen at step t.

        Args:
            act: gets the networks, the observations and what else it reads; returns "actions",
                what `keeps` and `evaluates` name, and what else it writes.
            reads: what else it reads.
            writes: what else it writes, by name.
        """
        self.steps.append(Acting(act, reads, writes or {}))

    def emulating(self) -> None:
        """Declares that the envs take a step with the actions."""
        self.steps.append(Emulating())

    def learning(
        self,
        learning: Learning,
        reads: Mapping[str, Callable[[Index], Access]] | None = None,
    ) -> None:
        """Declares when and from what to learn.

        Args:
            learning: that.
            reads: further parts of a batch by name: each a function of the index after the last
                step that is learned from, which gives a window.

        Raises:
            ValueError: it was declared before.
        """
        if self.phase is not None:
            raise InvalidValue(
                "expected declare() to declare learning once, got a second declaration: one loss "
                "learns from all"
            )
        self.phase = LearningPhase(learning, reads or {})
