"""Names of games as people type them, and what gymnasium's ids say beside the game.

gymnasium's ids of Atari games are made of parts: `PongNoFrameskip-v4` is a game, how many frames a
step takes, and how often actions stick. The parts mean what ale-py 0.12.1 registers them for;
`Deterministic` and `-ram`, which it no longer registers, what ale-py 0.10 did.
"""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Frames of a step by the part of an id; a pair is drawn from for each step, its end left out.
_FRAMESKIPS: dict[str, int | tuple[int, int]] = {"": (2, 5), "NoFrameskip": 1, "Deterministic": 4}
# Its lasers are drawn in every fourth frame: with as many in a step they would never be seen.
_SPACE_INVADERS_DETERMINISTIC = 3
_REPEAT_PROBABILITIES = {"0": 0.25, "4": 0.0}

_ID = re.compile(
    r"(?:(?:ale|cule)/)?(?P<game>.+?)"
    r"(?P<ram>-ram)?(?P<flavour>NoFrameskip|Deterministic)?(?:-v(?P<version>[045]))?",
    re.IGNORECASE | re.DOTALL,
)
_PUNCTUATION = re.compile(r"[\s_.,:;!&*'’-]+")
# What stands on the boxes, spelled alike, where more differs from ale-py's name than case and
# punctuation.
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
    """A name taken apart.

    Attributes:
        game: the part that names the game, spelled alike.
        meaning: what else it says, by AtariEnv's keywords.
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
    """What a name says: PongNoFrameskip-v4 is pong, frameskip=1, repeat_action_probability=0.

    A v5 says no more than the game does: cule's defaults are those of ale-py's vector env.
    """
    found = _ID.fullmatch(name)
    if not found:
        return Name(spelled_alike(name), {})
    game = spelled_alike(found["game"])
    flavour = next(
        part for part in _FRAMESKIPS if part.casefold() == (found["flavour"] or "").casefold()
    )
    return Name(game, _meaning(game, bool(found["ram"]), flavour, found["version"] or ""))


def older_ids(ale_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A game's ids with v0 and v4, such as "Pong-ramDeterministic-v4", and what else each says."""
    for ram, flavour, version in itertools.product(
        ("", "-ram"), _FRAMESKIPS, _REPEAT_PROBABILITIES
    ):
        yield (
            f"{ale_id}{ram}{flavour}-v{version}",
            _meaning(spelled_alike(ale_id), bool(ram), flavour, version),
        )


def level_of_the_user() -> int:
    """The stacklevel, for the caller, of the innermost code that is not cule's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "cule":
        level, frame = level + 1, frame.f_back
    return level


def warn_of_other_meanings(names: Iterable[str], **in_force: Any) -> None:
    """Says so where a name means something else than the arguments in force, once for all names.

    It is no error: who wants AtariEnv's preprocessing, of 4 frames a step, often has only a
    "PongNoFrameskip-v4" at hand, which is what such preprocessing was wrapped around.

    Warns:
        UserWarning: names the first such name, what it means, and what is in force.
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
                f"{name!r} means {meant} in gymnasium, but this env has {got}, as here it names "
                "the game alone; the game's plain name says no more than that, and "
                "gymnasium.make('cule/...') makes what an id means",
                stacklevel=level_of_the_user(),
            )
            return
