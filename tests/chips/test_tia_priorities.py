"""Which object of the TIA is in front when several overlap, and in which color.

Source: Stella Programmer's Guide (CTRLPF).
"""

from types import ModuleType

from tia_screen import AT_LEFT, LINES, OVERLAP, Screen, line_of

from tests.support.registers import CTRLPF, ENABL, ENAM0, ENAM1, NUSIZ0, NUSIZ1, PF0


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
