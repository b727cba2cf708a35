"""Games of the suite, and sets of them by name."""

from __future__ import annotations

from collections.abc import Sequence

import cule
from cule.errors import InvalidValue
from cule.rom import find_game

# "Atari-5: Distilling the Arcade Learning Environment down to Five Games" (Aitchison, Sweetser and
# Hutter, 2022): the five games whose scores tell most about the median of all 57.
ATARI_5 = ("battle_zone", "double_dunk", "name_this_game", "phoenix", "qbert")
SETS = {"atari57": cule.ATARI_57, "atari5": ATARI_5}
# Games of whose agents an evaluation takes longest, as their episodes are long: 443 to 100 seconds
# in the suite of 37fe219 (benchmarks/results/2026-11-26-h100.jsonl).
LONGEST = (
    "video_pinball", "up_n_down", "tennis", "atlantis", "demon_attack", "double_dunk", "gopher",
    "breakout", "enduro", "assault", "phoenix", "space_invaders", "solaris", "beam_rider",
    "star_gunner", "kung_fu_master", "name_this_game",
)  # fmt: skip


def game_of(name: str) -> str:
    """The ROM id of a game of Atari-57, by any of its names.

    Raises:
        ValueError: there is no such game, or it is not one of the 57.
    """
    game = find_game(name).name
    if game not in cule.ATARI_57:
        raise InvalidValue(
            f"expected a game of Atari-57, for which there are human scores, got {game!r}"
        )
    return game


def games_of(names: Sequence[str]) -> tuple[str, ...]:
    """The games that are named, alone or by a set's name, each once and in this order.

    Raises:
        ValueError: there is no such game, it is not one of the 57, or none is named.
    """
    if not names:
        raise InvalidValue(f"expected games, or sets of them ({', '.join(SETS)}), got none")
    found = [game for name in names for game in SETS.get(name) or [game_of(name)]]
    return tuple(dict.fromkeys(found))


def longest_first(games: Sequence[str]) -> tuple[str, ...]:
    """The games with those first that take longest to evaluate, which are waited for in the end."""
    return tuple(sorted(games, key=lambda g: LONGEST.index(g) if g in LONGEST else len(LONGEST)))
