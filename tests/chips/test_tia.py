"""The TIA's picture and collision latches, from writes at given cycles, against pictures written by
hand.

Sources: Stella Programmer's Guide (registers, NUSIZ, priorities, collisions); Andrew Towers, "Atari
2600 TIA Hardware Notes" (HMOVE's pulses). Where an object appears after RESxx, when a write takes
effect, and how much remains of a player that is reset while it is drawn: these are ale-py's.
"""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.registers import (  # isort: skip
    VSYNC, VBLANK, WSYNC, RSYNC, NUSIZ0, NUSIZ1, COLUP0, COLUP1, COLUPF, COLUBK, CTRLPF, REFP0,
    REFP1, PF0, PF1, PF2, RESP0, RESP1, RESM0, RESM1, RESBL, AUDC0, AUDV1, GRP0, GRP1, ENAM0,
    ENAM1, ENABL, HMP0, HMP1, HMM0, HMM1, HMBL, VDELP0, VDELBL, RESMP0, HMOVE, HMCLR, CXCLR,
    CXM0P, CXM1P, CXP0FB, CXP1FB, CXM0FB, CXM1FB, CXBLPF, CXPPMM, FRAME_BEGIN, TOUCH, GREY_OUT,
    FRAME_END,
)  # fmt: skip

FIRST_LINE, LINES = 10, 6
COLORS = {COLUP0: 0x24, COLUP1: 0x48, COLUPF: 0x6C, COLUBK: 0x8E}
LETTERS = {0x24: "0", 0x48: "1", 0x6C: "f", 0x8E: ".", 0x00: " "}  # blank: the beam is off
LONG_AGO = 255  # cycles since HMOVE, which RESxx entries carry
P0, P1, M0, M1, BL, PF = range(6)


class Screen:
    """A TIA with `LINES` visible lines; `setup` writes before the first of them, `at` writes at a
    line's cycle."""

    def __init__(
        self, chips: ModuleType, setup: dict[int, int] | None = None, **options: Any
    ) -> None:
        self.tia = chips.Tia(first_line=FIRST_LINE, lines=LINES, **options)
        self.now = 0
        self.tia.write(0, FRAME_BEGIN, 0)
        self.setup(COLORS | (setup or {}))

    def setup(self, writes: dict[int, int]) -> None:
        for register, value in writes.items():
            self.now += 3
            if RESP0 <= register <= RESBL:
                self.now += -self.now % 76  # in the blank
            assert self.now < FIRST_LINE * 76
            self.tia.write(self.now, register, value)

    def at(self, line: int, cycle: int, register: int, value: int = 0) -> None:
        now = (FIRST_LINE + line) * 76 + cycle
        assert now >= self.now, "writes go in the order of time"
        self.now = now
        self.tia.write(now, register, value)

    def lines(self) -> list[str]:
        """The finished picture, one letter a pixel."""
        self.tia.write((FIRST_LINE + LINES + 1) * 76, TOUCH, 0)
        return ["".join(LETTERS[color] for color in row) for row in self.tia.picture().tolist()]


def line_of(**objects: list[tuple[int, int]]) -> str:
    """A line of background with runs (start, width): p0, p1, pf. Earlier ones are in front."""
    pixels = ["."] * 160
    for name, runs in reversed(objects.items()):
        for start, width in runs:
            for x in range(start, start + width):
                pixels[x % 160] = {"p0": "0", "p1": "1", "pf": "f", "dark": " "}[name]
    return "".join(pixels)


EMPTY = "." * 160
# Players at 3, missiles and ball at 2: RESxx in the blank. Writing NUSIZx afterwards lets first
# copies show at once.
AT_LEFT = {
    RESP0: LONG_AGO,
    RESP1: LONG_AGO,
    RESM0: LONG_AGO,
    RESM1: LONG_AGO,
    RESBL: LONG_AGO,
    NUSIZ0: 0,
    NUSIZ1: 0,
}


def test_tia_background_fills_the_picture(chips: ModuleType) -> None:
    assert Screen(chips).lines() == [EMPTY] * LINES


# ---- Playfield


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


# ---- Priorities

OVERLAP = AT_LEFT | {
    GRP0: 0xFF,
    GRP1: 0xFF,
    NUSIZ1: 0x05,
    PF0: 0xF0,
}  # P0 3-10, P1 4-19, playfield 0-15 and 80-95


def test_tia_players_are_in_front_of_the_playfield(chips: ModuleType) -> None:
    assert (
        Screen(chips, OVERLAP).lines()
        == ["fff00000000111111111" + "." * 60 + "f" * 16 + "." * 64] * LINES
    )


def test_tia_priority_puts_the_playfield_in_front(chips: ModuleType) -> None:
    assert (
        Screen(chips, OVERLAP | {CTRLPF: 4}).lines()
        == ["f" * 16 + "1111" + "." * 60 + "f" * 16 + "." * 64] * LINES
    )


def test_tia_score_keeps_players_in_front(chips: ModuleType) -> None:
    expected = "00000000000000001111" + "." * 60 + "1" * 16 + "." * 64
    assert Screen(chips, OVERLAP | {CTRLPF: 2}).lines() == [expected] * LINES


def test_tia_priority_beats_score(chips: ModuleType) -> None:
    assert (
        Screen(chips, OVERLAP | {CTRLPF: 6}).lines()
        == ["f" * 16 + "1111" + "." * 60 + "f" * 16 + "." * 64] * LINES
    )


def test_tia_score_beats_priority_for_a_playfield_alone(chips: ModuleType) -> None:
    assert (
        Screen(chips, {PF0: 0xF0, CTRLPF: 6}).lines()
        == [line_of(p0=[(0, 16)], p1=[(80, 16)])] * LINES
    )


def test_tia_missiles_have_their_players_colors_and_the_ball_the_playfields(
    chips: ModuleType,
) -> None:
    screen = Screen(
        chips, AT_LEFT | {ENAM0: 2, ENAM1: 2, ENABL: 2, NUSIZ0: 0x10, NUSIZ1: 0x20, CTRLPF: 0x30}
    )
    assert screen.lines() == ["..0011ffff" + "." * 150] * LINES
    screen = Screen(
        chips, AT_LEFT | {ENAM0: 2, ENAM1: 2, ENABL: 2, NUSIZ0: 0x10, NUSIZ1: 0x20, CTRLPF: 0x14}
    )
    assert screen.lines() == ["..ff11...." + "." * 150] * LINES


# ---- Players


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("reflected", [False, True])
def test_tia_player_graphics(chips: ModuleType, which: int, reflected: bool) -> None:
    screen = Screen(chips, AT_LEFT | {GRP0 + which: 0b11010001, REFP0 + which: 8 * reflected})
    shape = "#...#.##" if reflected else "##.#...#"
    assert screen.lines() == ["..." + shape.replace("#", str(which)) + "." * 149] * LINES


# NUSIZ: the copies' distances, and the stretch.
COPIES = {
    0: [0],
    1: [0, 16],
    2: [0, 32],
    3: [0, 16, 32],
    4: [0, 64],
    5: [0],
    6: [0, 32, 64],
    7: [0],
}


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
    """RESPx at cycle c: pixel 3c - 63; the first copy shows from the next line on."""
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


# ---- Missiles and the ball


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
    """RESxx at cycle c: pixel 3c - 64, and 2 in the blank."""
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


# ---- HMOVE

LEFT_BY_MOTION = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    -8,
    -7,
    -6,
    -5,
    -4,
    -3,
    -2,
    -1,
]  # the Programmer's Guide's table


def hmove_of_pulses(cycle: int, motion: int) -> int:
    """Pixels to the right, after Towers: pulses come 4 clocks apart and count while the beam is in
    the blank."""
    pulses = [3 * cycle + 9 + 4 * i for i in range(motion ^ 8)]
    if cycle == 75:
        return 8 - len(pulses)  # the whole next blank is there for them
    if cycle <= 20:  # this blank, which HMOVE prolongs by 8 clocks
        return 8 - sum(clock < 68 + 8 for clock in pulses)
    return -sum(
        clock >= 228 for clock in pulses
    )  # those that come in the next blank, which is not prolonged


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
    """Eight black pixels where HMOVE comes in the blank; on the line's last cycle it counts for the
    next line."""
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
    """HMM0 from 7 to 6, 21 cycles after HMOVE: missile 0 goes by itself, 68 pixels to the left in
    four lines."""
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


# ---- When writes take effect


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


# ---- Collisions

# Register of CXM0P to CXPPMM and bit, by pair of objects, as in the Programmer's Guide.
LATCHES = {
    (M0, P1): (CXM0P, 0x80), (M0, P0): (CXM0P, 0x40), (M1, P0): (CXM1P, 0x80),
    (M1, P1): (CXM1P, 0x40),
    (P0, PF): (CXP0FB, 0x80), (P0, BL): (CXP0FB, 0x40), (P1, PF): (CXP1FB, 0x80),
    (P1, BL): (CXP1FB, 0x40),
    (M0, PF): (CXM0FB, 0x80), (M0, BL): (CXM0FB, 0x40), (M1, PF): (CXM1FB, 0x80),
    (M1, BL): (CXM1FB, 0x40),
    (BL, PF): (CXBLPF, 0x80), (P0, P1): (CXPPMM, 0x80), (M0, M1): (CXPPMM, 0x40),
}  # fmt: skip
SHOW = {
    P0: (GRP0, 0xFF),
    P1: (GRP1, 0xFF),
    M0: (ENAM0, 2),
    M1: (ENAM1, 2),
    BL: (ENABL, 2),
    PF: (PF0, 0x10),
}
WIDE = AT_LEFT | {
    NUSIZ0: 0x30,
    NUSIZ1: 0x30,
    CTRLPF: 0x30,
}  # players 3-10, missiles and ball 2-9, playfield 0-3


def registers(screen: Screen) -> list[int]:
    screen.lines()
    assert screen.tia.collisions == screen.tia.collisions_unseen
    return [screen.tia.collision_register(register) for register in range(8)]


def test_tia_collision_table_has_all_pairs() -> None:
    assert len(LATCHES) == len(set(LATCHES.values())) == 15
    assert {frozenset(pair) for pair in LATCHES} == {
        frozenset((a, b)) for a in range(6) for b in range(a)
    }


@pytest.mark.parametrize("pair", LATCHES)
def test_tia_collision_of_two_objects_sets_their_latch_only(
    chips: ModuleType, pair: tuple[int, int]
) -> None:
    screen = Screen(chips, WIDE | dict(SHOW[which] for which in pair))
    register, bit = LATCHES[pair]
    assert registers(screen) == [bit if i == register else 0 for i in range(8)]


@pytest.mark.parametrize("pair", LATCHES)
def test_tia_collision_needs_a_common_pixel(chips: ModuleType, pair: tuple[int, int]) -> None:
    """One of the two is next to the other; then it is one pixel nearer."""
    mover, other = pair if pair[1] == PF else pair[::-1]
    last = {P0: 10, P1: 10, M0: 9, M1: 9, BL: 9, PF: 7}[other]
    start = 6 if mover in (P0, P1) else 5  # RESxx at cycle 23
    register, bit = LATCHES[pair]
    for gap, expected in ((1, 0), (0, bit)):
        motion = (16 - (last + gap - start)) << 4
        screen = Screen(
            chips, WIDE | dict(SHOW[which] for which in pair) | {PF0: 0x30 * (other == PF)}
        )
        screen.at(-3, 23, RESP0 + mover, LONG_AGO)
        screen.at(-2, 0, HMP0 + mover, motion)
        screen.at(-2, 3, HMOVE)
        screen.at(-1, 0, NUSIZ0, 0x30)
        screen.at(-1, 0, NUSIZ1, 0x30)
        assert screen.tia.positions[mover] == last + gap
        assert registers(screen) == [expected if i == register else 0 for i in range(8)]


def test_tia_all_objects_in_one_place_set_all_latches(chips: ModuleType) -> None:
    screen = Screen(chips, WIDE | dict(SHOW.values()))
    assert registers(screen) == [0xC0, 0xC0, 0xC0, 0xC0, 0xC0, 0xC0, 0x80, 0xC0]


def test_tia_objects_apart_do_not_collide(chips: ModuleType) -> None:
    screen = Screen(chips, WIDE)
    for line, cycle, register in (
        (0, 24, RESP0),
        (0, 30, RESP1),
        (0, 40, RESM0),
        (0, 50, RESM1),
        (0, 60, RESBL),
    ):
        screen.at(line, cycle, register, LONG_AGO)
    for register, value in SHOW.values():
        screen.at(1, 0, register, value)
    assert registers(screen) == [0] * 8
    # P0 9-16, P1 27-34, M0 56-63, M1 86-93, ball 116-123, playfield 0-3 and 80-83
    assert screen.tia.positions == [9, 27, 56, 86, 116]


def test_tia_collisions_do_not_happen_in_vblank(chips: ModuleType) -> None:
    screen = Screen(chips, WIDE | dict(SHOW.values()) | {VBLANK: 2})
    assert registers(screen) == [0] * 8


def test_tia_cxclr_clears_the_latches(chips: ModuleType) -> None:
    screen = Screen(chips, WIDE | dict(SHOW.values()))
    screen.at(2, 40, CXCLR)
    assert screen.tia.collisions == 0
    assert screen.tia.collisions_unseen == 0
    screen.at(2, 75, TOUCH)
    assert screen.tia.collisions == 0  # they overlap at the left only
    screen.at(3, 30, TOUCH)
    assert screen.tia.collisions == 0x7FFF


def test_tia_collisions_happen_where_the_beam_is(chips: ModuleType) -> None:
    screen = Screen(chips, AT_LEFT | {GRP0: 0x01, PF0: 0x40})  # P0's pixel 10, playfield 8-11
    screen.at(0, 26, TOUCH)  # pixel 10 is not drawn yet
    assert screen.tia.collision_register(CXP0FB) == 0
    screen.at(0, 27, TOUCH)
    assert screen.tia.collision_register(CXP0FB) == 0x80


def test_tia_collisions_under_the_comb_count(chips: ModuleType) -> None:
    screen = Screen(chips, WIDE | dict([SHOW[M0], SHOW[BL]]))
    screen.at(0, 0, CXCLR)
    screen.at(0, 3, HMOVE)
    screen.at(1, 0, VBLANK, 2)
    assert registers(screen)[CXM0FB] == 0x40


@pytest.mark.parametrize("wanted", ["all", "some", "one"])
def test_tia_collisions_that_nobody_sees_are_those_of_every_pixel(
    chips: ModuleType, wanted: str
) -> None:
    """A search against a look at each pixel: states, writes and pieces between them at random.

    Where few latches are wanted, most writes are of no interest.
    """
    rng = np.random.default_rng(["all", "some", "one"].index(wanted))
    registers = [*range(NUSIZ0, COLUP0), *range(CTRLPF, AUDC0), *range(GRP0, CXCLR + 1), TOUCH]
    latched = 0
    for seed in range(600):
        collisions = chips.Collisions(seed)
        cycle = 0
        for _ in range(60):
            gap = rng.choice([1, 3, 5, 14, 76, 230], p=[0.1, 0.4, 0.3, 0.14, 0.04, 0.02])
            cycle += int(gap)
            some = int(rng.integers(1, 0x8000) & rng.integers(1, 0x8000))
            one = 1 << int(rng.integers(15))
            mask = {"all": 0x7FFF, "some": some, "one": one}[wanted]
            register = int(rng.choice(registers))
            value = int(rng.integers(0, 256)) if rng.random() < 0.8 else 0
            is_strobe = register in (RESP0, RESP1, RESM0, RESM1, RESBL)
            collisions.write(cycle, register, LONG_AGO if is_strobe else value)
            assert collisions.find(mask) == collisions.expected & mask
            latched |= collisions.expected & mask
    assert latched == 0x7FFF


def test_tia_collisions_of_whole_lines_are_those_of_every_pixel(chips: ModuleType) -> None:
    """Lines at random without a write on them, which are looked at in one piece; HMOVE in between."""
    for seed in range(1000, 1400):
        collisions = chips.Collisions(seed)
        for line in range(6):
            collisions.write(76 * line + 75, CXCLR, 0)
            collisions.write(76 * line + 151, TOUCH, 0)
            assert collisions.find(0x7FFF) == collisions.expected
            collisions.write(76 * line + 151, HMOVE, 0)


# ---- The state as of the last write, before the beam is there


def random_write(rng: np.random.Generator) -> tuple[int, int]:
    """A register that is recorded and a value; small ones, and ones that repeat, among them."""
    register = int(rng.choice([VBLANK, *range(NUSIZ0, AUDC0), *range(GRP0, CXCLR + 1)]))
    value = (
        int(rng.integers(0, 256))
        if rng.random() < 0.7
        else int(rng.choice([0, 2, 0x10, 0x30, 0x70]))
    )
    if register == HMM0:
        value = int(rng.choice([0x70, 0x61, 0x60, 0x20]))
    return register, LONG_AGO if register in (RESM0, RESM1, RESBL) else value


def test_tia_beam_moves_as_it_draws(chips: ModuleType) -> None:
    """Past any number of lines at once, from any place, on its own or in two goes."""
    rng = np.random.default_rng(1)
    for seed in range(300):
        eager = chips.Eager(seed)
        for clock in sorted(rng.integers(0, 220 * 228, 12).tolist()):
            for ahead in (
                0,
                1,
                67,
                68,
                75,
                76,
                227,
                228,
                229,
                456,
                457,
                *rng.integers(0, 60_000, 8).tolist(),
            ):
                between = eager.cursor + int(rng.integers(0, ahead + 1))
                assert eager.moves_as_it_draws(eager.cursor + ahead, between)
            eager.mark(clock // 3, TOUCH, 0)
            eager.write(clock // 3, *random_write(rng))


def test_tia_writes_that_take_effect_at_once_leave_what_a_replay_leaves(chips: ModuleType) -> None:
    rng = np.random.default_rng(2)
    changed = kept = 0
    for seed in range(500):
        eager, cycle = chips.Eager(seed), 0
        for _ in range(150):
            cycle += int(
                rng.choice([0, 3, 5, 14, 76, 230, 2000], p=[0.05, 0.45, 0.3, 0.1, 0.06, 0.03, 0.01])
            )
            if eager.write(cycle, *random_write(rng)):
                changed += 1
            else:
                kept += 1
            assert eager.agrees()
    assert min(changed, kept) > 5_000


def test_tia_every_value_of_a_field_takes_effect_at_once(chips: ModuleType) -> None:
    """All values of all registers but strobes, on random states."""
    for register in (VBLANK, *range(NUSIZ0, RESP0), *range(GRP0, HMOVE)):
        eager = chips.Eager(register)
        for value in range(256):
            eager.write(100 + value, register, value & 0xF0 if register == HMM0 else value)
            assert eager.agrees()


@pytest.mark.parametrize("dense", [False, True])
def test_tia_latches_are_found_when_they_are_read(chips: ModuleType, dense: bool) -> None:
    """The search through segments against a replay of all entries: random programs, latches read at
    any time."""
    rng = np.random.default_rng(3 + dense)
    read = 0
    for _ in range(60):
        console = chips.Console("4K", bytes(4096), first_line=6, lines=200)
        tia = chips.Tia(first_line=6, lines=200)
        fed, cycle, known = 0, 0, int(rng.integers(1, 256))
        console.begin_frame()
        for _ in range(400):
            cycle += int(rng.choice([3, 5, 14, 76, 230], p=[0.3, 0.2, 0.2, 0.2, 0.1]))
            console.cycle = cycle
            kind = rng.random()
            if cycle > 230 * 76:
                console.write(VSYNC, 2)
                console.cycle = cycle + 100
                console.write(VSYNC, 0)
                console.finish_frame()
                console.begin_frame()
                cycle = console.cycle
            elif kind < (0.3 if dense else 0.02):
                entries = console.recorded()
                for entry in entries[fed:]:
                    tia.write(*entry)
                fed = len(entries)
                tia.write(cycle, TOUCH, 0)
                register = int(rng.choice([number for number in range(8) if known >> number & 1]))
                console.bus = 0
                found = console.read(register)
                assert found == tia.collision_register(register)
                read += found != 0
            else:
                register, value = random_write(rng)
                if register == CXCLR and rng.random() < 0.8:
                    continue
                if register == VBLANK:
                    value &= 0xFD if rng.random() < 0.8 else 0xFF
                console.write(register, value)
    assert read > 50


# ---- Frames


def test_tia_frames_alternate_between_two_pictures(chips: ModuleType) -> None:
    screen = Screen(chips)
    assert screen.lines() == [EMPTY] * LINES
    screen.tia.write(0, FRAME_BEGIN, 0)
    screen.tia.write(1, COLUBK, 0x6C)
    screen.tia.write((FIRST_LINE + LINES + 1) * 76, TOUCH, 0)
    assert (screen.tia.picture() == 0x6C).all()
    assert (screen.tia.picture(back=True) == 0x8E).all()


def test_tia_grey_out_keeps_the_luminance_below_the_line(chips: ModuleType) -> None:
    screen = Screen(chips, {PF0: 0x10})
    lit = screen.lines()
    screen.tia.write((FIRST_LINE + 2) * 76 + 30, GREY_OUT, 0)
    picture = screen.tia.picture()
    assert ["".join(LETTERS[color] for color in row) for row in picture[:2].tolist()] == lit[:2]
    grey = {".": 0x0E >> 1, "f": 0x0C >> 1}
    assert picture[2:].tolist() == [[grey[letter] for letter in lit[0]]] * (LINES - 2)


def test_tia_grey_out_above_the_picture_takes_all_of_it(chips: ModuleType) -> None:
    screen = Screen(chips)
    screen.lines()
    screen.tia.write(10, GREY_OUT, 0)
    assert (screen.tia.picture() == 0x07).all()


def test_tia_color_loss_sets_bit_0(chips: ModuleType) -> None:
    """On PAL, after a frame with an odd number of scanlines; odd colors are shades of grey."""
    screen = Screen(chips, OVERLAP)
    plain = screen.lines()
    screen.tia.write(0, FRAME_BEGIN, 1)
    screen.tia.write((FIRST_LINE + 1) * 76, COLUBK, 0x31)
    screen.tia.write((FIRST_LINE + 2) * 76, COLUBK, 0x8E)
    screen.tia.write((FIRST_LINE + LINES + 1) * 76, TOUCH, 0)
    code = {letter: color | 1 for color, letter in LETTERS.items()}
    lost = [[code[letter] for letter in line] for line in plain]
    lost[1] = [0x31 if color == 0x8F else color for color in lost[1]]
    assert screen.tia.picture().tolist() == lost
    screen.tia.write(0, FRAME_BEGIN, 0)
    assert screen.lines() == plain


def test_tia_colors_have_no_bit_0(chips: ModuleType) -> None:
    screen = Screen(chips, {COLUBK: 0x8F})
    assert screen.lines() == [EMPTY] * LINES


def test_tia_frame_end_mark_changes_nothing(chips: ModuleType) -> None:
    screen = Screen(chips, OVERLAP)
    before = screen.lines()
    screen.tia.write(0, FRAME_END, 0xFF)
    assert screen.lines() == before


# ---- Representation


def test_tia_words_of_32_and_of_64_pixels_agree(chips: ModuleType) -> None:
    """A GPU thread's drawing functions against the CPU's, over many settings and positions."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        screen = Screen(chips)
        resets = sorted(zip(rng.integers(0, 76, 5).tolist(), range(RESP0, RESBL + 1), strict=True))
        for cycle, register in resets:
            screen.at(0, cycle, register, LONG_AGO)
        for register in (NUSIZ0, NUSIZ1, CTRLPF, PF0, PF1, PF2, GRP0, GRP1, REFP0, REFP1):
            screen.at(1, 0, register, int(rng.integers(0, 256)))
        for register in (ENAM0, ENAM1, ENABL):
            screen.at(1, 0, register, 2)
        for which in range(6):
            bits = screen.tia.object_bits_64(which)
            assert bits == screen.tia.object_bits_32(which)
            assert len(bits) == 160


def test_tia_entries_hold_cycle_register_and_value(chips: ModuleType) -> None:
    for cycle in (0, 1, 75, 76, 19912, 262143):
        for register, value in ((0x00, 0xFF), (0x2C, 0x00), (0x33, 0xA5)):
            assert chips.entry(cycle, register, value) == (cycle, register, value)


def test_tia_entries_too_late_keep_their_place_in_the_line(chips: ModuleType) -> None:
    for cycle in range(262144, 262144 + 300):
        kept, register, value = chips.entry(cycle, 0x1B, 0x3C)
        assert (kept % 76, register, value) == (cycle % 76, 0x1B, 0x3C)
        assert 262143 - 152 <= kept <= 262143


def test_tia_only_writes_that_can_change_a_picture_are_recorded(chips: ModuleType) -> None:
    left_out = {VSYNC, WSYNC, RSYNC, *range(AUDC0, AUDV1 + 1), *range(0x2D, 0x40)}
    assert [register for register in range(64) if not chips.is_recorded(register)] == sorted(
        left_out
    )
