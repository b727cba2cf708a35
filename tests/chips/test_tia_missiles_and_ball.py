"""The TIA's missiles and its ball, compared with pictures written by hand.

Source: Stella Programmer's Guide (ENAxx, NUSIZx, RESxx, RESMPx, VDELBL). Where an object appears
after RESxx is as in ale-py.
"""

from types import ModuleType

import pytest
from tia_screen import AT_LEFT, COPIES, EMPTY, LINES, LONG_AGO, Screen, line_of

from tests.support.registers import (  # isort: skip
    NUSIZ0, CTRLPF, RESP0, RESM0, RESM1, RESBL, GRP0, GRP1, ENAM0, ENAM1, ENABL, VDELBL, RESMP0,
)  # fmt: skip


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("nusiz", range(8))
def test_tia_missile_copies_and_sizes(chips: ModuleType, nusiz: int, size: int, which: int) -> None:
    screen = Screen(chips, AT_LEFT | {ENAM0 + which: 2, NUSIZ0 + which: size << 4 | nusiz})
    assert (
        screen.lines()
        == [line_of(**{f"p{which}": [(2 + copy, 1 << size) for copy in COPIES[nusiz]]})] * LINES
    )


@pytest.mark.parametrize("size", range(4))
def test_tia_ball_sizes(chips: ModuleType, size: int) -> None:
    screen = Screen(chips, AT_LEFT | {ENABL: 2, CTRLPF: size << 4})
    assert screen.lines() == [line_of(pf=[(2, 1 << size)])] * LINES


@pytest.mark.parametrize("register", [ENAM0, ENAM1, ENABL])
def test_tia_enable_is_bit_1(chips: ModuleType, register: int) -> None:
    assert Screen(chips, AT_LEFT | {register: 0xFD}).lines() == [EMPTY] * LINES


@pytest.mark.parametrize("register", [RESM0, RESM1, RESBL])
@pytest.mark.parametrize(
    ("cycle", "position"), [(0, 2), (22, 2), (23, 5), (40, 56), (60, 116), (74, 158), (75, 1)]
)
def test_tia_missile_and_ball_reset_position(
    chips: ModuleType, register: int, cycle: int, position: int
) -> None:
    """RESxx at cycle c sets pixel 3c - 64, and pixel 2 in the blank."""
    screen = Screen(chips)
    screen.at(1, cycle, register, LONG_AGO)
    screen.at(2, 0, {RESM0: ENAM0, RESM1: ENAM1, RESBL: ENABL}[register], 2)
    name = {RESM0: "p0", RESM1: "p1", RESBL: "pf"}[register]
    assert screen.tia.positions[register - RESP0] == position
    assert screen.lines() == [EMPTY] * 2 + [line_of(**{name: [(position, 1)]})] * (LINES - 2)


def test_tia_ball_and_missile_wrap_at_the_right_edge(chips: ModuleType) -> None:
    screen = Screen(chips, {ENABL: 2, CTRLPF: 0x30, ENAM0: 2, NUSIZ0: 0x21})
    screen.at(0, 73, RESBL, LONG_AGO)  # 155
    screen.at(0, 74, RESM0, LONG_AGO)  # 158; its copy at 174
    assert screen.lines()[2] == "00f" + "." * 11 + "0000" + "." * 137 + "fff00"


def test_tia_ball_reset_moves_it_within_the_line(chips: ModuleType) -> None:
    screen = Screen(chips, AT_LEFT | {ENABL: 2})
    screen.at(1, 40, RESBL, LONG_AGO)
    assert screen.lines()[:3] == [
        line_of(pf=[(2, 1)]),
        line_of(pf=[(2, 1), (56, 1)]),
        line_of(pf=[(56, 1)]),
    ]


def test_tia_missile_reset_takes_effect_eight_clocks_late(chips: ModuleType) -> None:
    screen = Screen(chips, AT_LEFT | {ENAM0: 2, NUSIZ0: 0x30})
    screen.at(1, 40, RESM0, LONG_AGO)  # pixel 52 + 8; the missile from 56 on
    assert screen.lines()[:3] == [
        line_of(p0=[(2, 8)]),
        line_of(p0=[(2, 8), (60, 4)]),
        line_of(p0=[(56, 8)]),
    ]


@pytest.mark.parametrize(
    ("register", "cycle", "since_hmove", "position"),
    [
        (RESM0, 23, 20, 8),  # Dolphin
        (RESM1, 6, 3, 3),  # Pitfall II
        (RESBL, 20, 18, 10),  # Escape from the Mindmaster
        (RESBL, 23, 18, 10),
        (RESBL, 6, 3, 3),  # Decathlon
        (RESBL, 10, 7, 6),  # Robot Tank
        (RESBL, 9, 6, 5),  # Hole Hunter
        (RESM0, 23, 19, 5),  # a cycle off
        (RESM1, 6, 4, 2),
        (RESBL, 20, 17, 2),
        (RESM0, 6, 3, 2),  # another object
    ],
)
def test_tia_resets_shortly_after_hmove(
    chips: ModuleType, register: int, cycle: int, since_hmove: int, position: int
) -> None:
    screen = Screen(chips)
    screen.at(1, cycle, register, since_hmove)
    assert screen.tia.positions[register - RESP0] == position


def test_tia_vertical_delay_of_the_ball_waits_for_grp1(chips: ModuleType) -> None:
    screen = Screen(chips, AT_LEFT | {VDELBL: 1})
    screen.at(0, 2, ENABL, 2)
    screen.at(1, 2, GRP0, 0)  # not this one
    screen.at(2, 2, GRP1, 0)
    screen.at(3, 2, ENABL, 0)
    screen.at(4, 2, VDELBL, 0)
    ball = line_of(pf=[(2, 1)])
    assert screen.lines() == [EMPTY, EMPTY, ball, ball, EMPTY, EMPTY]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("nusiz", "middle"), [(0, 4), (3, 4), (5, 8), (7, 16)])
def test_tia_locked_missile_leaves_from_its_players_middle(
    chips: ModuleType, which: int, nusiz: int, middle: int
) -> None:
    screen = Screen(chips, AT_LEFT | {ENAM0 + which: 2, NUSIZ0 + which: nusiz})
    screen.at(0, 40, RESP0 + which, LONG_AGO)
    screen.at(1, 2, RESMP0 + which, 2)
    screen.at(3, 2, RESMP0 + which, 0)
    name = f"p{which}"
    away = line_of(**{name: [(2 + copy, 1) for copy in COPIES[nusiz]]})
    there = line_of(**{name: [(57 + middle + copy, 1) for copy in COPIES[nusiz]]})
    assert screen.lines() == [away, EMPTY, EMPTY, there, there, there]
