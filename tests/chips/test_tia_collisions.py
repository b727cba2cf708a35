"""The TIA's collision latches.

Source: Stella Programmer's Guide.
"""

from types import ModuleType

import pytest
from tia_screen import AT_LEFT, LONG_AGO, Screen

from tests.support.registers import (  # isort: skip
    VBLANK, NUSIZ0, NUSIZ1, CTRLPF, PF0, RESP0, RESP1, RESM0, RESM1, RESBL, GRP0, GRP1, ENAM0,
    ENAM1, ENABL, HMP0, HMOVE, CXCLR, CXM0P, CXM1P, CXP0FB, CXP1FB, CXM0FB, CXM1FB, CXBLPF,
    CXPPMM, TOUCH,
)  # fmt: skip

P0, P1, M0, M1, BL, PF = range(6)
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
    """Two objects are next to each other, and do not collide; one pixel nearer, they do."""
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
