"""How the TIA's objects move: HMOVE, the HMxx registers, and the stars of Cosmic Ark.

Sources: Stella Programmer's Guide; Andrew Towers, "Atari 2600 TIA Hardware Notes" (HMOVE's
pulses).
"""

from types import ModuleType

import pytest
from tia_screen import AT_LEFT, EMPTY, LINES, LONG_AGO, Screen, line_of

from tests.support.registers import (  # isort: skip
    RESP0, RESM0, GRP0, ENAM0, HMP0, HMP1, HMM0, HMM1, HMBL, HMOVE, HMCLR,
)  # fmt: skip

LEFT_BY_MOTION = [*range(8), *range(-8, 0)]  # the Programmer's Guide's table


def hmove_of_pulses(cycle: int, motion: int) -> int:
    """How many pixels an object moves to the right, after Towers: pulses come 4 clocks apart,
    and those in the blank count."""
    pulses = [3 * cycle + 9 + 4 * i for i in range(motion ^ 8)]
    if cycle == 75:
        return 8 - len(pulses)  # the whole next blank is there for them
    if cycle <= 20:  # this blank, which HMOVE prolongs by 8 clocks
        return 8 - sum(clock < 68 + 8 for clock in pulses)
    # Those that come in the next blank, which is not prolonged.
    return -sum(clock >= 228 for clock in pulses)


@pytest.mark.parametrize("cycle", range(76))
def test_tia_hmove_counts_the_pulses_in_the_blank(chips: ModuleType, cycle: int) -> None:
    assert [chips.hmove_distance(cycle, motion) for motion in range(16)] == [
        hmove_of_pulses(cycle, m) for m in range(16)
    ]


@pytest.mark.parametrize(
    ("cycle", "left"),
    [
        (3, LEFT_BY_MOTION),
        (75, LEFT_BY_MOTION),
        (40, [0] * 16),
        (74, [8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7]),
        (4, [0, 1, 2, 3, 4, 5, 6, 6, -8, -7, -6, -5, -4, -3, -2, -1]),
        (20, [-6] * 8 + [-8, -7, *[-6] * 6]),
    ],
)
def test_tia_hmove_moves_each_object(chips: ModuleType, cycle: int, left: list[int]) -> None:
    for motion in range(16):
        for i in range(5):
            screen = Screen(chips, AT_LEFT | {HMP0 + i: motion << 4 | 0x0F & ~1})
            start = screen.tia.positions
            screen.at(1, cycle, HMOVE)
            expected = list(start)
            expected[i] = (start[i] - left[motion]) % 160
            for other in range(5):
                if other != i:
                    expected[other] = (start[other] - left[0]) % 160
            assert screen.tia.positions == expected


def test_tia_hmove_shows_in_the_picture_and_can_be_repeated(chips: ModuleType) -> None:
    screen = Screen(chips, AT_LEFT | {GRP0: 0x80, HMP0: 0xD0})  # 3 to the right
    screen.at(1, 3, HMOVE)
    screen.at(2, 3, HMOVE)
    screen.at(3, 3, HMCLR)
    screen.at(4, 3, HMOVE)
    lines = [line_of(p0=[(x, 1)]) for x in (3, 6, 9, 9, 9, 9)]
    combed = [" " * 8 + line[8:] if i in (1, 2, 4) else line for i, line in enumerate(lines)]
    assert screen.lines() == combed


def test_tia_hmclr_clears_all_motion(chips: ModuleType) -> None:
    screen = Screen(
        chips, AT_LEFT | {HMP0: 0x10, HMP1: 0x20, HMM0: 0x30, HMM1: 0x40, HMBL: 0x50, HMCLR: 0}
    )
    start = screen.tia.positions
    screen.at(1, 3, HMOVE)
    assert screen.tia.positions == start


@pytest.mark.parametrize("cycle", range(76))
def test_tia_hmove_comb(chips: ModuleType, cycle: int) -> None:
    """HMOVE in the blank makes eight black pixels; on a line's last cycle it counts for the next
    line."""
    screen = Screen(chips)
    screen.at(2, cycle, HMOVE)
    combed = 2 if cycle <= 20 else 3 if cycle == 75 else None
    assert screen.lines() == [
        line_of(dark=[(0, 8)]) if line == combed else EMPTY for line in range(LINES)
    ]


def test_tia_hmove_comb_can_be_off(chips: ModuleType) -> None:
    screen = Screen(chips, hmove_blanks=False)
    screen.at(2, 3, HMOVE)
    assert screen.lines() == [EMPTY] * LINES


def test_tia_hmove_lets_a_reset_player_show_in_its_line(chips: ModuleType) -> None:
    screen = Screen(chips, AT_LEFT | {GRP0: 0xFF})
    screen.at(0, 40, RESP0, LONG_AGO)
    screen.at(0, 41, HMOVE)  # too late to move it or to show the comb
    assert screen.lines()[:2] == [line_of(p0=[(3, 8), (57, 8)]), line_of(p0=[(57, 8)])]


def test_tia_stars_of_cosmic_ark(chips: ModuleType) -> None:
    """HMM0 changes from 7 to 6, 21 cycles after HMOVE.

    Missile 0 then moves by itself, 68 pixels to the left in four lines.
    """
    screen = Screen(chips, AT_LEFT | {ENAM0: 2, HMM0: 0x70}, hmove_blanks=False)
    screen.at(0, 40, RESM0, LONG_AGO)  # 56
    screen.at(0, 70, HMM0, 0x61)  # the flag that says 21
    moved = [56 - 33, 56 - 33, 56 - 33 - 17, 56 - 33 - 17 - 18]
    assert screen.lines() == [
        line_of(p0=[(2, 1)]),
        line_of(p0=[(moved[0], 2)]),  # stretched
        EMPTY,
        line_of(p0=[(moved[2], 1)]),
        line_of(p0=[(moved[3] % 160, 1)]),
        line_of(p0=[((moved[3] - 33) % 160, 2)]),
    ]


def test_tia_stars_need_the_moment_and_the_values(chips: ModuleType) -> None:
    for before, value in ((0x70, 0x60), (0x60, 0x61), (0x70, 0x71)):
        screen = Screen(chips, AT_LEFT | {ENAM0: 2, HMM0: before})
        screen.at(0, 70, HMM0, value)
        assert screen.lines() == [line_of(p0=[(2, 1)])] * LINES
