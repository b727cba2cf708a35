"""The TIA's players, compared with pictures written by hand.

Source: Stella Programmer's Guide (GRPx, NUSIZx, REFPx, RESPx, VDELPx). Where a player appears
after RESPx, and how much remains of one that is reset while it is drawn, is as in ale-py.
"""

from types import ModuleType

import pytest
from tia_screen import AT_LEFT, COPIES, EMPTY, LINES, LONG_AGO, Screen, line_of

from tests.support.registers import GRP0, GRP1, NUSIZ0, REFP0, RESP0, VDELP0


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("reflected", [False, True])
def test_tia_player_graphics(chips: ModuleType, which: int, reflected: bool) -> None:
    screen = Screen(chips, AT_LEFT | {GRP0 + which: 0b11010001, REFP0 + which: 8 * reflected})
    shape = "#...#.##" if reflected else "##.#...#"
    assert screen.lines() == ["..." + shape.replace("#", str(which)) + "." * 149] * LINES


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("nusiz", range(8))
def test_tia_player_copies_and_sizes(chips: ModuleType, nusiz: int, which: int) -> None:
    """Double and quadruple players start one pixel late."""
    screen = Screen(chips, AT_LEFT | {GRP0 + which: 0b10110000, NUSIZ0 + which: nusiz})
    stretch, start = {5: (2, 4), 7: (4, 4)}.get(nusiz, (1, 3))
    runs = [
        (start + copy + at * stretch, width * stretch)
        for copy in COPIES[nusiz]
        for at, width in ((0, 1), (2, 2))
    ]
    assert screen.lines() == [line_of(**{f"p{which}": runs})] * LINES


@pytest.mark.parametrize(
    ("cycle", "position"), [(23, 6), (40, 57), (60, 117), (73, 156), (74, 159), (75, 2)]
)
@pytest.mark.parametrize("which", [0, 1])
def test_tia_player_reset_position(
    chips: ModuleType, which: int, cycle: int, position: int
) -> None:
    """RESPx at cycle c sets pixel 3c - 63; the first copy shows from the next line on."""
    screen = Screen(chips, AT_LEFT)
    screen.at(1, cycle, RESP0 + which, LONG_AGO)
    screen.at(2, 0, GRP0 + which, 0xFF)
    assert screen.tia.positions[which] == position
    name = f"p{which}"
    assert screen.lines() == [EMPTY] * 2 + [line_of(**{name: [(position, 8)]})] * (LINES - 2)


@pytest.mark.parametrize("cycle", [0, 11, 22])
def test_tia_player_reset_in_the_blank(chips: ModuleType, cycle: int) -> None:
    screen = Screen(chips, {GRP0: 0xFF})
    screen.at(1, cycle, RESP0, LONG_AGO)
    assert screen.lines()[2] == line_of(p0=[(3, 8)])


def test_tia_player_reset_hides_the_first_copy_only(chips: ModuleType) -> None:
    screen = Screen(chips, AT_LEFT | {GRP0: 0xFF, NUSIZ0: 3})
    screen.at(1, 40, RESP0, LONG_AGO)
    before, after = [(3, 8), (19, 8), (35, 8)], [(57, 8), (73, 8), (89, 8)]
    lines = screen.lines()
    assert lines[0] == line_of(p0=before)
    assert lines[1] == line_of(p0=[*before, *after[1:]])
    assert lines[2] == line_of(p0=after)


def test_tia_player_reset_while_it_is_about_to_start_shows_at_once(chips: ModuleType) -> None:
    screen = Screen(chips, {GRP0: 0xFF})
    screen.at(0, 39, RESP0, LONG_AGO)  # 54
    screen.at(2, 40, RESP0, LONG_AGO)  # 57
    assert screen.lines()[1:4] == [
        line_of(p0=[(54, 8)]),
        line_of(p0=[(57, 8)]),
        line_of(p0=[(57, 8)]),
    ]


def test_tia_player_reset_while_it_is_drawn_finishes_it(chips: ModuleType) -> None:
    screen = Screen(chips, {GRP0: 0xFF})
    screen.at(0, 38, RESP0, LONG_AGO)  # 51
    screen.at(2, 40, RESP0, LONG_AGO)  # pixel 52: 51 is drawn, 57 is the next start
    assert screen.lines()[1:4] == [
        line_of(p0=[(51, 8)]),
        line_of(p0=[(51, 8)]),
        line_of(p0=[(57, 8)]),
    ]


def test_tia_player_wraps_at_the_right_edge(chips: ModuleType) -> None:
    screen = Screen(chips, {GRP0: 0b10011111})
    screen.at(0, 73, RESP0, LONG_AGO)  # 156
    assert screen.lines()[2] == "0000" + "." * 152 + "0..0"


@pytest.mark.parametrize(("nusiz", "head", "tail"), [(5, 13, 3), (7, 29, 3), (1, 12, 4)])
def test_tia_wide_players_and_copies_wrap(
    chips: ModuleType, nusiz: int, head: int, tail: int
) -> None:
    screen = Screen(chips, {GRP0: 0xFF, NUSIZ0: nusiz})
    screen.at(0, 73, RESP0, LONG_AGO)
    if nusiz == 1:  # 156-163 and 172-179
        expected = "0000" + "." * 8 + "0" * 8 + "." * 136 + "0000"
    else:
        expected = "0" * head + "." * (160 - head - tail) + "0" * tail
    assert screen.lines()[2] == expected


@pytest.mark.parametrize("which", [0, 1])
def test_tia_vertical_delay_shows_what_was_there_before_the_other_players_write(
    chips: ModuleType, which: int
) -> None:
    own, other = GRP0 + which, GRP1 - which
    screen = Screen(chips, AT_LEFT | {VDELP0 + which: 1})
    screen.at(0, 2, own, 0xF0)  # shows once the other player's is written
    screen.at(1, 2, other, 0)
    screen.at(2, 2, own, 0x0F)
    screen.at(4, 2, VDELP0 + which, 0)
    name = f"p{which}"
    old, new = line_of(**{name: [(3, 4)]}), line_of(**{name: [(7, 4)]})
    assert screen.lines() == [EMPTY, old, old, old, new, new]
