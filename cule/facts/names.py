"""Names of games as people type them, and what else gymnasium's ids say.

gymnasium's ids of Atari games have parts: `PongNoFrameskip-v4` is a game, how many frames a step
takes, and how often actions stick. The parts have the meaning of ale-py 0.12.1's registered ids;
`Deterministic` and `-ram`, which it no longer registers, have the meaning of ale-py 0.10's.
"""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cule.errors import InvalidValue

# Frames in a step, by the part of an id. Of a pair (low, high), each step draws a number from low
# to high - 1.
_FRAMESKIPS: dict[str, int | tuple[int, int]] = {"": (2, 5), "NoFrameskip": 1, "Deterministic": 4}
# Space Invaders draws its lasers in every fourth frame: steps of four frames would never show them.
_SPACE_INVADERS_DETERMINISTIC = 3
_REPEAT_PROBABILITIES = {"0": 0.25, "4": 0.0}
# Of ids such as "ALE/Pong-v5". EnvPool's "Pong-v5" has no sticky actions.
_REPEAT_PROBABILITY_OF_V5 = 0.25

_ID = re.compile(
    r"(?P<namespace>(?:ale|cule)/)?(?P<game>.+?)"
    r"(?P<ram>-ram)?(?:(?P<flavour>NoFrameskip|Deterministic)|(?P<ours>Preprocessed))?"
    r"(?:-v(?P<version>[045]))?",
    re.IGNORECASE | re.DOTALL,
)
_PUNCTUATION = re.compile(r"[\s_.,:;!&*'’-]+")
# Titles on the boxes, as `spelled_alike` gives them, that differ from ale-py's names in more than
# case and punctuation.
OTHER_TITLES = {
    "3dtictactoe": "tic_tac_toe_3d",
    "atlantisii": "atlantis2",
    "ettheextraterrestrial": "et",
    "jamesbond007": "jamesbond",
    "koolaidman": "koolaid",
    "montezumasrevenge": "montezuma_revenge",
    "pitfallii": "pitfall2",
    "pitfalliilostcaverns": "pitfall2",
    "robottank": "robotank",
    "swordquestearthworld": "earthworld",
    "trondeadlydiscs": "trondead",
}


@dataclass(frozen=True)
class Name:
    """The parts of a name.

    Attributes:
        game: the part that names the game, as `spelled_alike` gives it.
        meaning: what the other parts say, as AtariEnv's keywords.
    """

    game: str
    meaning: Mapping[str, Any]


def spelled_alike(text: str) -> str:
    """The text without case and punctuation: "mspacman" for "Ms. Pac-Man"."""
    return _PUNCTUATION.sub("", text).casefold()


def _meaning(game: str, ram: bool, flavour: str, version: str) -> dict[str, Any]:
    meaning: dict[str, Any] = {}
    if flavour or version in _REPEAT_PROBABILITIES:
        meaning["frameskip"] = _FRAMESKIPS[flavour]
        if flavour == "Deterministic" and game == "spaceinvaders":
            meaning["frameskip"] = _SPACE_INVADERS_DETERMINISTIC
    if version in _REPEAT_PROBABILITIES:
        meaning["repeat_action_probability"] = _REPEAT_PROBABILITIES[version]
    if ram:
        meaning["obs_type"] = "ram"
    return meaning


def take_apart(name: str) -> Name:
    """The parts of a name: PongNoFrameskip-v4 is pong, frameskip=1, repeat_action_probability=0.

    ALE/Pong-v5 is pong, repeat_action_probability=0.25, and Pong-v5 is pong: all else in them is a
    default of AtariEnv.

    Raises:
        ValueError: the parts are of different versions, as in PongNoFrameskip-v5.
    """
    found = _ID.fullmatch(name)
    if not found:
        return Name(spelled_alike(name), {})
    if found["flavour"] and found["version"] == "5":
        older = f"{found['game']}{found['ram'] or ''}{found['flavour']}-v4"
        raise InvalidValue(
            f"expected an id that gymnasium has, such as {older!r} or "
            f"'{found['game']}-v5', got {name!r}: {found['flavour']} is of versions 0 and 4"
        )
    game = spelled_alike(found["game"])
    flavour = next(
        part for part in _FRAMESKIPS if part.casefold() == (found["flavour"] or "").casefold()
    )
    meaning = _meaning(game, bool(found["ram"]), flavour, found["version"] or "")
    if found["namespace"] and found["version"] == "5" and not found["ours"]:
        meaning["repeat_action_probability"] = _REPEAT_PROBABILITY_OF_V5
    return Name(game, meaning)


def older_ids(ale_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A game's ids with v0 and v4, such as "Pong-ramDeterministic-v4", and what each means."""
    for ram, flavour, version in itertools.product(
        ("", "-ram"), _FRAMESKIPS, _REPEAT_PROBABILITIES
    ):
        yield (
            f"{ale_id}{ram}{flavour}-v{version}",
            _meaning(spelled_alike(ale_id), bool(ram), flavour, version),
        )


def level_of_the_user() -> int:
    """The stacklevel with which a caller's warning names a line of the user's code, not of cule."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "cule":
        level, frame = level + 1, frame.f_back
    return level


def warn_of_other_meanings(names: Iterable[str], **in_force: Any) -> None:
    """Warns, once for all names, if a name means other keywords than the env has.

    It is not an error: users of "PongNoFrameskip-v4" used to wrap preprocessing around it, with 4
    frames a step, which AtariEnv has by default.

    Warns:
        UserWarning: says the first such name, what it means, and what the env has.
    """
    for name in names:
        meaning = take_apart(name).meaning
        others = {
            key: value
            for key, value in meaning.items()
            if key in in_force and value != in_force[key]
        }
        if others:
            meant, got = (
                " and ".join(f"{key}={values[key]!r}" for key in others)
                for values in (meaning, in_force)
            )
            warnings.warn(
                f"{name!r} means {meant} in gymnasium, but this env has {got}: here only the "
                "game in an id counts; use the game's plain name to avoid this warning, or "
                "gymnasium.make('cule/...') for all that an id means",
                stacklevel=level_of_the_user(),
            )
            return
