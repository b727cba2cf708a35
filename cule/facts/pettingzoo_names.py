"""PettingZoo's names of Atari envs, and what each means with its default arguments.

Source: the modules of pettingzoo.atari 1.27. Their further arguments choose another mode of the
same game: docs/games.md#several-players has the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Meaning(NamedTuple):
    """What a name means.

    Attributes:
        game: the game.
        modes: its mode for each number of players; the first number is the default. None: the
            game's own default.
    """

    game: str
    modes: Mapping[int, int | None]


PETTINGZOO_NAMES: Mapping[str, Meaning] = {
    "basketball_pong_v3": Meaning("pong", {2: 45, 4: 49}),
    "boxing_v2": Meaning("boxing", {2: None}),
    "combat_plane_v2": Meaning("combat", {2: 15}),
    "combat_tank_v2": Meaning("combat", {2: 9}),
    "double_dunk_v3": Meaning("double_dunk", {2: None}),
    "entombed_competitive_v3": Meaning("entombed", {2: 2}),
    "entombed_cooperative_v3": Meaning("entombed", {2: 3}),
    "flag_capture_v2": Meaning("flag_capture", {2: None}),
    "foozpong_v3": Meaning("pong", {4: 21, 2: 19}),
    "ice_hockey_v2": Meaning("ice_hockey", {2: None}),
    "joust_v3": Meaning("joust", {2: None}),
    "mario_bros_v3": Meaning("mario_bros", {2: None}),
    "maze_craze_v3": Meaning("maze_craze", {2: 4}),
    "othello_v3": Meaning("othello", {2: None}),
    "pong_v3": Meaning("pong", {2: 4, 4: 6}),
    "quadrapong_v4": Meaning("pong", {4: 33}),
    "space_invaders_v2": Meaning("space_invaders", {2: 34}),
    "space_war_v2": Meaning("space_war", {2: None}),
    "surround_v2": Meaning("surround", {2: None}),
    "tennis_v3": Meaning("tennis", {2: None}),
    "video_checkers_v4": Meaning("video_checkers", {2: None}),
    "volleyball_pong_v3": Meaning("pong", {4: 41, 2: 39}),
    "warlords_v3": Meaning("warlords", {4: None}),
    "wizard_of_wor_v3": Meaning("wizard_of_wor", {2: None}),
}
