"""An algorithm's declaration: tensors over steps, how it acts, and from what it learns."""

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
    """When and from what to learn, and what; see Declaration.learning."""

    learning: Learning
    reads: Mapping[str, Callable[[Index], Access]]
    name: str = ""
    loss: Callable[..., Mapping[str, torch.Tensor]] | None = None
    prepare: Callable[..., Mapping[str, torch.Tensor]] | None = None
    networks: tuple[str, ...] | None = None


# What is stored of an env: a number of a dtype; or an array, of a dtype and a shape.
Kind = torch.dtype | tuple[Any, ...]


def parts_of(kind: Kind) -> tuple[torch.dtype, tuple[int, ...]]:
    """The dtype and the shape of a kind."""
    return (kind[0], kind[1:]) if isinstance(kind, tuple) else (kind, ())


def _is_array(kind: Any) -> bool:
    if not isinstance(kind, tuple) or len(kind) < 2 or not isinstance(kind[0], torch.dtype):
        return False
    return all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in kind[1:])


def check_kinds(attribute: str, kinds: Any) -> None:
    """Checks `keeps` or `evaluates`.

    Args:
        attribute: its name.
        kinds: its value.

    Raises:
        ValueError: it is no mapping of names to dtypes, or to dtypes with shapes.
    """
    if not isinstance(kinds, Mapping):
        raise InvalidValue(
            f'expected {attribute} to have dtypes by name, such as {{"values": torch.float32}}, '
            f"got {described(kinds)}"
        )
    for name, kind in kinds.items():
        if not is_name(name):
            raise InvalidValue(f"expected {attribute} to name parts as attributes, got {name!r}")
        if not isinstance(kind, torch.dtype) and not _is_array(kind):
            raise InvalidValue(
                "expected a torch.dtype, or one with a shape, such as (torch.float32, 6), as "
                f"{name} of {attribute}, got {kind!r}"
            )


class Declaration:
    """The argument of Algorithm.declare, which takes what the algorithm declares.

    Args:
        num_envs: the envs of this process.
        observation: the tensor of observations over steps.
        keeps: the algorithm's, see Algorithm.
        evaluates: the algorithm's, see Algorithm.
        num_players: how many players an env has.

    Attributes:
        num_players: how many players an env has. Of several the stored actions and rewards are
            (num_envs, num_players).
        program: the program, to which recurrents belong.
        observation: the tensor of observations over steps.
        started: (num_envs,) bool over steps: the observation is the first of an episode.
        stored: the tensors over steps that are stored, by name: actions, rewards, discounts,
            played, and what `keeps` and `evaluates` name.
        steps: the parts of a step, acting and emulating, in their order.
        phases: when and from what to learn, the main one first.

    Raises:
        ValueError: `keeps` or `evaluates` are wrong.
    """

    def __init__(
        self,
        num_envs: int,
        observation: Recurrent,
        keeps: Mapping[str, Kind],
        evaluates: Mapping[str, Kind],
        num_players: int = 1,
    ):
        check_kinds("keeps", keeps)
        check_kinds("evaluates", evaluates)
        self.num_envs, self.observation, self.num_players = num_envs, observation, num_players
        self.program = Program()
        names: dict[str, Kind] = {"actions": torch.int64, **STEP}
        if num_players > 1:
            names |= {name: (names[name], num_players) for name in ("actions", "rewards")}
        names |= keeps
        self.stored: dict[str, Recurrent] = {}
        for name, kind in names.items():
            dtype, shape = parts_of(kind)
            self.stored[name] = self.recurrent(name, dtype, *shape)
        for name, kind in evaluates.items():
            dtype, shape = parts_of(kind)
            self.stored[f"acting's {name}"] = self.recurrent(f"acting's {name}", dtype, *shape)
        self.started = Recurrent("started", (num_envs,), torch.bool, initial=True)
        self.steps: list[Acting | Emulating] = []
        self.phases: list[LearningPhase] = []

    @property
    def t(self) -> Index:
        """The step."""
        return self.program.t

    def recurrent(
        self, name: str, dtype: torch.dtype = torch.float32, *shape: int, **more: Any
    ) -> Recurrent:
        """Makes a tensor over steps.

        Args:
            name: its name, for messages and checkpoints.
            dtype: of its values.
            shape: a value at a step is (num_envs, *shape).
            more: further arguments of plan.program.Recurrent, such as `initial`.
        """
        return self.program.recurrent(name, (self.num_envs, *shape), dtype, **more)

    def bound(self, name: str, value: torch.Tensor, least: int, most: int) -> Index:
        """A number for indices of reads that is known only when the training runs.

        Args:
            name: no other one's.
            value: a real number on the device, such as `self.now.NAME` of a schedule.
            least: what it is at least; a lower value counts as this.
            most: what it is at most; a higher value counts as this.

        Raises:
            ValueError: it is no such tensor, or `least` is more than `most`.
        """
        return self.program.bound(name, value, least, most)

    def acting(
        self,
        act: Callable[..., Mapping[str, torch.Tensor]],
        reads: Sequence[Access] = (),
        writes: Mapping[str, Access] | None = None,
    ) -> None:
        """Declares how actions are chosen at step t.

        Args:
            act: gets the networks, the observations (num_envs, ...) and a value for each of
                `reads`, or a Window (plan/stores.py) if it is one; returns by name "actions", what
                `keeps` and `evaluates` name, and a value for each of `writes`.
            reads: values that it reads besides the observations.
            writes: values that it writes besides those, by name.
        """
        self.steps.append(Acting(act, reads, writes or {}))

    def emulating(self) -> None:
        """Declares that the envs take a step with the actions."""
        self.steps.append(Emulating())

    def learning(
        self,
        learning: Learning,
        reads: Mapping[str, Callable[[Index], Access]] | None = None,
        *,
        name: str = "",
        loss: Callable[..., Mapping[str, torch.Tensor]] | None = None,
        prepare: Callable[..., Mapping[str, torch.Tensor]] | None = None,
        networks: Sequence[str] | None = None,
    ) -> None:
        """Declares when and from what to learn. The first call declares what `learning` returns.

        Further calls declare further learnings, each with a loss of its own, such as an auxiliary
        phase or another agent's. Their phases come after the main one's of the same step, in the
        order of the calls. They have no lag, and their period is a multiple of the main one's.

        Args:
            learning: when and from what.
            reads: further parts of a batch by name. Each is a function from the index after the
                last step that is learned from to a window of a recurrent.
            name: of a further learning; its numbers in the log begin with it.
            loss: as Algorithm.loss, which it is by default for the first call.
            prepare: as Algorithm.prepare, which it is by default for the first call.
            networks: the names of the networks that it trains; None: all. Two learnings train the
                same networks, with the same optimizer, or none in common.

        Raises:
            ValueError: a further learning has no name of its own, or no loss.
        """
        _check_parts_of_learning(reads, loss, prepare, networks)
        self._check_name(name, loss)
        self.phases.append(
            LearningPhase(
                learning,
                reads or {},
                name,
                loss,
                prepare,
                None if networks is None else tuple(networks),
            )
        )

    def _check_name(self, name: Any, loss: Any) -> None:
        if not self.phases and name:
            raise InvalidValue(f"expected the first learning without a name, got {name!r}")
        if self.phases:
            taken = {phase.name for phase in self.phases}
            if not is_name(name) or name in taken or loss is None:
                raise InvalidValue(
                    "expected a second declaration of learning with a name of its own and a loss, "
                    'such as d.learning(..., name="auxiliary", loss=self.auxiliary_loss), got '
                    f"name={name!r}, loss={described(loss)}"
                )


def _check_parts_of_learning(reads: Any, loss: Any, prepare: Any, networks: Any) -> None:
    for what, given in (("loss", loss), ("prepare", prepare)):
        if given is not None and not callable(given):
            raise InvalidValue(f"expected a function as {what}, got {described(given)}")
    known = isinstance(networks, Sequence) and not isinstance(networks, str)
    if networks is not None and not (known and all(isinstance(n, str) for n in networks)):
        raise InvalidValue(
            f'expected names of networks, such as networks=("critic",), got {networks!r}'
        )
    if reads is not None and not (
        isinstance(reads, Mapping) and all(callable(make) for make in reads.values())
    ):
        raise InvalidValue(
            "expected reads of learning to be functions by name, each from the index after "
            f"the last step to a window, got {described(reads)}"
        )
