"""Lists of objects against their tables of facts, read and applied in another way."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

import cule
from cule.facts import objects as tables
from cule.facts.objects import MOST_OBJECTS, kinds_of, object_facts
from tests.support.marks import few

# Of each mechanism of rules and places some, full lists, and starts of episodes.
GAMES = (
    "pong", "boxing", "centipede", "fishing_derby", "name_this_game", "asteroids", "yars_revenge",
    "skiing", "demon_attack", "bank_heist", "crazy_climber", "gopher", "battle_zone", "pitfall",
    "king_kong", "montezuma_revenge",
)  # fmt: skip
# What games do not have, or not in random play. "other" is never drawn, so that its places are.
MADE_UP = """
pong: 012345 8 0 5
  player 136-144 20-199 4 2-22 size=3x30 right move=1,-3 within=40-180
  digit 0-159 0-20 1-60 1-30 size=4x5 cells=6 joins
  enemy 0-159 0-209 1-200 1-200 color=56
  other at r1++*-1/3-r2+90 r4&15*14-20 r8++&7*3x20 grid 9x1 2 3 to 120,160 if r9++&3=1-2
  other at h11+++3 h12++*2/3-40 7xr5/2 grid 3x11 9 18 bits 14 5 -2 if r40++=0-200 if r3=0-255
  player at 138 r60 5x16 grid 1x2 0 4
  player at 139 60 2x2 grid 6x60 3 2
"""


def facts_of(name: str) -> tuple[list[list[str]], list[list[str]]]:
    """The words of a game's rules, and those of its places."""
    text = (tables.RULES + tables.RULES_FROM_H).replace("\n    ", " ")
    (found,) = re.findall(rf"^{name}: .*\n((?:  .*\n)*)", text, re.MULTILINE)
    lines = [line.split() for line in found.splitlines()]
    return [w for w in lines if w[1] != "at"], [w for w in lines if w[1] == "at"]


def number_of(word: str, ram: Sequence[int], step: int) -> int:
    """A number of a place, read from left to right."""
    value = 0
    for operator, letter, digits, each in re.findall(r"([-+*/&]?)([rh]?)(-?\d+)(\+\+)?", word):
        operand = int(digits)
        if letter:
            operand = ram[operand + step * bool(each)]
        if letter == "h":
            move = operand >> 4
            operand = (operand & 15) * 15 - (move - 16 if move > 7 else move)
        if operator == "&":
            value &= operand
        elif operator == "*":
            value *= operand
        elif operator == "/":
            value = int(value / operand)
        else:
            value += -operand if operator == "-" else operand
    return value


def span(word: str) -> range:
    least, _, most = word.partition("-")
    return range(int(least), int(most or least) + 1)


def cut(row: list[int], right: int, bottom: int, top: int = 0) -> list[list[int]]:
    """A row as far as it is within limits; nothing if there is nothing left."""
    kind, x, y, width, height, *rest = row
    x, x_end = max(x, 0), min(x + width, right, 160)
    y, y_end = max(y, top, 0), min(y + height, bottom)
    return [[kind, x, y, x_end - x, y_end - y, *rest]] if x < x_end and y < y_end else []


def named(box: list[int], rules: list[list[str]], kinds: Sequence[str], lines: int) -> list[tuple]:
    """The rows that a box (x, y, width, height, color, visible) becomes, and if each is joined."""
    for kind, *words in rules:
        options = {**dict.fromkeys(w for w in words if w in ("right", "joins"))}
        options |= dict(w.split("=") for w in words if "=" in w)
        ranges = [span(word) for word in words[:4]]
        if any(value not in range_ for value, range_ in zip(box, ranges, strict=False)):
            continue
        if "color" in options and int(options["color"]) != box[4]:
            continue
        x, y, width, height = box[:4]
        if "size" in options:
            new_width, height = map(int, options["size"].split("x"))
            x += (width - new_width) if "right" in options else 0
        else:
            new_width = width
        x, y = np.add((x, y), [*map(int, options.get("move", "0,0").split(","))]).tolist()
        top, bottom = map(int, options.get("within", "0-255").split("-"))
        pitch = int(options.get("cells", 1000))
        begins = [0, *range(pitch, width - new_width + 1, pitch)]
        rows = [[kinds.index(kind), x + b, y, new_width, height, *box[4:]] for b in begins]
        return [
            (one, "joins" in options)
            for row in rows
            for one in cut(row, 160, min(bottom, lines), top)
        ]
    return [([0, *box], False)]


def boxes_of_two_frames(boxes: np.ndarray) -> list[tuple[int, list[int]]]:
    """Boxes with their objects and in which frames they are; those of the newer frame first."""
    before, last = ([row.tolist() for row in frame[1 : frame[0, 0] + 1]] for frame in boxes)
    seen, left = [1] * len(last), []
    for one in before:
        for k, other in enumerate(last):
            same = one[0] == other[0] or one[5] == other[5]
            for i in (1, 2):
                same &= max(one[i + 2], other[i + 2]) <= 2 * min(one[i + 2], other[i + 2])
                same &= one[i] - other[i] - other[i + 2] < 4
                same &= other[i] - one[i] - one[i + 2] < 4
            if same and seen[k] == 1:
                seen[k] = 3
                break
        else:
            left.append([*one[1:6], 2])
    return [[*box[1:6], visible] for box, visible in zip(last, seen, strict=True)] + left


def overlap(one: list[int], other: list[int]) -> tuple[int, int, int]:
    """How many pixels two rows have in common, and how many each has."""
    sizes = [
        max(0, min(one[i] + one[i + 2], other[i] + other[i + 2]) - max(one[i], other[i]))
        for i in (1, 2)
    ]
    return sizes[0] * sizes[1], one[3] * one[4], other[3] * other[4]


def places_of(words: list[str], kinds: Sequence[str], ram: Sequence[int], lines: int) -> list:
    """The rows of a place."""
    size = words[4].split("x")
    options = {word: words[at + 1 :] for at, word in enumerate(words)}
    columns, rows = map(int, options.get("grid", ["1x1"])[0].split("x"))
    pitch = [*map(int, options["grid"][1:3])] if "grid" in options else [0, 0]
    right, bottom = map(int, options.get("to", ["160,255"])[0].split(","))
    byte, first, far = map(int, options["bits"][:3]) if "bits" in options else (0, 0, 0)
    found = []
    for row, column in np.ndindex(rows, columns):
        step = row if rows > 1 else column
        conditions = [word.split("=") for at, word in enumerate(words) if words[at - 1] == "if"]
        if not all(number_of(of, ram, step) in span(values) for of, values in conditions):
            continue
        if "bits" in options and not ram[byte + row] & 1 << first + far * column:
            continue
        x, y, width, height = (number_of(word, ram, step) for word in (*words[2:4], *size))
        at = [kinds.index(words[0]), x + column * pitch[0], y + row * pitch[1], width, height, 0, 4]
        found += cut(at, right, min(bottom, lines))
    return found


def expected_list(name: str, boxes: np.ndarray, ram: list[int], lines: int) -> list[list[int]]:
    kinds = kinds_of(name)
    rules, places = facts_of(name)
    listed: list[list[int]] = []
    for box in boxes_of_two_frames(boxes):
        for row, joins in named(box, rules, kinds, lines):
            mates = [other for other in listed if other[0] == row[0]] if joins else []
            if mates:
                x, y = min(mates[0][1], row[1]), min(mates[0][2], row[2])
                ends = [max(mates[0][i] + mates[0][i + 2], row[i] + row[i + 2]) for i in (1, 2)]
                mates[0][1:5] = x, y, ends[0] - x, ends[1] - y
                mates[0][6] |= row[6]
            elif len(listed) < MOST_OBJECTS:
                listed.append(row)
    drawn, gone = len(listed), []
    for place in (row for words in places for row in places_of(words, kinds, ram, lines)):
        there = False
        for i, other in enumerate(listed[:drawn]):
            if other[0] != place[0] or other[6] == 4 or i in gone:
                continue
            common, its, of_drawn = overlap(place, other)
            if 3 * common >= its + of_drawn:
                there = True
                break
            if 2 * common >= of_drawn:
                gone.append(i)
        if there:
            continue
        if len(listed) < MOST_OBJECTS:
            listed.append(place)
        else:
            unknown = [i for i, other in enumerate(listed) if other[0] == 0]
            if unknown:
                listed[unknown[-1]] = place
    return [row for i, row in enumerate(listed) if i not in gone]


def play_and_compare(name: str, steps: int, seed: int) -> tuple[set[int], int]:
    """Plays at random, and compares each list; how visible objects were, and the longest list."""
    env = cule.AtariEnv(
        name, 1, "cpu", obs_type="objects", output="numpy", num_threads=1, reset_pool_size=2
    )
    generator, visible, longest = np.random.default_rng(seed), set(), 0
    env.reset(seed=seed)
    lines = len(env.get_screen()[0])
    for _ in range(steps):
        rows = env.step(generator.integers(0, env.single_action_space.n, 1))[0][0].tolist()
        boxes = env.engine.tensors["boxes"][0].numpy()
        ram = env.get_ram()[0].tolist()
        wanted = expected_list(name, boxes, ram, lines)
        assert rows[: len(wanted)] == wanted
        assert not np.any(rows[len(wanted) :])
        visible |= {row[6] for row in wanted}
        longest = max(longest, len(wanted))
    env.close()
    return visible, longest


@pytest.mark.parametrize("name", few(GAMES, GAMES[:13]))
def test_lists_follow_the_facts(name: str) -> None:
    play_and_compare(name, 120, 3)


def test_all_that_a_table_may_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "RULES", "")
    monkeypatch.setattr(tables, "RULES_FROM_H", MADE_UP)
    tables._tables.cache_clear()
    try:
        visible, longest = play_and_compare("pong", 150, 5)
        assert {3, 4} <= visible and longest == MOST_OBJECTS
        assert object_facts("pong")[0, 9:11].tolist() == [3, 4]
    finally:
        monkeypatch.undo()
        tables._tables.cache_clear()
