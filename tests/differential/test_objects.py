"""Objects against connected components of each object's pixels, one by one."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
import torch

from cule.console import Group, Options, action_numbers
from cule.engine import Engine
from cule.facts.objects import MOST_OBJECTS, object_facts
from cule.rom import find_game
from tests.support.marks import few

# Sprites in several colors, objects that are rewritten within a scanline, a playfield in two
# colors, flicker, combs, PAL, frames that are cut off, more boxes than there is room for at once,
# scanlines of 40 runs, segments of more than 200.
GAMES = (
    "pong", "breakout", "freeway", "space_invaders", "pitfall", "asteroids", "ms_pacman",
    "tic_tac_toe_3d", "air_raid", "video_checkers", "journey_escape", "turmoil", "othello", "et",
)  # fmt: skip
# With the first scanline that boxes are cut above, the last one, and the step.
SETTINGS = (
    (0, 1, 2, 3, 4, 5, 8, 0, 1 << 5, 0, 0, 0),
    (0, 0, 1, 1, 1, 2, 3, 2, 0, 31, 150, 7),
    (0,) * 6 + (1, 1, 1, 0, 0, 0),
)
CUTS = 11  # their first column
STEPS, NO_PIXEL = 30, 0xFFFF


class Run(NamedTuple):
    line: int
    begin: int
    end: int
    object: int
    color: int


class Box(NamedTuple):
    objects: int
    x: int
    y: int
    width: int
    height: int
    colors: frozenset[int]


def runs_of(line: int, pixels: np.ndarray, gap: int) -> list[Run]:
    """The runs of a scanline, of which `pixels` has a row for each object."""
    found = []
    for number, row in enumerate(pixels):
        for color in set(row.tolist()) - {NO_PIXEL}:
            columns = np.flatnonzero(row == color)
            least = gap if number < 2 else 1
            parts = np.split(columns, np.flatnonzero(np.diff(columns) > least) + 1)
            found += [Run(line, int(p[0]), int(p[-1]) + 1, number, color) for p in parts]
    return found


def boxes_of(frame: np.ndarray, settings: tuple[int, ...]) -> list[Box]:
    """The boxes of a frame, (lines, objects, columns): components of a graph of its runs."""
    classes, gap, line_gap, one_color = settings[:6], *settings[6:9]
    cuts = range(settings[9], settings[10] + 1, settings[11]) if settings[11] else ()
    runs = [run for line, pixels in enumerate(frame) for run in runs_of(line, pixels, gap)]
    component = list(range(len(runs)))
    for i, one in enumerate(runs):
        for k in range(i - 1, -1, -1):
            other = runs[k]
            if one.line - other.line > 1 + line_gap:
                break  # runs are in the order of their lines
            of_class = classes[one.object]
            if (
                not any(other.line < cut <= one.line for cut in cuts)
                and classes[other.object] == of_class
                and (one.color == other.color or not one_color >> of_class & 1)
                and one.begin <= other.end and other.begin <= one.end
                and component[k] != component[i]
            ):  # fmt: skip
                old = component[k]
                component = [component[i] if c == old else c for c in component]
    found = []
    for number in sorted(set(component)):
        mine = [run for run, c in zip(runs, component, strict=True) if c == number]
        x, y = min(run.begin for run in mine), min(run.line for run in mine)
        width = max(run.end for run in mine) - x
        objects = sum({1 << run.object for run in mine})
        colors = frozenset(run.color for run in mine)
        found.append(Box(objects, x, y, width, max(run.line for run in mine) + 1 - y, colors))
    return found


def check(rows: np.ndarray, expected: list[Box]) -> None:
    """`rows` are an engine's boxes of a frame, with the header."""
    count, left_out = rows[0, :2]
    assert left_out == 0 and count == len(expected) <= MOST_OBJECTS
    found = sorted(rows[1 : count + 1].tolist())
    for row, box in zip(found, sorted(expected, key=lambda box: box[:5]), strict=True):
        assert tuple(row[:5]) == box[:5]
        assert row[5] in box.colors


def make_engine(name: str, settings: tuple[int, ...], frameskip: int) -> Engine:
    game = find_game(name)
    options = Options(reset_pool_size=2, autoreset=2, frameskip=frameskip, objects=True)
    group = Group(game, game.facts["default_mode"], 0)
    engine = Engine([group], np.zeros(1, np.uint32), options, torch.device("cpu"), 1)
    facts = object_facts(name)
    facts[0] = 0
    facts[0, :9], facts[0, CUTS : CUTS + 3] = settings[:9], settings[9:]
    engine.tensors["object_facts"][:] = torch.from_numpy(facts.view(np.uint8))
    engine.reset(None, torch.tensor([11]))
    return engine


# Each of the settings, and games that show more than others do.
@pytest.mark.parametrize(
    ("name", "settings"),
    few(
        itertools.product(GAMES, SETTINGS),
        [("pong", SETTINGS[0]), ("asteroids", SETTINGS[1]), ("air_raid", SETTINGS[2]),
         ("tic_tac_toe_3d", SETTINGS[0]), ("space_invaders", SETTINGS[1]),
         ("ms_pacman", SETTINGS[1]), ("turmoil", SETTINGS[0]), ("othello", SETTINGS[0]),
         ("et", SETTINGS[1])],
    ),
)  # fmt: skip
def test_boxes_are_components(name: str, settings: tuple[int, ...], drawing: ModuleType) -> None:
    """In each step those of the last two frames; with one frame in a step, the one before stays.

    So they are with segments whose runs have changed since the step before, and with others. No
    frame is looked at again but those with more boxes than there is room for.
    """
    for frameskip, wide in ((4, True), (1, False)):
        engine = make_engine(name, settings, frameskip)
        generator = torch.Generator().manual_seed(2)
        actions = len(action_numbers(find_game(name), "minimal"))
        seen: list[list[Box]] = []
        # Segments that have changed, and that have not, and frames that are looked at again.
        logs, counts, crowded = drawing.SeenLogs(), np.zeros(3, int), 0
        for _ in range(STEPS // frameskip):
            engine.tensors["actions"][:] = int(torch.randint(actions, (), generator=generator))
            frames, *more = drawing.step_and_see(engine.batch.address, wide, logs)
            counts += more
            seen = [*seen, *(boxes_of(frame, settings) for frame in frames[-2:])][-2:]
            boxes = engine.tensors["boxes"][0].numpy()
            for rows, expected in zip(boxes[-len(seen) :], seen, strict=True):
                if len(expected) <= MOST_OBJECTS:
                    check(rows, expected)
                else:
                    crowded += 1
                    assert rows[0, 0] == MOST_OBJECTS
                    assert rows[0, 1] >= len(expected) - MOST_OBJECTS
        assert counts[2] <= crowded
        assert frameskip == 1 or counts[:2].min() > 0
