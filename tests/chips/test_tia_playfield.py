"""The TIA's background and playfield, compared with pictures written by hand.

Source: Stella Programmer's Guide. Which pixel a write shows from is as in ale-py.
"""

from types import ModuleType

import pytest
from tia_screen import EMPTY, LINES, LONG_AGO, Screen, line_of

from tests.support.registers import CTRLPF, ENABL, PF0, PF1, PF2, RESBL


def test_tia_background_fills_the_picture(chips: ModuleType) -> None:
    assert Screen(chips).lines() == [EMPTY] * LINES


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("bit", range(20))
def test_tia_playfield_bits(chips: ModuleType, bit: int, mirrored: bool) -> None:
    """Left to right: PF0 from bit 4 to 7, PF1 from bit 7 to 0, PF2 from bit 0 to 7."""
    register, value = [
        *((PF0, 0x10 << i) for i in range(4)),
        *((PF1, 0x80 >> i) for i in range(8)),
        *((PF2, 1 << i) for i in range(8)),
    ][bit]
    screen = Screen(chips, {register: value, CTRLPF: int(mirrored)})
    right = 156 - 4 * bit if mirrored else 80 + 4 * bit
    assert screen.lines() == [line_of(pf=[(4 * bit, 4), (right, 4)])] * LINES


def test_tia_playfield_ignores_the_low_nibble_of_pf0(chips: ModuleType) -> None:
    assert Screen(chips, {PF0: 0x0F}).lines() == [EMPTY] * LINES


def test_tia_playfield_registers_together(chips: ModuleType) -> None:
    screen = Screen(chips, {PF0: 0xA0, PF1: 0xC1, PF2: 0x0F})
    half = "....ffff....ffff" + "ffffffff" + "." * 20 + "ffff" + "f" * 16 + "." * 16
    assert screen.lines() == [half * 2] * LINES


def test_tia_score_colors_the_halves_like_the_players(chips: ModuleType) -> None:
    screen = Screen(chips, {PF2: 0x81, CTRLPF: 0x02})
    assert screen.lines() == [line_of(p0=[(48, 4), (76, 4)], p1=[(128, 4), (156, 4)])] * LINES


def test_tia_score_leaves_the_ball_alone(chips: ModuleType) -> None:
    screen = Screen(chips, {PF1: 0x80, RESBL: LONG_AGO, ENABL: 2, CTRLPF: 0x32})
    assert screen.lines() == [line_of(pf=[(2, 8)], p0=[(16, 4)], p1=[(96, 4)])] * LINES


@pytest.mark.parametrize("cycle", range(24, 72))
def test_tia_playfield_write_shows_from_the_next_pixel_not_yet_fetched(
    chips: ModuleType, cycle: int
) -> None:
    delay = {0: 4, 1: 5, 2: 2, 3: 3}[cycle % 4]
    begin = 3 * cycle + delay - 68
    assert begin % 4 == 0
    screen = Screen(chips)
    for register in (PF0, PF1, PF2):
        screen.at(1, cycle, register, 0xFF)
    full = line_of(pf=[(0, 160)])
    assert screen.lines() == [EMPTY, EMPTY[:begin] + full[begin:], *[full] * (LINES - 2)]


def test_tia_mirroring_changes_at_once_in_the_left_half(chips: ModuleType) -> None:
    screen = Screen(chips, {PF0: 0x10})
    screen.at(1, 48, CTRLPF, 1)  # pixel 76
    assert screen.lines() == [
        line_of(pf=[(0, 4), (80, 4)]),
        *[line_of(pf=[(0, 4), (156, 4)])] * (LINES - 1),
    ]


def test_tia_mirroring_waits_for_the_next_line_in_the_right_half(chips: ModuleType) -> None:
    screen = Screen(chips, {PF0: 0x10, PF2: 0x01})
    screen.at(1, 50, CTRLPF, 1)  # pixel 82
    repeated = line_of(pf=[(0, 4), (48, 4), (80, 4), (128, 4)])
    assert screen.lines() == [repeated] * 2 + [
        line_of(pf=[(0, 4), (48, 4), (108, 4), (156, 4)])
    ] * (LINES - 2)
