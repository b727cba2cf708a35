"""Objects on the screen: how boxes are made of the TIA's objects, and what they are in each game.

The rules are tables of facts (object_rules.py, object_rules_from_h.py), a line for a game's
settings, then a line for each rule, of which the first that a box fits says what it is. A line that
is indented more goes on with the one above:

    pong: 012345 8 0 5
      player 136-144 30-199 4 2-22
      score 20-60 1-3 4-12 10-20 color=56 joins

The settings: the classes of player 0, player 1, missile 0, missile 1, the ball and the playfield;
below how many pixels a gap in a player's scanline does not divide it; over how many scanlines a box
may have a gap; the classes whose boxes are of one color ("-": none); and maybe where boxes are cut:
175-187/2 is above scanline 175, 177 and so on up to 187. A rule: a kind, then the least and the
greatest x, y, width and height of the box; maybe its color; and what the object is of the box:

    move=-4,1      4 pixels further to the left, and 1 below
    size=16x20     of that size, from where the box begins; with "right" it ends where the box ends
    cells=4        cells of that size, from 4 pixels to the next
    within=34-194  its scanlines from 34 to 193
    joins          all boxes that fit the rule are one object

After the rules of a game are its places: objects that pixels do not show, as they are parts of
something else, or not drawn at that moment. A drawn object of the same kind that overlaps one
by half takes its place:

    ladder at 108 176 4x17
    enemy at r42++ 26 7x11 grid 1x8 0 16 if r29++&1=1
    shield at 128 r26+121 4x8 grid 8x16 4 -8 bits 1 0 1

A place: a kind, x, y, a size; and maybe, in this order,

    to 150,190       where it ends at the latest
    grid 8x16 4 -8   columns and rows of more of them, and how far the next ones are
    bits 1 0 1       the byte of RAM whose bits say which of the first row are there (the next row
                     has the next byte), the first column's bit, and how far the next one's is
    if r29&1=1-3     up to four conditions: the bits of a byte are from 1 to 3

r42 is a byte of RAM. With ++ the grid's next row has the next byte; if it is of one row, the next
column. &15 are bits of the byte; *3, /2, +r43 and +9 are done in this order. h42 is where an object
is whose byte has a delay in the low half, 15 pixels each, and a move for HMOVE in the high half.

The kinds are named after the classes of OCAtari (https://github.com/k4ntz/OC_Atari, version 2.2.1,
MIT licence). The numbers are the ranges of the boxes that OCAtari's overlapped in random play, and
the bytes of RAM that it reads. benchmarks/tools/objects_against_ocatari.py compares the two.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cule import _core
from cule.facts.object_rules import RULES
from cule.facts.object_rules_from_h import RULES_FROM_H

# The columns of an object's row.
FIELDS = ("kind", "x", "y", "width", "height", "color", "visible")
# The most objects that are listed of an env.
MOST_OBJECTS = 256
# Of games without rules.
_SETTINGS = "012345 8 0 5"
_ANY_COLOR = _NO_BYTE = -1
_BYTE = r"(\d+)(\+\+)?(?:&(\d+))?"
_TERM = rf"([rh]){_BYTE}(?:\*(-?\d+))?(?:/(\d+))?(?:([+-])r(\d+))?"
_NUMBER = re.compile(rf"(?:{_TERM}(?=[+-]|$))?([+-]?\d+)?")
_CONDITION = re.compile(rf"r{_BYTE}=(\d+)(?:-(\d+))?")


@functools.cache
def _tables() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """For each game its settings and its rules, as lines."""
    tables: dict[str, tuple[str, tuple[str, ...]]] = {}
    name = ""
    for line in (RULES + RULES_FROM_H).replace("\n    ", " ").splitlines():
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


def _write(row: np.ndarray, first: int, words: Iterable[str | int | None]) -> None:
    """Writes numbers into a row, from column `first` on."""
    for column, word in enumerate(words, first):
        row[column] = int(word or 0)


def _write_rule(row: np.ndarray, words: list[str]) -> None:
    """The columns of a rule (csrc/kernels/object_list.h) after its kind."""
    ranges, rest = words[:4], words[4:]
    options = dict(word.split("=") for word in rest if "=" in word)
    row[1:3] = "joins" in rest, int(options.get("color", _ANY_COLOR))
    for number, range_ in enumerate(ranges):
        least, _, most = range_.partition("-")
        _write(row, 3 + 2 * number, (least, most or least))
    _write(row, 11, options.get("move", "0,0").split(","))
    _write(row, 13, options.get("size", "0x0").split("x"))
    row[15:17] = "right" in rest, int(options.get("cells", 0))
    _write(row, 17, options.get("within", "0-255").split("-"))


def _groups(pattern: re.Pattern[str], word: str) -> Sequence[str | None]:
    if not (found := pattern.fullmatch(word)):
        raise ValueError(word)
    return found.groups()


def _write_place(row: np.ndarray, words: list[str]) -> None:
    """The columns of a place (csrc/kernels/object_places.h) after its kind."""
    for column, word in zip((1, 10, 19, 28), (*words[1:3], *words[3].split("x")), strict=True):
        form, byte, each, mask, times, over, sign, other, plus = _groups(_NUMBER, word)
        numbers = (byte or _NO_BYTE, each is not None, mask or 255, form == "h", times or 1)
        _write(row, column, (*numbers, over or 1, other or _NO_BYTE, f"{sign or '+'}1", plus))
    row[37:46] = 160, 255, 1, 1, 0, 0, _NO_BYTE, 0, 0
    row[46:66:5] = _NO_BYTE
    if_column = 46
    for at, word in enumerate(words):
        if word == "to":
            _write(row, 37, words[at + 1].split(","))
        elif word == "grid":
            _write(row, 39, (*words[at + 1].split("x"), *words[at + 2 : at + 4]))
        elif word == "bits":
            _write(row, 43, words[at + 1 : at + 4])
        elif word == "if":
            byte, each, mask, least, most = _groups(_CONDITION, words[at + 1])
            _write(row, if_column, (byte, each is not None, mask or 255, least, most or least))
            if_column += 5


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
        _write(facts[0], 11, re.split("[-/]", cuts[0]))
    for row, line in zip(facts[1 : len(lines) + 1], lines, strict=True):
        kind, *words = line.split()
        row[0] = kinds.index(kind)
        if _is_place(line):
            _write_place(row, words)
        else:
            _write_rule(row, words)
    return facts
