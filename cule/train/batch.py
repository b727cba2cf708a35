"""Batches of a loss: sequences of a group of envs, shuffled transitions, or sampled ones.

Shuffled transitions are all of the newest steps; sampled transitions and sequences come from a
replay memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Protocol

import torch

from cule.errors import MissingPart
from cule.train.learning import Learning
from cule.train.plan.stores import Window

Part = Callable[[], torch.Tensor]


class Batch:
    """Parts of a batch, as attributes; each is gathered when it is first asked for.

    Sequences have T steps of B envs: observations (T + 1, B, ...), everything else (T, B). Other
    batches have B transitions, everything is (B, ...), and there are next_observations. With
    priorities there are weights, too.

    Attributes:
        asked: the names that have been asked for.
    """

    def __init__(self, parts: Mapping[str, Part]):
        self._parts = parts
        self._versions: dict[str, int] = {}
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> torch.Tensor:
        parts = self.__dict__.get("_parts", {})
        if name not in parts:
            known = ", ".join(sorted(parts))
            raise MissingPart(f"expected a part of the batch ({known}), got {name}")
        self.asked.add(name)
        value = parts[name]()
        self.__dict__[name] = value
        self._versions[name] = value._version
        return value

    @property
    def names(self) -> list[str]:
        """The names of all parts."""
        return list(self._parts)

    @property
    def changed(self) -> list[str]:
        """The parts that were changed in place since they were asked for."""
        return [name for name, was in self._versions.items() if vars(self)[name]._version != was]


class Used(SimpleNamespace):
    """The parts of a batch that a loss reads, as attributes; the first call has shown which."""

    def __getattr__(self, name: str) -> Any:
        raise MissingPart(
            f"expected a part of the batch that the loss also read when it was tried with zeros "
            f"({', '.join(vars(self))}), got {name}"
        )


class Rows(Protocol):
    """The rows of an update, which a loss gets at once or in several batches.

    Attributes:
        count: how many rows an update has.
        observations_each: how many observations a row has.
        dimension: the dimension of a batch's parts that runs over rows.
    """

    count: int
    observations_each: int
    dimension: int

    def batch(self, begin: int, end: int) -> Batch:
        """The batch of rows begin .. end - 1."""


def normalized(values: torch.Tensor) -> torch.Tensor:
    """Shifted and scaled to mean 0 and deviation 1."""
    return (values - values.mean()) / (values.std() + 1e-8)


class Sequences:
    """Whole sequences of some envs. A row is an env.

    Args:
        windows: of all envs by name; observations have one step more than the others.
        whole: tensors (T, num_envs) by name.
        envs: (B,) int64.
        normalize: names of tensors in `whole` to normalize.
    """

    dimension = 1

    def __init__(
        self,
        windows: Mapping[str, Window],
        whole: Mapping[str, torch.Tensor],
        envs: torch.Tensor,
        normalize: tuple[str, ...] = (),
    ):
        self.windows, self.envs = windows, envs
        self.count = len(envs)
        self.observations_each = len(windows["observations"])
        self.whole = {
            name: normalized(values[:, envs]) if name in normalize else values[:, envs]
            for name, values in whole.items()
        }

    def batch(self, begin: int, end: int) -> Batch:
        """Envs begin .. end - 1 of these."""
        envs = self.envs[begin:end]
        parts: dict[str, Part] = {
            name: lambda window=window: window.of(envs)  # type: ignore[misc]
            for name, window in self.windows.items()
        }
        for name, values in self.whole.items():
            parts[name] = lambda values=values: values[:, begin:end]  # type: ignore[misc]
        return Batch(parts)


class Transitions:
    """Some steps of some envs. A row is a transition.

    Args:
        windows: of all envs by name.
        whole: tensors (T, num_envs) by name.
        places: (B,) int64, places in the windows.
        envs: (B,) int64.
        normalize: names of tensors in `whole` to normalize.
        n_step: steps of a transition, unless its episode ends before.
        weights: (B,) float32 of these transitions; None: there are no priorities.
    """

    dimension = 0

    def __init__(
        self,
        windows: Mapping[str, Window],
        whole: Mapping[str, torch.Tensor],
        places: torch.Tensor,
        envs: torch.Tensor,
        normalize: tuple[str, ...] = (),
        n_step: int = 1,
        weights: torch.Tensor | None = None,
    ):
        self.windows, self.places, self.envs = windows, places, envs
        self.n_step, self.weights = n_step, weights
        self.count, self.observations_each = len(places), 1
        self.whole = {}
        for name, values in whole.items():
            some = values[places, envs]
            self.whole[name] = normalized(some) if name in normalize else some

    def batch(self, begin: int, end: int) -> Batch:
        """Transitions begin .. end - 1 of these."""
        places, envs = self.places[begin:end], self.envs[begin:end]
        parts: dict[str, Part] = {
            name: lambda window=window: window.at(places, envs)  # type: ignore[misc]
            for name, window in self.windows.items()
        }
        following = self.windows["observations"]
        parts["next_observations"] = lambda: following.at(places + 1, envs)
        if self.n_step > 1:
            several = functools.cache(lambda: Steps(self.windows, places, envs, self.n_step))
            parts["rewards"] = lambda: several().rewards()
            parts["discounts"] = lambda: several().discounts()
            parts["next_observations"] = lambda: following.at(places + several().count(), envs)
        for name, values in self.whole.items():
            parts[name] = lambda values=values: values[begin:end]  # type: ignore[misc]
        if (weights := self.weights) is not None:
            parts["weights"] = lambda: weights[begin:end]
        return Batch(parts)


class Steps:
    """The next steps of some envs, until their episodes end.

    Args:
        windows: of all envs by name.
        places: (B,) int64, the places of the first steps in the windows.
        envs: (B,) int64.
        most: how many steps there are if no episode ends.
    """

    def __init__(
        self, windows: Mapping[str, Window], places: torch.Tensor, envs: torch.Tensor, most: int
    ):
        self.windows, self.envs = windows, envs
        self.places = places + torch.arange(most, device=places.device).unsqueeze(1)
        played = windows["played"].at(self.places, envs)
        played[0] = True
        # The step after an episode's last is not played.
        self.same = played.long().cumprod(0).bool()

    def count(self) -> torch.Tensor:
        """How many there are: (B,) int64."""
        return self.same.sum(0)

    @functools.cached_property
    def _discounts(self) -> torch.Tensor:
        given = self.windows["discounts"].at(self.places, self.envs)
        return torch.where(self.same, given, 1.0)

    def discounts(self) -> torch.Tensor:
        """The product of their discounts: (B,) float32."""
        return self._discounts.prod(0)

    def rewards(self) -> torch.Tensor:
        """The sum of their rewards, each times the discounts of the steps before it: (B,).

        Of several players (B, num_players).
        """
        given = self.windows["rewards"].at(self.places, self.envs)
        before = self._discounts.roll(1, 0)
        before[0] = 1.0
        weights = torch.where(self.same, before.cumprod(0), 0.0)
        return (given * weights.view(*weights.shape, *[1] * (given.dim() - 2))).sum(0)


class SampledSequences:
    """Sequences of steps that begin anywhere. A row is a sequence.

    Args:
        windows: of all envs by name.
        places: (B,) int64, the places of the first steps in the windows.
        envs: (B,) int64.
        length: steps of a sequence; of observations there is one more, and of what else has one
            more in its window.
        weights: (B,) float32 of these sequences; None: there are no priorities.
    """

    dimension = 1

    def __init__(
        self,
        windows: Mapping[str, Window],
        places: torch.Tensor,
        envs: torch.Tensor,
        length: int,
        weights: torch.Tensor | None = None,
    ):
        self.windows, self.places, self.envs, self.weights = windows, places, envs, weights
        self.length, self.count, self.observations_each = length, len(places), length + 1
        self.all = len(windows["observations"]) - 1
        self.steps = torch.arange(length + 1, device=places.device).unsqueeze(1)

    def batch(self, begin: int, end: int) -> Batch:
        """Sequences begin .. end - 1 of these."""
        envs, first = self.envs[begin:end], self.places[begin:end]
        parts: dict[str, Part] = {}
        for name, window in self.windows.items():
            # Of observations, and of what is read like them, there is one more.
            places = first + self.steps[: self.length + len(window) - self.all]
            parts[name] = functools.partial(window.at, places, envs)
        if (weights := self.weights) is not None:
            parts["weights"] = lambda: weights[begin:end].expand(self.length, -1)
        return Batch(parts)


def rows_of(
    learning: Learning,
    num_envs: int,
    windows: Mapping[str, Window],
    whole: Mapping[str, torch.Tensor],
    turn: torch.Tensor,
    chosen: Any,
    weights: torch.Tensor | None = None,
    *,
    memory: bool = False,
) -> Rows:
    """The rows of an update.

    Args:
        learning: what to learn from.
        num_envs: envs of this process.
        windows: of all envs by name.
        whole: tensors (T, num_envs) by name.
        turn: (1,) int64, the number of the group or of the minibatch of a shuffle.
        chosen: the shuffled places (T * num_envs,), or envs (num_envs,), or what was sampled
            (2 or more, minibatch), all int64; None: groups of envs take turns.
        weights: (minibatch,) float32, of what was sampled; None: there are no priorities.
        memory: a network has one: minibatches are whole sequences, and envs are shuffled.
    """
    if (replay := learning.replay) is not None:
        places, envs = chosen[0], chosen[1]
        if replay.sequence is not None:
            return SampledSequences(windows, places, envs, replay.sequence, weights)
        return Transitions(windows, whole, places, envs, n_step=replay.n_step, weights=weights)
    if learning.minibatch is not None:
        shuffled = chosen.view(-1, learning.minibatch // (learning.steps if memory else 1))
        some = shuffled.index_select(0, turn)[0]
        if memory:
            return Sequences(windows, whole, some, learning.normalize)
        places, envs = some // num_envs, some % num_envs
        return Transitions(windows, whole, places, envs, learning.normalize)
    size = num_envs // learning.groups
    envs = turn * size + torch.arange(size, device=turn.device)
    return Sequences(windows, whole, envs, learning.normalize)


def turns_of(learning: Learning, updates: int) -> int:
    """How many groups of envs, or minibatches of a shuffle, take turns.

    Args:
        learning: what to learn from.
        updates: the updates of a phase.
    """
    if learning.replay is not None:
        return 1
    return learning.groups if learning.minibatch is None else updates // learning.epochs


def sample(
    memory: int, minibatch: int, num_envs: int, position: torch.Tensor, span: int = 1
) -> torch.Tensor:
    """Samples transitions or sequences uniformly: places and envs, (2, minibatch) int64.

    Args:
        memory: steps of an env, of which the window has all but the three oldest, whose frames are
            only used in the stacks of later ones.
        minibatch: how many to sample.
        num_envs: envs of this process.
        position: (1,) int64, steps played so far; at least `span` and three.
        span: steps of each.
    """
    device = position.device
    steps = torch.clamp(position, max=memory) - 2 - span
    back = (torch.rand(minibatch, dtype=torch.float64, device=device) * steps).long() + span
    envs = torch.randint(num_envs, (minibatch,), device=device)
    return torch.stack([memory - 3 - back, envs])
