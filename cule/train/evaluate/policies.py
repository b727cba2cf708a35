"""Loads policies from checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from cule.console import action_numbers
from cule.errors import InvalidValue, is_others
from cule.rom import find_game
from cule.train.algorithm import Algorithm, Context, Nets, overrides_environment
from cule.train.checkpoints import checkpoint
from cule.train.evaluate.policy import Policy, policy_from
from cule.train.import_path import find, settings_from
from cule.train.layout import Layout
from cule.train.lowering.attributes import Attributes
from cule.train.lowering.networks import by_name
from cule.train.nn.models import to_channels_last
from cule.train.settings import Args

Kind = TypeVar("Kind", bound=Algorithm[Any])


def _check_actions(state: dict[str, Any]) -> None:
    """Checks that a checkpoint's policy has the actions of its game.

    Raises:
        ValueError: there is no such game, or it has others.
    """
    game = find_game(state["args"].get("game", Args.game))
    offered = action_numbers(game, "full" if full_actions_of(state) else "minimal")
    if state["num_actions"] != len(offered):
        raise InvalidValue(
            f"expected a policy for the {len(offered)} actions of {game.name} in the checkpoint, "
            f"got one for {state['num_actions']}"
        )


def trained_algorithm(
    wanted: type[Kind], state: dict[str, Any], device: torch.device, programs: Collection[str] = ()
) -> tuple[Kind, Nets]:
    """The algorithm of a checkpoint's state, and its networks, which are not trained any more.

    Args:
        wanted: the class that the algorithm has to be a subclass of.
        state: the state.
        device: where the networks compute.
        programs: modules and scripts that the user has named; of others, only cule's are run.

    Raises:
        ValueError: the algorithm's code is not there or not named, is of another class, or the
            state does not fit it.
    """
    kind = find(state["program"], wanted, programs)
    settings = settings_from(find(state["settings"], Args, programs), state["args"])
    # One process evaluates, whatever the training's layout was.
    replace(settings.on(device), layout=str(Layout()), max_staleness=None).check(1)
    if not overrides_environment(kind):
        _check_actions(state)
    algorithm = kind(settings, Context(device, state["num_actions"]))
    nets = {
        name: net.to(device).eval().requires_grad_(False)
        for name, net in algorithm.networks(algorithm.num_actions).items()
        if isinstance(net, torch.nn.Module)
    }
    for name, net in nets.items():
        try:
            net.load_state_dict(state["trainer"]["networks"][name])
        except (KeyError, TypeError, RuntimeError, AttributeError) as problem:
            if is_others(problem):
                raise
            raise InvalidValue(
                f"expected the weights of {kind.__name__}'s network {name!r} in the checkpoint, "
                f"got others: {' '.join(str(problem).split())}"
            ) from problem
        if state["args"].get("channels_last", False):
            to_channels_last(net)
    if "attributes" in state["trainer"]:
        Attributes(algorithm, nets.values()).load_state_dict(state["trainer"]["attributes"])
    return algorithm, by_name(list(nets), list(nets.values()))


def policy_of(
    state: dict[str, Any], device: torch.device, programs: Collection[str] = ()
) -> Policy:
    """The policy of a checkpoint's state.

    Args:
        state: the state.
        device: where the policy computes.
        programs: modules and scripts that the user has named; of others, only cule's are run.

    Raises:
        ValueError: the algorithm's code is not there or not named, or the state does not fit it.
    """
    algorithm, named = trained_algorithm(Algorithm, state, device, programs)
    if algorithm.brings_envs:  # the game is what is evaluated
        _check_actions(state)
    # As it has acted in its training. A CPU trains in float32.
    rounded = device.type == "cuda" and state["args"].get("bf16", False)
    return policy_from(
        algorithm, named, torch.autocast(device.type, torch.bfloat16, enabled=rounded)
    )


def load_policy(
    run: Path, device: torch.device, programs: Collection[str] = ()
) -> tuple[Policy, dict[str, Any]]:
    """The policy of a run's newest checkpoint, and the checkpoint's state, its networks alone.

    Args:
        run: the run's folder.
        device: where the policy computes.
        programs: modules and scripts that have the algorithm's code. Those of cule need not be
            named; of others the checkpoint runs none that is not named here.

    Raises:
        ValueError: there is no checkpoint, all are damaged, it lacks the game or the seed, or the
            algorithm's code is not there or not named.
    """
    state = checkpoint.networks_of(checkpoint.newest(run, device))
    policy = policy_of(state, device, programs)
    if lacking := [name for name in ("game", "seed") if name not in state["args"]]:
        raise InvalidValue(
            f"expected a training's game and seed in the checkpoint of {run}, got no "
            f"{' and no '.join(lacking)}"
        )
    return policy, state


def digest_of(state: dict[str, Any]) -> str:
    """A word that tells a checkpoint's networks from all others: a SHA-256, in hexadecimal."""
    digest = hashlib.sha256()
    for name, tensors in sorted(state["trainer"]["networks"].items()):
        for key, value in tensors.items():
            digest.update(f"{name}.{key}".encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def full_actions_of(state: dict[str, Any]) -> bool:
    """Whether a training offered all actions; checkpoints of earlier versions do not say."""
    return state["args"].get("full_action_space", False)
