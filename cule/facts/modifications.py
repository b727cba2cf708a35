"""Modifications of games by name, each as patches: facts about where a game keeps what.

Bytes and values are those of HackAtari (https://github.com/k4ntz/HackAtari, commit 8ca2bdf, MIT
licence), and so are the names. A modification is here if it can be said as patches, and if a test
sees what it does. Where HackAtari asks for two bytes before it changes one, ours asks for that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cule.arguments import closest_of
from cule.errors import InvalidValue, shown
from cule.facts.patches import Patch

hold, change, copy = Patch.hold, Patch.change, Patch.copy
# HackAtari's palette indices of these colors.
_COLORS = {"black": 0, "white": 12, "red": 48, "blue": 113, "green": 200}
# For each game and name: what the modification does, and its patches.
Rows = Mapping[str, Mapping[str, tuple[str, Iterable[Patch]]]]


@dataclass(frozen=True)
class Modification:
    """One modification of a game.

    Attributes:
        game: the game's name.
        name: by which `AtariEnv(patches=...)` finds it.
        effect: what it does, in a sentence.
        patches: its patches.
        source: where the bytes come from.
    """

    game: str
    name: str
    effect: str
    patches: tuple[Patch, ...]
    source: str


def _held(addresses: Iterable[int], value: int) -> list[Patch]:
    return [hold(address, value) for address in addresses]


def _colors(
    prefix: str, what: str, addresses: Iterable[int], colors: Iterable[str] = tuple(_COLORS)
) -> dict[str, tuple[str, list[Patch]]]:
    addresses = tuple(addresses)
    return {
        f"{prefix}_{color}": (f"{what} {color}.", _held(addresses, _COLORS[color]))
        for color in colors
    }


def _numbers(
    prefix: str, what: str, address: int, numbers: Iterable[int], first: int = 0
) -> dict[str, tuple[str, list[Patch]]]:
    return {
        f"{prefix}_{number}": (f"{what} {number}.", [hold(address, number - first)])
        for number in numbers
    }


_CARS, _CAR_COLORS = range(33, 43), range(77, 87)
_CARS_TO_THE_LEFT, _CARS_TO_THE_RIGHT = range(113, 118), range(108, 113)


def _stopped_cars(rightward: int, leftward: int) -> list[Patch]:
    return [
        *_held(_CARS, 100), *_held(_CARS_TO_THE_RIGHT, rightward),
        *_held(_CARS_TO_THE_LEFT, leftward),
    ]  # fmt: skip


_FLOES = range(31, 35)

_FIRST: Rows = {
    "alien": {
        "unlimited_fuel": ("The flamethrower's fuel does not run out.", [hold(116, 255)]),
        "unlimited_lives": ("No life is lost.", [hold(64, 3)]),
        "no_alien": ("No alien is in the maze.", _held((42, 43, 44, 49, 50, 51), 0)),
        "one_alien": ("One alien is in the maze.", _held((42, 43, 49, 50), 0)),
        "two_alien": ("Two aliens are in the maze.", _held((42, 49), 0)),
    },
    "amidar": {"unlimited_lives": ("No life is lost.", [Patch.bits(86, 3, 3)])},
    "asterix": {
        "obelix": ("The objects are those of Obelix's stage.", [hold(54, 5)]),
        "set_consumable_1": ("What is to be collected is pink, for 100 points.", [hold(54, 1)]),
        "set_consumable_2": ("What is to be collected are shields, for 200 points.", [hold(54, 2)]),
        "unlimited_lives": ("No life is lost.", [hold(83, 3)]),
    },
    "atlantis": {"no_last_line": ("No enemy flies in the lowest line.", [hold(36, 0)])},
    "bank_heist": {
        "unlimited_gas": ("The tank stays full.", [hold(86, 0)]),
        "no_police": (
            "There are no police cars.",
            [hold(car, 0, when=(car, 254, 254)) for car in range(24, 27)],
        ),
        "only_police": (
            "Banks are police cars.",
            [hold(car, 254, when=(car, 253, 253)) for car in range(24, 27)],
        ),
    },
    "boxing": {
        "one_armed": ("The player cannot hit with the right arm.", [hold(101, 128)]),
        "gravity": (
            "The player is pulled down the screen.", [change(34, 1, when=(34, 0, 86), every=3)]
        ),
        "antigravity": ("The player is pulled up the screen.", [change(34, -1, when=(34, 1, 86))]),
        "offensive": ("The player is pulled to the right.", [change(32, 1, when=(32, 1, 108))]),
        "defensive": ("The player is pulled to the left.", [change(32, -1, when=(32, 1, 108))]),
        "classic_colors": (
            "The player is red and the opponent blue.",
            [hold(1, _COLORS["red"]), hold(2, _COLORS["blue"])],
        ),
        **_colors("color_player", "The player is", [1], ("black", "red", "blue", "green")),
        **_colors("color_enemy", "The opponent is", [2], ("white", "red", "blue", "green")),
    },
    "breakout": {
        "right_drift": (
            "The ball drifts to the right.", [change(99, 2, when=(99, 55, 197), every=10)]
        ),
        "left_drift": (
            "The ball drifts to the left.", [change(99, -2, when=(99, 59, 201), every=10)]
        ),
        "gravity": ("The ball is pulled down.", [change(101, 2, when=(101, 88, 163), every=10)]),
        "inverse_gravity": (
            "The ball is pulled up.", [change(101, -2, when=(101, 92, 182), every=10)]
        ),
        **_colors("color_player_and_ball", "The paddle and the ball are", [62]),
        **_colors("color_all_blocks", "All bricks are", range(64, 70)),
    },
    "carnival": {
        "no_flying_ducks": ("Ducks of the last row do not fly.", [hold(1, 79)]),
        "unlimited_ammo": ("Bullets do not run out.", [hold(3, 40)]),
        **{
            f"missile_speed_{name}_increase": (
                f"A bullet flies {by} lines further in each frame.",
                [change(55, -by, when=(55, 5, 255))],
            )
            for by, name in enumerate(("small", "medium", "large"), start=1)
        },
    },
    "chopper_command": {
        "no_enemies": ("There are no enemies.", _held(range(6, 13), 0)),
        "no_radar": ("The radar is empty.", [hold(118, 37)]),
        "invisible_player": ("The player cannot be seen.", [hold(118, 38)]),
    },
    "donkey_kong": {
        "no_barrel": ("There are no barrels.", [hold(25, 255)]),
        "unlimited_time": ("The bonus does not run out.", [hold(36, 70)]),
    },
    "fishing_derby": {
        "shark_no_movement_easy": ("The shark stays on the right.", [hold(75, 105)]),
        "shark_no_movement_middle": ("The shark stays in the middle.", [hold(75, 75)]),
        "shark_speed_mode": (
            "The shark swims faster to the right.", [change(75, 1, when=(75, 0, 119))]
        ),
        "fish_on_player_side": (
            "Fish stay on the player's side.",
            [hold(fish, 44, when=(fish, 87, 255)) for fish in range(69, 75)],
        ),
    },
}  # fmt: skip

_SECOND: Rows = {
    "freeway": {
        "stop_all_cars_tunnel": ("All cars stand in the middle.", _stopped_cars(35, 55)),
        "stop_all_cars_edge": ("All cars stand at the edges.", _stopped_cars(15, 150)),
        "disable_cars": ("All cars stand where they cannot be seen.", _stopped_cars(3, 3)),
        "stop_top_2": ("The cars of the two upper lanes stand.", _held(range(41, 43), 100)),
        "stop_bottom_2": ("The cars of the two lower lanes stand.", _held(range(33, 35), 100)),
        "stop_top_4": ("The cars of the four upper lanes stand.", _held(range(39, 43), 100)),
        "stop_bottom_4": ("The cars of the four lower lanes stand.", _held(range(33, 37), 100)),
        "speed_mode": (
            "Cars drive two pixels further in each frame.",
            [
                *(change(car, 2) for car in _CARS_TO_THE_RIGHT),
                *(change(car, -2, when=(car, 2, 255)) for car in _CARS_TO_THE_LEFT),
            ],
        ),
        "invisible_mode": ("Cars have the color of the road.", _held(_CAR_COLORS, 6)),
        "all_black_cars": ("All cars are black.", _held(_CAR_COLORS, 0)),
        "all_white_cars": ("All cars are white.", _held(_CAR_COLORS, 15)),
        "all_red_cars": ("All cars are red.", _held(_CAR_COLORS, 66)),
        "all_green_cars": ("All cars are green.", _held(_CAR_COLORS, 210)),
        "all_blue_cars": ("All cars are blue.", _held(_CAR_COLORS, 145)),
    },
    "frostbite": {
        "ui_color_red": ("The score and the degrees are red.", [hold(71, 48)]),
        "reposition_floes_easy": (
            "All ice floes stand below each other.", [hold(22, 0), *_held(_FLOES, 80)]
        ),
        "reposition_floes_medium": (
            "The ice floes stand in a wide stair.",
            [hold(22, 0), *(hold(floe, 80 + 30 * (floe - 30)) for floe in _FLOES)],
        ),
        "reposition_floes_hard": (
            "The ice floes stand in a narrow stair.",
            [hold(22, 0), *(hold(floe, 80 + 20 * (floe - 30)) for floe in _FLOES)],
        ),
        "no_birds": ("There are no animals on the water.", _held(range(92, 96), 0)),
        "many_enemies": ("Many animals are on the water.", _held(range(92, 96), 15)),
        "full_igloo": ("The igloo is complete.", [hold(77, 15)]),
        "ice_inactive": ("No ice floe counts.", _held(range(43, 47), 152)),
    },
    "jamesbond": {
        "constant_jump": ("The car jumps all the time.", [hold(25, 60), hold(36, 0)]),
        "unlimited_lives": ("No life is lost.", [hold(6, 5)]),
    },
    "kangaroo": {
        "disable_monkeys": ("There are no monkeys.", _held(range(8, 12), 127)),
        "disable_coconut": ("No coconut falls.", [hold(33, 255), hold(35, 255)]),
        "unlimited_time": ("Time does not run out.", [hold(59, 32)]),
        **_numbers("change_level", "The level has the number", 36, (1, 2)),
    },
    "kung_fu_master": {
        "no_damage": ("The player stays healthy.", [hold(75, 39)]),
        "unlimited_time": ("Time does not run out.", [hold(27, 32), hold(28, 1)]),
        "unlimited_lives": ("No life is lost.", [hold(29, 3)]),
    },
    "montezuma_revenge": {
        **_numbers("set_level", "The level has the number", 57, (1, 2)),
        "full_inventory": ("The player has all things.", [hold(65, 249)]),
    },
    "ms_pacman": _numbers("set_level", "The maze is that of the level", 0, range(1, 4)),
    "pong": {
        "up_drift": ("The ball drifts up.", [change(54, -1, when=(54, 1, 255), every=6)]),
        "down_drift": ("The ball drifts down.", [change(54, 1, when=(54, 1, 255), every=6)]),
        "right_drift": (
            "The ball drifts to the right.", [change(49, 1, when=(49, 1, 255), every=6)]
        ),
        "left_drift": (
            "The ball drifts to the left.", [change(49, -1, when=(49, 1, 255), every=6)]
        ),
        "parallel_enemy": ("The opponent does what the player does.", [copy(21, 60)]),
    },
    "riverraid": {
        "no_fuel": (
            "There are no fuel depots, and none is needed.",
            [hold(55, 255), *(hold(one, 0, when=(one, 10, 10)) for one in range(32, 38))],
        ),
        "red_river": ("The river is red.", [hold(13, 255)]),
        "unlimited_lives": ("No life is lost.", [hold(64, 24)]),
    },
    "robotank": {
        **{
            weather: (f"There is {weather}.", [hold(94, number)])
            for number, weather in enumerate(("rain", "snow", "fog"), start=1)
        },
        "no_radar": ("The radar is broken.", [Patch.bits(118, 4, 4)]),
    },
    "seaquest": {
        "gravity": ("The submarine sinks.", [change(97, 1, when=(97, 0, 104), every=5)]),
        "disable_enemies": ("There are no enemies.", _held((36, 37, 38, 39, 60), 0)),
        "unlimited_oxygen": ("The air does not run out.", [hold(102, 63, when=(97, 14, 255))]),
    },
    "space_invaders": {
        "disable_shield_left": ("There is no left shield.", _held(range(43, 52), 0)),
        "disable_shield_middle": ("There is no middle shield.", _held(range(52, 61), 0)),
        "disable_shield_right": ("There is no right shield.", _held(range(61, 71), 0)),
        "relocate_shields_slight_left": ("The shields are further left.", [hold(27, 35)]),
        "relocate_shields_off_by_one": ("The shields are a pixel further right.", [hold(27, 44)]),
        "relocate_shields_off_by_three": (
            "The shields are three pixels further right.", [hold(27, 46)]
        ),
        "relocate_shields_right": ("The shields are further right.", [hold(27, 53)]),
        "controlable_missile": ("The player's laser follows the player.", [copy(87, 28)]),
    },
    "tennis": {
        "always_upper_player": ("The player is always on the upper side.", [hold(80, 0)]),
        "always_lower_player": ("The player is always on the lower side.", [hold(80, 1)]),
    },
    "time_pilot": _numbers("level", "The level is", 21, range(2, 6), first=1),
    "up_n_down": {
        "no_trucks": (
            "There are no other trucks.",
            [hold(truck, 23, when=(truck, 0, 7)) for truck in range(37, 40)],
        ),
        **_numbers("level", "The level is", 3, (2, 3)),
    },
}  # fmt: skip
_URL = "https://github.com/k4ntz/HackAtari/blob/8ca2bdf/hackatari/games/"
MODIFICATIONS: Mapping[str, Mapping[str, Modification]] = {
    game: {
        name: Modification(game, name, effect, tuple(patches), f"{_URL}{game.replace('_', '')}.py")
        for name, (effect, patches) in rows.items()
    }
    for game, rows in sorted({**_FIRST, **_SECOND}.items())
}


def modification(game: str, name: str) -> Modification:
    """The modification of a game, by both names.

    Raises:
        ValueError: the game has none of this name.
    """
    known = MODIFICATIONS.get(game, {})
    if name not in known:
        listed = ", ".join(known) or "none"
        raise InvalidValue(
            f"expected the name of a modification of {game!r} ({listed}), got {shown(name)}"
            f"{closest_of(name, known)}"
        )
    return known[name]
