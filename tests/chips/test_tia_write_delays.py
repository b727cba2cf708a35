"""When writes to the TIA take effect, which is as in ale-py."""

from types import ModuleType

import pytest
from tia_screen import EMPTY, FIRST_LINE, LINES, LONG_AGO, Screen, line_of

from tests.support.registers import (  # isort: skip
    VBLANK, NUSIZ0, COLUP0, COLUBK, CTRLPF, REFP0, PF0, RESP0, RESM0, RESBL, GRP0, ENAM0, ENABL,
    VDELP0, RESMP0,
)  # fmt: skip


@pytest.mark.parametrize("cycle", [23, 30, 47, 75])
def test_tia_background_changes_at_once(chips: ModuleType, cycle: int) -> None:
    screen = Screen(chips)
    screen.at(1, cycle, COLUBK, 0x6C)
    begin = 3 * cycle - 68  # cycle 23: pixel 1
    assert screen.lines() == [EMPTY, "." * begin + "f" * (160 - begin), *["f" * 160] * (LINES - 2)]


@pytest.mark.parametrize("cycle", range(23))
def test_tia_writes_in_the_blank_hold_for_the_whole_line(chips: ModuleType, cycle: int) -> None:
    screen = Screen(chips)
    screen.at(1, cycle, COLUBK, 0x6C)
    assert screen.lines()[:2] == [EMPTY, "f" * 160]


@pytest.mark.parametrize(
    ("register", "value", "delay", "setup", "before", "after"),
    [
        (GRP0, 0xFF, 1, {}, EMPTY, line_of(p0=[(48, 8)])),
        (REFP0, 0x08, 1, {GRP0: 0xF0}, line_of(p0=[(48, 4)]), line_of(p0=[(52, 4)])),
        (NUSIZ0, 0x00, 8, {ENAM0: 2, NUSIZ0: 0x30}, line_of(p0=[(47, 8)]), line_of(p0=[(47, 1)])),
        (ENAM0, 0x02, 0, {NUSIZ0: 0x30}, EMPTY, line_of(p0=[(47, 8)])),
        (ENABL, 0x02, 0, {CTRLPF: 0x30}, EMPTY, line_of(pf=[(47, 8)])),
        (CTRLPF, 0x30, 0, {ENABL: 2}, line_of(pf=[(47, 1)]), line_of(pf=[(47, 8)])),
        (COLUP0, 0x6C, 0, {GRP0: 0xFF}, line_of(p0=[(48, 8)]), line_of(pf=[(48, 8)])),
        (VDELP0, 0x01, 0, {GRP0: 0xFF}, line_of(p0=[(48, 8)]), EMPTY),
        (RESMP0, 0x02, 0, {ENAM0: 2, NUSIZ0: 0x30}, line_of(p0=[(47, 8)]), EMPTY),
    ],
)
@pytest.mark.parametrize("cycle", [36, 37, 38, 39, 40, 41])
def test_tia_write_delays(
    chips: ModuleType,
    register: int,
    value: int,
    delay: int,
    setup: dict,
    before: str,
    after: str,
    cycle: int,
) -> None:
    """Players are at 48, missile and ball at 47; the line shows `before` up to the write and
    `after` from then on."""
    screen = Screen(chips, setup)
    for reset in (RESP0, RESM0, RESBL):
        screen.at(0, 37, reset, LONG_AGO)
    screen.at(3, cycle, register, value)
    begin = 3 * cycle - 68 + delay
    assert screen.lines()[1:5] == [before, before, before[:begin] + after[begin:], after]


def test_tia_vblank_turns_the_beam_off_a_clock_late(chips: ModuleType) -> None:
    screen = Screen(chips, {PF0: 0x10})
    screen.at(1, 40, VBLANK, 2)
    screen.at(3, 60, VBLANK, 0)
    lit = line_of(pf=[(0, 4), (80, 4)])
    assert screen.lines() == [lit, lit[:53] + " " * 107, " " * 160, " " * 113 + lit[113:], lit, lit]


def test_tia_vblank_is_bit_1(chips: ModuleType) -> None:
    assert Screen(chips, {VBLANK: 0xC1}).lines() == [EMPTY] * LINES


def test_tia_picture_has_no_pixels_outside_of_its_lines(chips: ModuleType) -> None:
    screen = Screen(chips)
    for line in range(-FIRST_LINE + 1, LINES + 3):
        screen.at(line, 30, COLUBK, 0x6C if line in (-1, LINES) else 0x8E)
    assert screen.lines() == ["f" * 22 + "." * 138, *[EMPTY] * (LINES - 1)]
