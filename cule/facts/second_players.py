"""The games and modes in which the second player's joystick moves something.

What it does to the screen counts: many programs copy the joystick to their RAM and do nothing with
it. tests/env/test_second_players.py measures it. Where players take turns, it may take a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SECOND_PLAYERS: Mapping[str, Iterable[int]] = {
    "atlantis": (2,),
    "casino": (0, 2),
    "darkchambers": (0,),
    "double_dunk": range(16),
    "entombed": (0,),
    "fishing_derby": (0,),
    "freeway": range(8),
    "human_cannonball": range(8),
    "othello": (0, 2),
    "pong": (0, 1),
    "solaris": (0,),
    "space_war": range(6, 14),
    "superman": (0,),
    "tennis": (0, 2),
    "tic_tac_toe_3d": (8,),
    "trondead": (0,),
    "turmoil": range(9),
    "word_zapper": range(24),
}
