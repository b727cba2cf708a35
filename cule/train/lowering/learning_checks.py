"""Checks of several learnings, in words: networks, names in the log, priorities."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.checks import described
from cule.train.declaration import LearningPhase
from cule.train.lowering.method_checks import LOGGED


def check_trained(
    phases: Sequence[LearningPhase], trained: Collection[str], copies: Mapping[str, str]
) -> None:
    """Checks which networks each learning trains.

    Args:
        phases: the learnings.
        trained: the names of all networks that are trained.
        copies: the network that each copy is of.

    Raises:
        ValueError: a name is unknown, a network is not trained, two learnings have only some in
            common, or a copy is of a network that several train.
    """
    sets = [set(trained if phase.networks is None else phase.networks) for phase in phases]
    if unknown := set().union(*sets) - set(trained):
        raise InvalidValue(
            f"expected learnings to train some of {', '.join(trained)}, got {', '.join(unknown)}"
        )
    if left := set(trained) - set().union(*sets) or (set(trained) if not all(sets) else set()):
        raise InvalidValue(
            f"expected each learning to train networks, and each network to be trained, got none "
            f"for {', '.join(sorted(left))}"
        )
    for one in sets:
        for other in sets:
            if one & other and one != other:
                raise InvalidValue(
                    "expected two learnings to train the same networks, or none in common, got "
                    f"{', '.join(sorted(one))} and {', '.join(sorted(other))}"
                )
    for name, source in copies.items():
        if sum(source in one for one in sets) > 1:
            raise InvalidValue(
                f"expected a copy of a network that one learning trains, got {name} of {source}"
            )


def check_logged(names: Sequence[str]) -> None:
    """Checks that no two numbers of several learnings have the same name in the log.

    Raises:
        ValueError: a name stands twice, or is one of the log's own.
    """
    own = LOGGED - {"grad_norm"}
    wrong = [name for name in names if name in own or name.startswith("ms_")]
    if wrong := wrong or [name for name, count in collections.Counter(names).items() if count > 1]:
        raise InvalidValue(
            "expected learnings whose numbers have names of their own in the log, which begin with "
            f"the learning's, got {', '.join(wrong)}"
        )


def check_priorities(values: Mapping[str, Any], rows: int, prioritized: bool) -> None:
    """Checks the priorities that `loss` returns; does not wait for the device.

    Args:
        values: what it returns.
        rows: of the batch that it got.
        prioritized: whether rows are sampled by priorities.

    Raises:
        ValueError: there are none, or others than a number for each row; or nothing is sampled by
            them.
    """
    given = values.get("priorities")
    if not prioritized:
        if "priorities" in values:
            raise InvalidValue(
                "expected loss to return priorities only with a Replay that is prioritized, got "
                f"{described(given)}"
            )
        return
    if (
        not isinstance(given, torch.Tensor)
        or given.shape != (rows,)
        or not given.is_floating_point()
    ):
        raise InvalidValue(
            f'expected loss to return "priorities" with a number for each of {rows} rows, as the '
            f"replay memory is prioritized, got {described(given)}"
        )
