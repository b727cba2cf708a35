"""Objects on the screen: how boxes are made of the TIA's objects, and what they are in each game.

The rules are tables of facts (object_rules.py), a line for a game's settings,
then a line for each rule, of which the first that a box fits says what it is:

    pong: 012345 8 0 5
      player 136-144 30-199 4 2-22
      score 20-60 1-3 4-12 10-20 color=56 joins

The settings: the classes of player 0, player 1, missile 0, missile 1, the ball and the playfield;
below how many pixels a gap in a player's scanline does not divide it; over how many scanlines a box
may have a gap; the classes whose boxes are of one color ("-": none); and maybe between which
scanlines all boxes end, and each how many (175-187/2). A rule: a kind, then the
least and the greatest x, y, width and height; maybe a color; whether all boxes that fit it are one
object (joins); whether later rules are for the same box, too (also). What the object is of the box:

    move=-4,1    it is 4 pixels further to the left, and 1 below
    size=16x20   of that size (0: of the box's), from the box's left and top, or so that both end
                 at the right or at the bottom
    cells=4,6    the box is divided into cells of that size, from 4 pixels and 6 scanlines to the
                 next; 0: not in that direction
    within=34-194    only its scanlines from 34 to 193

Places are lines after the rules, for what the TIA's pixels do not show:

    ladder at 108 176 4x17
    enemy at r42++ 26 7x11 grid 1x8 0 16 if r29++&1=1
    shield at 128 r26+121 4x8 grid 8x16 4 -8 bits 1 0 1

A place: a kind, x, y and a size; maybe where it ends at the latest (to 150,190); how many columns and rows of a grid there are, and how far
the next ones are; which byte of RAM has the bits of the first row's columns, the first column's
bit, and how far the next one's is; and up to four conditions. r42 is a byte of RAM: with ++ or --
the grid's next row (or column, of one row) has the byte after or before it, &15 are bits of it, *3, /2, +r43, +9 and %160
are done in this order. h42 is where a program that writes down an object as a delay (the low half,
15 pixels each; h42@14: 14) and a move for HMOVE (the high half) has it.

The kinds are named after the classes of OCAtari (https://github.com/k4ntz/OC_Atari, version 2.2.1,
MIT licence). The numbers are the ranges of the boxes that OCAtari's overlapped in random play, and
the bytes of RAM that it reads. benchmarks/tools/objects_against_ocatari.py compares the two.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

import numpy as np

from cule import _core
from cule.facts.object_rules import RULES

# The columns of an object's row.
FIELDS = ("kind", "x", "y", "width", "height", "color", "visible")
# The most objects that are listed of an env.
MOST_OBJECTS = 256
# Of games without rules.
_SETTINGS = "012345 8 0 5"
_ANY_COLOR = _NO_BYTE = -1
_FLAGS = {"joins": 1, "also": 2, "right": 4, "bottom": 8}
_EACH = {None: 0, "++": 1, "--": -1}
_BYTE = r"(\d+)(\+\+|--)?(?:&(\d+))?"
_NUMBER = re.compile(
    rf"(?:([rh]){_BYTE}(?:@(\d+))?(?:\*(-?\d+))?(?:/(\d+))?(?:([+-])r(\d+))?(?=[+%-]|$))?([+-]?\d+)?(?:%(\d+))?"
)
_CONDITION = re.compile(rf"r{_BYTE}=(\d+)(?:-(\d+))?")


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


def _is_place(line: str) -> bool:
    return line.split()[1] == "at"


def _numbers(row: np.ndarray, first: int, words: Iterable[str | int | None]) -> None:
    """Writes numbers into a row, from column `first` on."""
    for column, word in enumerate(words, first):
        row[column] = int(word or 0)


def _write_rule(row: np.ndarray, words: list[str]) -> None:
    """The columns of a rule (csrc/kernels/object_list.h) after its kind."""
    ranges, rest = words[:4], words[4:]
    options = dict(word.split("=") for word in rest if "=" in word)
    row[1] = sum(_FLAGS[word] for word in rest if "=" not in word)
    row[2] = int(options.get("color", _ANY_COLOR))
    for number, range_ in enumerate(ranges):
        least, _, most = range_.partition("-")
        _numbers(row, 3 + 2 * number, (least, most or least))
    _numbers(row, 11, options.get("move", "0,0").split(","))
    _numbers(row, 13, options.get("size", "0x0").split("x"))
    _numbers(row, 15, options.get("cells", "0,0").split(","))
    _numbers(row, 17, options.get("within", "0-255").split("-"))


def _write_place(row: np.ndarray, words: list[str]) -> None:
    """The columns of a place (csrc/kernels/object_places.h) after its kind."""
    width, height = words[3].split("x")
    for column, word in zip((1, 11, 21, 31), (*words[1:3], width, height), strict=True):
        if not (found := _NUMBER.fullmatch(word)):
            raise ValueError(f"{word}, expected a number of a place")
        form, byte, each, mask, delay, times, over, sign, other, plus, modulo = found.groups()
        delay = (delay or 15) if form == "h" else 0
        byte = byte if form else _NO_BYTE
        numbers = (byte, _EACH[each], mask or 255, delay, times or 1, over or 1)
        _numbers(row, column, (*numbers, other or _NO_BYTE, f"{sign or '+'}1", plus, modulo))
    row[41:50] = 160, 255, 1, 1, 0, 0, _NO_BYTE, 0, 0
    row[50:70:5] = _NO_BYTE
    conditions = 0
    for at, word in enumerate(words):
        if word == "grid":
            _numbers(row, 43, (*words[at + 1].split("x"), *words[at + 2 : at + 4]))
        elif word == "to":
            _numbers(row, 41, words[at + 1].split(","))
        elif word == "bits":
            _numbers(row, 47, words[at + 1 : at + 4])
        elif word == "if":
            if not (found := _CONDITION.fullmatch(words[at + 1])):
                raise ValueError(f"{words[at + 1]}, expected a condition of a place")
            byte, each, mask, least, most = found.groups()
            column = 50 + 5 * conditions
            _numbers(row, column, (byte, _EACH[each], mask or 255, least, most or least))
            conditions += 1


def object_facts(name: str) -> np.ndarray:
    """(rows, columns) int16: a game's settings, rules and places, as the core reads them."""
    settings, lines = _tables().get(name, (_SETTINGS, ()))
    kinds = kinds_of(name)
    facts = np.zeros((_core.OBJECT_FACT_ROWS, _core.OBJECT_FACT_COLUMNS), np.int16)
    classes, gap, line_gap, one_color, *cuts = settings.split()
    of_one_color = sum(1 << int(number) for number in one_color.strip("-"))
    places = sum(map(_is_place, lines))
    rules = len(lines) - places
    facts[0, :11] = *map(int, classes), int(gap), int(line_gap), of_one_color, rules, places
    if cuts:
        _numbers(facts[0], 11, re.split("[-/]", cuts[0]))
    for row, line in zip(facts[1 : len(lines) + 1], lines, strict=True):
        kind, *words = line.split()
        row[0] = kinds.index(kind)
        if _is_place(line):
            _write_place(row, words)
        else:
            _write_rule(row, words)
    return facts
