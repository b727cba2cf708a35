"""Who acts and who learns on which GPU: a layout of instances, after GMI-DRL (Wang et al., 2022).

An instance (instances.py) is a part of a GPU with a role. torchrun starts a process for each,
except that with `apart` a process has two. `--layout` names a layout as text: `LAYOUTS` has an
example of each that has a name, and `3act@0+learn@1` writes down any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from cule.errors import InvalidValue
from cule.train.instances import Instance, Role, read, written

Part = Literal["act", "learn"]
# How gradients are averaged (distributed/reduction.py).
Strategy = Literal["multi-process", "multi-ring", "hierarchical"]
BOTH: tuple[Part, ...] = get_args(Part)
# An example of each kind, and who acts and who learns in it.
LAYOUTS: Mapping[str, str] = {
    "together": "each GPU acts and learns",
    "apart:66": "each GPU's multiprocessors are two disjoint sets: 66 act, the others learn",
    "staggered:2": "two processes share each GPU, and each acts and learns",
    "decoupled:3+1": "three GPUs act, the fourth learns; `decoupled:[0,2]+[1]` names the GPUs",
    "2act@0+learn@0+both@1": "two processes act and one learns on the first GPU, the second "
    "GPU does both; `2act+learn` is the same on each GPU",
}
LAYOUT_HELP = (
    "who acts and who learns; where some only act it needs a lag of 1, and apart this or learning "
    "beside the steps that follow. "
    + ". ".join(f"{name}: {what}" for name, what in LAYOUTS.items())
    + ". With act:44:10GiB a process has at most 44 of its GPU's multiprocessors and 10 GiB of its "
    "memory"
).replace("`", "")
_COUNT = r"\d+"
_LIST = r"\[\d+(?:,\d+)*\]"
_SIDES = re.compile(rf"({_COUNT}|{_LIST})\+({_COUNT}|{_LIST})")
# In this order processes are numbered.
_ORDER: tuple[Role, ...] = ("learn", "both", "act")


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


Process = tuple[Instance, ...]


@dataclass(frozen=True)
class Layout:
    """The instances of a training, by the processes that have them; its classmethods make one.

    Attributes:
        places: the instances of each process. Those that learn come before those that only act, so
            that process 0, which evaluates and logs, has the newest weights.
        everywhere: they are those of one GPU, and each other GPU has the same.
    """

    places: tuple[Process, ...] = ((Instance(),),)
    everywhere: bool = True

    @classmethod
    def of(cls, *instances: Instance, everywhere: bool = False) -> Layout:
        """A process for each of some instances, in any mix.

        Those that only learn learn from the steps of those that only act; each of the former from
        equally many envs. An instance that does both learns from its own envs, and has as many of
        them as each other learner learns from. So a layout with `n` that learn divides the envs
        into `n` equal parts.

        Args:
            instances: in any order; all are of GPU 0 if they are `everywhere`.
            everywhere: each GPU has these instances; torchrun says how many GPUs there are.

        Raises:
            ValueError: nobody learns from what another one plays, or one only learns and no other
                only acts.
        """
        for one in instances:
            if everywhere and one.device:
                raise InvalidValue(f"expected GPU 0 in a layout of each GPU, got {one.device}")
        roles = [one.role for one in instances]
        if not roles or ("act" in roles) != ("learn" in roles):
            raise InvalidValue(
                "expected a layout in which some instances do both, or some act and others learn "
                f"from that, got {', '.join(roles) or 'none'}"
            )
        ordered = sorted(instances, key=lambda one: _ORDER.index(one.role))
        return cls(tuple((one,) for one in ordered), everywhere)

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
        return cls(((Instance(0, "act", multiprocessors), Instance(0, "learn")),))

    @classmethod
    def staggered(cls, each: int) -> Layout:
        """So many processes on each GPU; while one learns, another one may act.

        Raises:
            ValueError: the number is less than 1.
        """
        if each < 1:
            raise InvalidValue(f"expected staggered with at least 1 process on a GPU, got {each}")
        return cls.of(*[Instance()] * each, everywhere=True)

    @classmethod
    def decoupled(cls, actors: Sequence[int], learners: Sequence[int]) -> Layout:
        """Some processes act, others learn.

        Args:
            actors: the GPU of each that acts. One that is named several times has as many.
            learners: the GPU of each that learns.

        Raises:
            ValueError: a side is empty.
        """
        if not actors or not learners:
            raise InvalidValue(
                f"expected decoupled with at least 1 actor and 1 learner, got {len(actors)} and "
                f"{len(learners)}"
            )
        learn = [Instance(device, "learn") for device in learners]
        return cls.of(*learn, *(Instance(device, "act") for device in actors))

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
        if sides is not None:
            actors = _devices(sides[1], 0)
            return cls.decoupled(actors, _devices(sides[2], len(actors)))
        found = read(text)
        if found is None:
            *first, last = LAYOUTS
            raise InvalidValue(f"expected layout to be {', '.join(first)} or {last}, got {text!r}")
        instances, everywhere = found
        return cls.of(*instances, everywhere=everywhere)

    def __str__(self) -> str:
        if self.budget is not None:
            return f"apart:{self.budget}"
        every = [process[0] for process in self.places]
        roles = {one.role for one in every}
        if not self.limited and self.everywhere and roles == {"both"}:
            return "together" if len(every) == 1 else f"staggered:{len(every)}"
        if not self.limited and not self.everywhere and "both" not in roles:
            return self._decoupled()
        return written(every, everywhere=self.everywhere)

    def _decoupled(self) -> str:
        actors, learners = self._sides
        if self.in_order:
            return f"decoupled:{len(actors)}+{len(learners)}"
        acting, learning = (",".join(map(str, side)) for side in (actors, learners))
        return f"decoupled:[{acting}]+[{learning}]"

    @property
    def in_order(self) -> bool:
        """Whether each process has a GPU of its own, first all actors: `decoupled:3+1`."""
        actors, learners = self._sides
        return actors + learners == list(range(len(self.places)))

    @property
    def _sides(self) -> list[list[int]]:
        """The GPUs of processes that only act, and of those that only learn."""
        return [[one.device for (one, *_) in self.places if one.role == role] for role in BOTH]

    @property
    def budget(self) -> int | None:
        """How many multiprocessors act where a process has two instances; None: with others."""
        return self.places[0][0].budget if len(self.places[0]) > 1 else None

    @property
    def limited(self) -> bool:
        """Whether processes with one instance may use only a part of their GPUs."""
        return any(process[0].limited for process in self.places if len(process) == 1)

    @property
    def each(self) -> int:
        """The processes on each GPU, where all GPUs have the same."""
        return len(self.places) if self.everywhere else 1

    @property
    def crosses(self) -> bool:
        """Whether some processes only act, and others only learn."""
        return any(len(process) == 1 and process[0].role == "act" for process in self.places)

    @property
    def lags(self) -> bool:
        """Whether acting goes on while others learn.

        That needs a lag of 1, or with `apart` learning beside the steps that follow.
        """
        return self.crosses or self.budget is not None

    def processes(self, size: int) -> Sequence[Process]:
        """The instances of each of `size` processes.

        Raises:
            ValueError: the layout is for another number of processes.
        """
        count = len(self.places)
        if self.everywhere and size % count:
            raise InvalidValue(
                f"expected a multiple of {count} processes with the layout {self}, got {size}"
            )
        if not self.everywhere and size != count:
            raise InvalidValue(
                f"expected {count} processes with the layout {self} (torchrun "
                f"--nproc-per-node {count}), got {size}"
            )
        if not self.everywhere:
            return self.places
        return [
            tuple(replace(one, device=gpu) for one in process)
            for gpu in range(size // count)
            for process in self.places
        ]

    def ranks(self, size: int, part: Part) -> list[int]:
        """The processes that have a role."""
        return [rank for rank, role in enumerate(self._roles(size)) if role in (part, "both")]

    def only(self, size: int, role: Role) -> list[int]:
        """The processes that have this role and no other."""
        return [rank for rank, its in enumerate(self._roles(size)) if its == role]

    def _roles(self, size: int) -> list[Role]:
        return [p[0].role if len(p) == 1 else "both" for p in self.processes(size)]

    def check_envs(self, acting: int, num_envs: int) -> None:
        """Checks that all who learn can learn from equally many envs, and all who act have some.

        Args:
            acting: how many processes act.
            num_envs: the envs of all processes.

        Raises:
            ValueError: they cannot.
        """
        if not self.crosses:
            return
        size = self._size(acting)
        alone, learners = len(self.only(size, "act")), len(self.ranks(size, "learn"))
        if num_envs % learners:
            raise InvalidValue(
                f"expected num_envs to be a multiple of the {learners} processes that learn with "
                f"the layout {self}, got {num_envs}"
            )
        far = num_envs // learners * len(self.only(size, "learn"))
        if far % alone:
            raise InvalidValue(
                f"expected the {alone} processes that only act with the layout {self} to have "
                f"equally many of the {far} envs from which others learn, got num_envs {num_envs}"
            )

    def _size(self, acting: int) -> int:
        """The number of processes, by that of those who act."""
        return len(self.places) * (acting // len(self.ranks(len(self.places), "act")))

    def fewest_envs(self, acting: int, num_envs: int) -> int:
        """The fewest envs of a process that acts; see `check_envs`."""
        return min(len(its) for its in self.envs(self._size(acting), num_envs) if its)

    def envs(self, size: int, num_envs: int) -> list[range]:
        """The envs of each process, counted over all of them; none for one that only learns.

        Those of processes that only act come first, then those of processes that do both.

        Args:
            size: the number of processes.
            num_envs: the envs of all processes, see `check_envs`.
        """
        rows = num_envs // len(self.ranks(size, "learn"))
        far = rows * len(self.only(size, "learn"))
        first, envs = {"act": 0, "both": far, "learn": 0}, []
        many = {"act": far // max(1, len(self.only(size, "act"))), "both": rows, "learn": 0}
        for role in self._roles(size):
            envs.append(range(first[role], first[role] + many[role]))
            first[role] += many[role]
        return envs

    def shares(self, size: int, num_envs: int) -> list[Share]:
        """Who learns from which envs, where some processes only act and others only learn.

        All who only act have equally many envs, and all who only learn get the steps of equally
        many, in order. So one that acts may send to several, and one that learns get from several.

        Args:
            size: the number of processes.
            num_envs: the envs of all processes, see `check_envs`.
        """
        if not self.crosses:
            return []
        actors, learners = (self.only(size, part) for part in BOTH)
        envs = self.envs(size, num_envs)
        played, end = len(envs[actors[0]]), envs[actors[-1]].stop
        learned = end // len(learners)
        cuts = sorted({*range(0, end, played), *range(0, end, learned), end})
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
