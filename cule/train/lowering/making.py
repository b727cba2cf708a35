"""Makes an algorithm: its own envs first, if it has any, so that it knows its actions."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from cule.console.options import action_numbers
from cule.errors import InvalidValue
from cule.rom import find_game
from cule.train.algorithm import Algorithm, Context, overrides_environment
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.own_envs import check_envs, num_actions_in, num_players_of
from cule.train.lowering.settings_read import Make, instantiate


def num_actions_of(args: Any) -> int:
    """How many actions the envs of the settings have.

    Raises:
        ValueError: there is no such game.
    """
    space = "all" if args.full_action_space else "minimal"
    return len(action_numbers(find_game(args.game), space))


def _own_envs(make: type[Algorithm[Any]], args: Any, num_envs: int, device: torch.device) -> Any:
    """The envs that an algorithm's class brings; None: it brings none.

    Raises:
        ValueError: they cannot be trained on, or `environment` is no class method.
    """
    if not isinstance(inspect.getattr_static(make, "environment"), (classmethod, staticmethod)):
        raise InvalidValue(
            f"expected environment() of {make.__name__} to be a class method that gets the "
            "settings, environment(cls, args, num_envs, device), got a method of the algorithm, "
            "which is made after the envs"
        )
    envs = make.environment(args, num_envs, device)
    if envs is not None:
        check_envs(envs, num_envs)
    return envs


def make_algorithm(make: Make, args: Any, processes: ProcessGroup) -> Algorithm[Any]:
    """The algorithm of a training; all processes have to call it.

    Args:
        make: makes the algorithm from settings and a context, as its class does. Only a class can
            bring envs of its own.
        args: the settings, for the device.
        processes: this process among the others.

    Raises:
        ValueError: there is no such game, or the algorithm or its envs cannot be used.
    """
    device, envs, num_actions = processes.device, None, 0
    own: type[Algorithm[Any]] | None = None
    if isinstance(make, type) and issubclass(make, Algorithm) and overrides_environment(make):
        own = make
    if own is not None:
        actors = processes.ranks("act")
        with processes.all_or_none():
            if processes.acts:
                envs = _own_envs(own, args, len(processes.envs(args.num_envs)), device)
                if envs is not None:
                    players = num_players_of(envs)
                    num_actions = num_actions_in(envs.single_action_space, players)
        if processes.decoupled:
            num_actions = processes.broadcast(num_actions, actors[0])
    # Of envs that the algorithm brings the game need not be one that AtariEnv has for one player.
    num_actions = num_actions or num_actions_of(args)
    algorithm = instantiate(make, args, Context(device, num_actions, envs))
    if algorithm.brings_envs and own is None:
        raise InvalidValue(
            f"expected the class {type(algorithm).__name__}, which has an environment() of its "
            "own, got a function that makes it"
        )
    return algorithm


def preview(make: Make, args: Any, device: torch.device) -> Algorithm[Any]:
    """Makes an algorithm only to ask what it is and when it learns; no envs are made for it.

    Args:
        make: makes the algorithm from settings and a context.
        args: the settings, for the device.
        device: where it would be trained.
    """
    return instantiate(make, args, Context(device, num_actions_of(args)))
