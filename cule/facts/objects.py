"""Objects on the screen: how boxes are made of the TIA's objects, and what they are in each game.

The rules are tables of facts (object_rules.py), a line for a game's settings,
then a line for each rule, of which the first that a box fits says what it is:

    pong: 012345 8 0 5
      player 136-144 30-199 4 2-22
      score 20-60 1-3 4-12 10-20 color=56 joins

The settings: the classes of player 0, player 1, missile 0, missile 1, the ball and the playfield;
below how many pixels a gap in a player's scanline does not divide it; over how many scanlines a box
may have a gap; and the classes whose boxes are of one color ("-": none). A rule: a kind, then the
least and the greatest x, y, width and height; maybe a color; and whether all boxes that fit it are
one object.

The kinds are named after the classes of OCAtari (https://github.com/k4ntz/OC_Atari, version 2.2.1,
MIT licence). The numbers are the ranges of the boxes that OCAtari's overlapped in random play.
benchmarks/tools/objects_against_ocatari.py compares the two.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import numpy as np

from cule import _core
from cule.facts.object_rules import RULES

# The columns of an object's row.
FIELDS = ("kind", "x", "y", "width", "height", "color", "visible")
# The most objects that are listed of an env.
MOST_OBJECTS = 256
# Of games without rules.
_SETTINGS = "012345 8 0 5"
_ANY_COLOR = -1


@functools.cache
def _tables() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """For each game its settings and its rules, as lines."""
    tables: dict[str, tuple[str, tuple[str, ...]]] = {}
    name = ""
    for line in RULES.splitlines():
        if line.startswith("  "):
            settings, rules = tables[name]
            tables[name] = settings, (*rules, line.strip())
        elif line:
            name, _, settings = line.partition(": ")
            tables[name] = settings, ()
    return tables


def kinds_of(name: str) -> tuple[str, ...]:
    """The names of a game's kinds of objects; number 0 is "unknown". Without rules only that."""
    _, rules = _tables().get(name, (_SETTINGS, ()))
    return ("unknown", *dict.fromkeys(rule.split()[0] for rule in rules))


def object_facts(name: str) -> np.ndarray:
    """(rows, columns) int16: a game's settings and rules, as the core reads them."""
    settings, rules = _tables().get(name, (_SETTINGS, ()))
    kinds = kinds_of(name)
    facts = np.zeros((_core.OBJECT_FACT_ROWS, _core.OBJECT_FACT_COLUMNS), np.int16)
    classes, gap, line_gap, one_color = settings.split()
    of_one_color = sum(1 << int(number) for number in one_color.strip("-"))
    facts[0, :10] = *map(int, classes), int(gap), int(line_gap), of_one_color, len(rules)
    for row, rule in zip(facts[1:], rules, strict=False):
        kind, *ranges = rule.split()
        color = re.search(r"color=(\d+)", rule)
        # The columns of a rule in the core (csrc/kernels/see.h), before its ranges.
        row[:3] = (
            kinds.index(kind), rule.endswith(" joins"), int(color[1]) if color else _ANY_COLOR
        )  # fmt: skip
        for number, words in enumerate(ranges[:4]):
            least, _, most = words.partition("-")
            row[3 + 2 * number : 5 + 2 * number] = int(least), int(most or least)
    return facts
