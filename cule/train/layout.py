"""Who acts and who learns on which GPU: a layout of instances, after GMI-DRL (Wang et al., 2022).

An instance is a part of a GPU with roles. torchrun starts a process for each instance, except that
with `apart` a process has two. `--layout` names a layout as text: `LAYOUTS` has an example of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from cule.errors import InvalidValue

Part = Literal["act", "learn"]
# How gradients are averaged (distributed/reduction.py).
Strategy = Literal["multi-process", "multi-ring", "hierarchical"]
Kind = Literal["together", "apart", "staggered", "decoupled"]
BOTH: tuple[Part, ...] = get_args(Part)
# An example of each kind, and who acts and who learns in it.
LAYOUTS: Mapping[str, str] = {
    "together": "each GPU acts and learns",
    "apart:66": "each GPU's multiprocessors are two disjoint sets: 66 act, the others learn",
    "staggered:2": "two processes share each GPU, and each acts and learns",
    "decoupled:3+1": "three GPUs act, the fourth learns; `decoupled:[0,2]+[1]` names the GPUs",
}
LAYOUT_HELP = (
    "who acts and who learns; decoupled needs a lag of 1, and apart this or learning beside the "
    "steps that follow. " + ". ".join(f"{name}: {what}" for name, what in LAYOUTS.items())
).replace("`", "")
_COUNT = r"\d+"
_LIST = r"\[\d+(?:,\d+)*\]"
_SIDES = re.compile(rf"({_COUNT}|{_LIST})\+({_COUNT}|{_LIST})")


@dataclass(frozen=True)
class Instance:
    """A part of a GPU.

    Attributes:
        device: the number of the GPU on its machine.
        roles: whether it acts, learns, or both.
        multiprocessors: how many of the GPU's multiprocessors it uses; None: those that no other
            instance of the GPU uses.
        envs: its share of all envs, in equal parts.
    """

    device: int
    roles: tuple[Part, ...] = BOTH
    multiprocessors: int | None = None
    envs: int = 0


@dataclass(frozen=True)
class Share:
    """Envs of a process that acts, from whose steps one that only learns learns.

    Attributes:
        actor, learner: the numbers of the two processes.
        begin, end: the first of these envs and the one after the last, counted over all processes.
    """

    actor: int
    learner: int
    begin: int
    end: int


@dataclass(frozen=True)
class Layout:
    """A layout; its classmethods make one.

    Attributes:
        kind: "together", "apart", "staggered" or "decoupled".
        multiprocessors: with "apart": how many multiprocessors of a GPU act.
        each: with "staggered": processes on each GPU.
        actors, learners: with "decoupled": the GPUs that act, and those that learn.
    """

    kind: Kind = "together"
    multiprocessors: int = 0
    each: int = 1
    actors: tuple[int, ...] = ()
    learners: tuple[int, ...] = ()

    @classmethod
    def together(cls) -> Layout:
        """Each GPU acts and learns, in a process of its own."""
        return cls()

    @classmethod
    def apart(cls, multiprocessors: int) -> Layout:
        """Each GPU's multiprocessors in two disjoint sets: so many act, the others learn.

        Raises:
            ValueError: the number is less than 1.
        """
        if multiprocessors < 1:
            raise InvalidValue(
                f"expected apart with at least 1 multiprocessor that acts, got {multiprocessors}"
            )
        return cls("apart", multiprocessors=multiprocessors)

    @classmethod
    def staggered(cls, each: int) -> Layout:
        """So many processes on each GPU; while one learns, another one may act.

        Raises:
            ValueError: the number is less than 1.
        """
        if each < 1:
            raise InvalidValue(f"expected staggered with at least 1 process on a GPU, got {each}")
        return cls("staggered", each=each)

    @classmethod
    def decoupled(cls, actors: Sequence[int], learners: Sequence[int]) -> Layout:
        """Some GPUs act, others learn.

        Args:
            actors: the GPUs that act.
            learners: the GPUs that learn; each from equally many envs, so that their number has to
                be a multiple of both sides (`check_envs`).

        Raises:
            ValueError: a GPU is named twice, or a side is empty.
        """
        if not actors or not learners:
            raise InvalidValue(
                f"expected decoupled with at least 1 actor and 1 learner, got {len(actors)} and "
                f"{len(learners)}"
            )
        every = [*actors, *learners]
        if len(set(every)) < len(every):
            raise InvalidValue(
                "expected decoupled with a GPU for each actor and learner, as NCCL connects no two "
                f"processes of one, got actors on {list(actors)} and learners on {list(learners)}"
            )
        return cls("decoupled", actors=tuple(actors), learners=tuple(learners))

    @classmethod
    def parse(cls, text: str) -> Layout:
        """The layout of a text, such as those of `LAYOUTS`.

        Raises:
            ValueError: the text names no layout.
        """
        kind, _, rest = text.partition(":")
        if kind == "together" and not rest:
            return cls.together()
        if kind in ("apart", "staggered") and rest.isdecimal():
            return cls.apart(int(rest)) if kind == "apart" else cls.staggered(int(rest))
        sides = _SIDES.fullmatch(rest) if kind == "decoupled" else None
        if sides is None:
            *first, last = LAYOUTS
            raise InvalidValue(f"expected layout to be {', '.join(first)} or {last}, got {text!r}")
        actors = _devices(sides[1], 0)
        return cls.decoupled(actors, _devices(sides[2], len(actors)))

    def __str__(self) -> str:
        if self.kind == "together":
            return self.kind
        if self.kind == "decoupled":
            every = [*self.actors, *self.learners]
            if every == list(range(len(every))):
                return f"decoupled:{len(self.actors)}+{len(self.learners)}"
            actors, learners = (",".join(map(str, side)) for side in (self.actors, self.learners))
            return f"decoupled:[{actors}]+[{learners}]"
        return f"{self.kind}:{self.multiprocessors or self.each}"

    @property
    def lags(self) -> bool:
        """Whether acting goes on while others learn.

        That needs a lag of 1, or with `apart` learning beside the steps that follow.
        """
        return self.kind in ("apart", "decoupled")

    def processes(self, size: int) -> Sequence[tuple[Instance, ...]]:
        """The instances of each of `size` processes. A learner, if there is one alone, comes first.

        So process 0, which evaluates and logs, has the newest weights.

        Raises:
            ValueError: the layout is for another number of processes.
        """
        if self.kind == "decoupled":
            wanted = len(self.learners) + len(self.actors)
            if size != wanted:
                raise InvalidValue(
                    f"expected {wanted} processes with the layout {self} (torchrun "
                    f"--nproc-per-node {wanted}), got {size}"
                )
            learn = [(Instance(device, ("learn",)),) for device in self.learners]
            return learn + [(Instance(device, ("act",), envs=1),) for device in self.actors]
        if size % self.each:
            raise InvalidValue(
                f"expected a multiple of {self.each} processes with the layout {self}, got {size}"
            )
        if self.kind == "apart":
            return [
                (Instance(d, ("act",), self.multiprocessors, envs=1), Instance(d, ("learn",)))
                for d in range(size)
            ]
        return [(Instance(rank // self.each, envs=1),) for rank in range(size)]

    def ranks(self, size: int, part: Part) -> list[int]:
        """The processes that have a role."""
        return [
            rank
            for rank, instances in enumerate(self.processes(size))
            if any(part in instance.roles for instance in instances)
        ]

    def check_envs(self, num_envs: int) -> None:
        """Checks that those who only learn can get the steps of equally many envs.

        Raises:
            ValueError: they cannot.
        """
        learners = len(self.learners)
        if learners and num_envs % learners:
            raise InvalidValue(
                f"expected num_envs to be a multiple of the {learners} processes that learn with "
                f"the layout {self}, got {num_envs}"
            )

    def shares(self, size: int, num_envs: int) -> list[Share]:
        """Who learns from which envs, where some processes only act and others only learn.

        All who act have equally many envs, and all who learn get the steps of equally many, in
        order. So one that acts may send to several, and one that learns get from several.

        Args:
            size: the number of processes.
            num_envs: the envs of all processes; a multiple of those that act and of those that
                learn.
        """
        if self.kind != "decoupled":
            return []
        actors, learners = self.ranks(size, "act"), self.ranks(size, "learn")
        played, learned = num_envs // len(actors), num_envs // len(learners)
        cuts = sorted({*range(0, num_envs, played), *range(0, num_envs, learned), num_envs})
        return [
            Share(actors[begin // played], learners[begin // learned], begin, end)
            for begin, end in pairwise(cuts)
        ]

    def learners_by_device(self, size: int) -> list[list[int]]:
        """The processes that learn, by their GPUs: the paper's mapping list."""
        placed = self.processes(size)
        by_device: dict[int, list[int]] = {}
        for rank in self.ranks(size, "learn"):
            by_device.setdefault(placed[rank][0].device, []).append(rank)
        return list(by_device.values())


def _devices(side: str, first: int) -> list[int]:
    """The GPUs that one side of a text names, or so many from `first` on."""
    if side.startswith("["):
        return [int(number) for number in side[1:-1].split(",")]
    return list(range(first, first + int(side)))
