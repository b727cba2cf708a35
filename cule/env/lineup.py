"""Which env of a batch plays which game, in which mode and difficulty, with which actions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cule.console import Group, action_numbers
from cule.errors import InvalidType, InvalidValue, shown
from cule.rom import Game, find_game


def games_of_envs(game: str | Sequence[str], num_envs: int, num_players: int = 1) -> list[Game]:
    """The game of each env: env i plays `game[i * len(game) // num_envs]`.

    Raises:
        TypeError, ValueError: there is no such game for so many players, or there are more games
            than envs.
    """
    if isinstance(game, str):
        return [find_game(game, num_players)] * num_envs
    if isinstance(game, bytes) or not isinstance(game, Sequence) or not game:
        raise InvalidType(f"expected the name of a game or a sequence of names, got {shown(game)}")
    if len(game) > num_envs:
        raise InvalidValue(
            f"expected num_envs to be at least the number of games ({len(game)}), got {num_envs}"
        )
    chosen = [find_game(name, num_players) for name in game]
    return [chosen[i * len(chosen) // num_envs] for i in range(num_envs)]


def make_groups(
    games: Sequence[Game], modes: Sequence[int | None], difficulties: Sequence[int | None]
) -> tuple[list[Group], np.ndarray]:
    """The distinct (game, mode, difficulty) and, for each env, the index of its own.

    Raises:
        ValueError: a game has no such mode or difficulty.
    """
    groups: dict[Group, int] = {}
    indices = []
    for game, mode, difficulty in zip(games, modes, difficulties, strict=True):
        mode = game.facts["default_mode"] if mode is None else mode
        difficulty = 0 if difficulty is None else difficulty
        if mode not in game.modes:
            listed = ", ".join(map(str, game.modes))
            raise InvalidValue(f"expected a mode of {game.words!r} ({listed}), got {mode}")
        # ale-py starts every game at difficulty 0, listed or not.
        if difficulty != 0 and difficulty not in game.difficulties:
            listed = ", ".join(map(str, sorted({0, *game.difficulties})))
            raise InvalidValue(
                f"expected a difficulty of {game.name!r} ({listed}), got {difficulty}"
            )
        indices.append(groups.setdefault(Group(game, mode, difficulty), len(groups)))
    return list(groups), np.array(indices)


def choose_action_space(groups: Sequence[Group], full: bool) -> str:
    """The groups' common action space, as `action_numbers` names it.

    Games that offer different actions share all 18.
    """
    space = "full" if full else "minimal"
    offered = {action_numbers(group.game, space) for group in groups}
    return space if len(offered) == 1 else "all"


def in_words(games: Sequence[Game]) -> str:
    """The game's name, or the names of the first three of several."""
    names = list(dict.fromkeys(game.name for game in games))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
