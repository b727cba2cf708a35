"""The console around the chips: WSYNC, input ports, and collisions read in the middle of a frame.

Source: Stella Programmer's Guide ("WSYNC", "INPT0"). How paddles charge is ale-py's.
"""

from types import ModuleType

import pytest

from tests.support.registers import (  # isort: skip
    VSYNC, VBLANK, WSYNC, COLUBK, PF0, RESP0, GRP0, HMM0, HMOVE, HMCLR, CXCLR, CXP0FB, INPT0,
    INPT1, INPT4, INPT5, SWCHA, SWCHB,
)  # fmt: skip
from console_on_bus import CORES, console_with, run_to_end_of_program

# ---- WSYNC


@pytest.mark.parametrize(("cycle", "after"), [(1, 76), (75, 76), (76, 76), (77, 152), (760, 760)])
def test_bus_wsync_halts_to_the_end_of_the_line(chips: ModuleType, cycle: int, after: int) -> None:
    console = console_with(chips)
    console.cycle = cycle
    console.write(WSYNC, 0)
    assert console.cycle == after
    console.cycle = cycle
    console.write_after_write(WSYNC, 0)
    assert console.cycle == cycle


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("s", "cycle"), [(0x03, 6), (0x02, 76)])
def test_bus_wsync_by_a_push_after_a_push_does_not_halt(
    chips: ModuleType, core: str, s: int, cycle: int
) -> None:
    """With the stack over the TIA, JSR pushes its second byte to WSYNC, or its first."""
    console = console_with(chips, [0x20, 0x00, 0xF1])
    console.s = s
    console.step(core)
    assert (console.pc, console.cycle) == (0xF100, cycle)


@pytest.mark.parametrize("core", CORES)
def test_bus_wsync_aligns_the_instructions_after_it(chips: ModuleType, core: str) -> None:
    console = console_with(
        chips, [0xEA, 0x85, 0x02, 0x85, 0x09, 0x85, 0x02, 0x85, 0x02, 0x85, 0x08]
    )
    console.a = 0x44
    run_to_end_of_program(console, 6, core)
    assert console.recorded() == [(76 + 3, COLUBK, 0x44), (3 * 76 + 3, 0x08, 0x44)]


@pytest.mark.parametrize("register", range(0x2D))
def test_bus_tia_writes_that_change_nothing_are_not_recorded(
    chips: ModuleType, register: int
) -> None:
    strobes = (*range(0x10, 0x15), HMOVE, CXCLR)
    recorded = chips.is_recorded(register) and register != HMCLR  # there is nothing to clear
    console = console_with(chips)
    console.write(register, 0x00)
    assert len(console.recorded()) == (register in strobes)
    console.write(register, 0xFF)
    console.write(register, 0xFF)
    assert len(console.recorded()) == (3 if register in strobes else recorded)
    console.write(register, 0x00)
    assert len(console.recorded()) == (4 if register in strobes else 2 * recorded)


def test_bus_motion_is_cleared_once(chips: ModuleType) -> None:
    console = console_with(chips)
    for register in (HMM0, HMCLR, HMCLR):
        console.write(register, 0x30)
    assert [register for _, register, _ in console.recorded()] == [HMM0, HMCLR]


@pytest.mark.parametrize(("which", "other"), [(0, 1), (1, 0)])
def test_bus_graphics_that_repeat_matter_where_the_other_players_have_changed(
    chips: ModuleType, which: int, other: int
) -> None:
    """A write of the same graphics also copies the other player's to its old ones, which VDELPx
    shows."""
    console = console_with(chips)
    console.write(GRP0 + which, 0x55)
    console.write(GRP0 + other, 0x66)
    written = len(console.recorded())
    console.write(GRP0 + which, 0x55)
    console.write(GRP0 + which, 0x55)
    assert len(console.recorded()) == written + 1


# ---- Input ports


def test_bus_joystick_buttons_and_switches(chips: ModuleType) -> None:
    console = console_with(chips)
    console.bus = 0
    console.set_inputs(swcha=0x7B, swchb=0xC8, inpt4=0x80, inpt5=0)
    assert [console.read(SWCHA), console.read(SWCHB)] == [0x7B, 0xC8]
    console.bus = 0
    assert [console.read(INPT4), console.read(INPT5)] == [0x80, 0x00]


def test_bus_inpt_wiring(chips: ModuleType) -> None:
    """Each port has four bits: 0 is never charged, 1 is always charged, 2 and 3 are the paddles."""
    console = console_with(chips, inpt_wiring=0x0101)
    for port, expected in enumerate([0x80, 0x00, 0x80, 0x00]):
        console.bus = 0
        assert console.read(INPT0 + port) == expected


@pytest.mark.parametrize("paddle", [0, 1])
def test_bus_paddle_charges_after_it_is_let_go(chips: ModuleType, paddle: int) -> None:
    console = console_with(chips, inpt_wiring=0x3232)
    console.set_inputs(charge0=500, charge1=900)
    needed = (500, 900)[paddle]
    console.begin_frame()

    def read_at(cycle: int) -> list[int]:
        console.cycle = cycle
        console.bus = 0
        return [console.read(INPT0 + paddle), console.read(INPT0 + paddle + 2)]

    console.cycle = 100
    console.write(VBLANK, 0x82)
    assert read_at(5000) == [0, 0]  # held at ground
    console.write(VBLANK, 0x02)
    assert read_at(5000 + needed) == [0, 0]
    assert read_at(5000 + needed + 1) == [0x80, 0x80]
    console.write(VBLANK, 0x00)  # not discharged again
    assert read_at(5000 + needed + 2) == [0x80, 0x80]


def test_bus_paddle_without_resistance_reads_charged(chips: ModuleType) -> None:
    console = console_with(chips, inpt_wiring=0x0032)
    console.set_inputs(charge0=0, charge1=1000)
    console.write(VBLANK, 0x80)
    console.bus = 0
    assert [console.read(INPT0), console.read(INPT1)] == [0x80, 0x00]


@pytest.mark.parametrize(
    ("needed", "charged"), [(200, False), (299, False), (301, True), (500, True)]
)
def test_bus_paddle_let_go_in_an_earlier_frame(
    chips: ModuleType, needed: int, charged: bool
) -> None:
    """Charging began 300 cycles before the frame.

    A paddle that is charged since then reads as not charged, as in ale-py.
    """
    console = console_with(chips, inpt_wiring=0x0002)
    console.set_inputs(charge0=needed)
    console.begin_frame()
    console.write(VBLANK, 0x80)
    console.cycle = 7600 - 300
    console.write(VBLANK, 0)
    console.write(VSYNC, 2)
    console.cycle = 7600
    console.write(VSYNC, 0)
    console.finish_frame()
    console.begin_frame()
    assert console.cycle == 0
    console.cycle = 15000
    console.bus = 0
    assert console.read(INPT0) == (0x80 if charged else 0)


@pytest.mark.parametrize(
    ("ohms", "cycles"), [(0, 0), (27450, 522), (408823, 7783), (790196, 15045)]
)
def test_bus_charge_cycles(chips: ModuleType, ohms: int, cycles: int) -> None:
    """1.6 R C at 1.19 MHz, with 0.01 microfarad: 0.01904 cycles an ohm."""
    assert chips.charge_cycles(ohms) == cycles


# ---- Collisions, read in the middle of a frame


def test_bus_collisions_are_those_up_to_the_read(chips: ModuleType) -> None:
    console = console_with(chips)  # visible from line 4 on
    console.begin_frame()
    for register, value in ((GRP0, 0xFF), (PF0, 0xF0), (RESP0, 0)):
        console.write(register, value)
    console.cycle = 4 * 76 + 10
    console.bus = 0
    assert console.read(CXP0FB) == 0x00  # in the blank of the first line
    console.cycle = 5 * 76 + 60
    console.bus = 0
    assert console.read(CXP0FB) == 0x80
    console.write(CXCLR, 0)
    console.bus = 0
    assert console.read(CXP0FB) == 0x00
    console.cycle = 6 * 76 + 60
    console.bus = 0
    assert console.read(CXP0FB) == 0x80
