"""The console around the chips: address decoding, the data bus, WSYNC, VSYNC, input ports, and how
a frame ends.

Source: Stella Programmer's Guide ("Memory map", "WSYNC", "VSYNC", "INPT0"). When a frame ends and
how paddles charge are ale-py's: VSYNC must have been on for 76 cycles, a TIA write beyond the limit
of scanlines ends the frame, and so do 25,000 instructions.
"""

from types import ModuleType
from typing import Any

import pytest

from tests.support.registers import (  # isort: skip
    VSYNC, VBLANK, WSYNC, COLUBK, PF0, PF1, RESP0, RESM0, RESM1, RESBL, GRP0, HMM0, HMOVE,
    HMCLR, CXCLR, CXP0FB, INPT0, INPT1, INPT4, INPT5, SWCHA, SWACNT, SWCHB, INTIM, TIM64T,
    T1024T, FRAME_BEGIN, TOUCH, GREY_OUT, FRAME_END,
)  # fmt: skip

CORES = ["static", "dynamic"]
FAULT_JAM, FAULT_BUFFER_FULL = 1, 2


def console_with(chips: ModuleType, program: list[int] | None = None, **options: Any) -> Any:
    """A console with a 4K cartridge that holds `program` at $F000, where it starts, and NOPs."""
    image = bytearray([0xEA] * 4096)
    image[: len(program or [])] = bytes(program or [])
    image[0xFFC:0x1000] = [0x00, 0xF0, 0x00, 0xF0]
    return chips.Console("4K", bytes(image), **options)


def run_to_end_of_program(console: Any, instructions: int, core: str) -> None:
    for _ in range(instructions):
        console.step(core)


# ---- Address decoding


def decodes_to(address: int) -> str:
    """By the board's wiring: A12, then A7, then A9."""
    if address & 0x1000:
        return "cartridge"
    if not address & 0x80:
        return "tia"
    return "riot" if address & 0x200 else "ram"


def test_bus_ram_shows_at_all_its_mirrors(chips: ModuleType) -> None:
    console = console_with(chips)
    mirrors = [address for address in range(0, 0x10000, 0x80) if decodes_to(address) == "ram"]
    assert len(mirrors) == 64
    assert mirrors[:4] == [0x80, 0x180, 0x480, 0x580]
    for number, base in enumerate(mirrors):
        console.write(base + 5, number)
        assert console.ram[5] == number
        assert {console.read(other + 5) for other in mirrors} == {number}
    assert sum(console.ram) == 63


def test_bus_ram_has_128_different_bytes(chips: ModuleType) -> None:
    console = console_with(chips)
    for i in range(128):
        console.write(0x80 + i, i ^ 0x5A)
    assert [console.read(0x180 + i) for i in range(128)] == [i ^ 0x5A for i in range(128)]


def test_bus_tia_shows_at_all_its_mirrors(chips: ModuleType) -> None:
    console = console_with(chips)
    console.set_inputs(inpt4=0)
    for base in range(0, 0x10000, 0x40):
        if decodes_to(base) != "tia":
            continue
        value = base // 0x40 % 255 + 1  # never what the register has
        console.write(base + PF1, value)
        assert console.recorded()[-1] == (0, PF1, value)
        for read in (base, base + 0x10, base + 0x30):  # reads see four address lines
            console.bus = 0
            assert (console.read(read + INPT4), console.read(read + INPT5)) == (0x00, 0x80)
    assert len(console.recorded()) == 16 * 8 // 2 * 4


def test_bus_riot_shows_at_all_its_mirrors(chips: ModuleType) -> None:
    console = console_with(chips)
    for base in range(0, 0x10000, 0x80):
        if decodes_to(base) != "riot":
            continue
        value = 0x10 + base // 0x80 % 64
        console.write(base + 1, value)
        assert console.read(SWACNT) == value
        console.write(base + 0x14, value)  # TIM1T
        console.cycle += 3
        assert console.read(base + 4) == value - 3
    assert sum(console.ram) == 0
    assert console.recorded() == []


def test_bus_cartridge_shows_wherever_a12_is_high(chips: ModuleType) -> None:
    console = console_with(chips, list(range(256)))
    for base in range(0x1000, 0x10000, 0x2000):
        assert [console.read(base + i) for i in range(256)] == list(range(256))


# ---- The data bus


@pytest.mark.parametrize("address", [*range(0x00, 0x08), INPT0, INPT4, INPT5, 0x0E, 0x0F])
def test_bus_tia_reads_keep_the_low_six_bits(chips: ModuleType, address: int) -> None:
    console = console_with(chips)
    console.set_inputs(inpt4=0, inpt5=0x80)
    driven = {INPT5: 0x80}.get(address, 0)
    for noise in (0x00, 0x15, 0x3F, 0xFF):
        console.bus = noise
        assert console.read(address) == driven | noise & 0x3F


def test_bus_holds_the_last_byte_read_or_written(chips: ModuleType) -> None:
    console = console_with(chips, [0x77])
    console.write(0x80, 0x2A)
    assert console.bus == 0x2A
    assert (console.read(0x80), console.bus) == (0x2A, 0x2A)
    assert (console.read(0x1000), console.bus) == (0x77, 0x77)
    assert (console.read(SWCHB), console.bus) == (0x3F, 0x3F)
    console.write(COLUBK, 0x44)
    assert console.bus == 0x44


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("code", "noise"),
    [
        ([0xA5, 0x0C], 0x0C),  # LDA zp: the operand byte
        ([0xAD, 0x0C, 0x25], 0x25),  # LDA abs: its high byte
        ([0xB5, 0x0C], 0x0C),
        ([0xA1, 0x80], 0x25),  # LDA (zp,X): the pointer's high byte
        ([0xB1, 0x80], 0x25),
    ],
)
def test_bus_noise_in_instructions(
    chips: ModuleType, core: str, code: list[int], noise: int
) -> None:
    console = console_with(chips, code)
    console.set_inputs(inpt4=0x80)
    console.write(0x80, 0x0C)
    console.write(0x81, 0x25)
    console.step(core)
    assert console.a == 0x80 | noise


@pytest.mark.parametrize("core", CORES)
def test_bus_code_runs_from_ram(chips: ModuleType, core: str) -> None:
    console = console_with(chips, [0x4C, 0x80, 0x00])  # JMP $0080
    for i, byte in enumerate(
        [0xA9, 0x5A, 0x85, 0x90, 0x4C, 0x10, 0xF0]
    ):  # LDA #$5A; STA $90; JMP $F010
        console.write(0x80 + i, byte)
    run_to_end_of_program(console, 4, core)
    assert (console.pc, console.ram[0x10]) == (0xF010, 0x5A)
    assert console.cycle == 3 + 2 + 3 + 3


@pytest.mark.parametrize("core", CORES)
def test_bus_instruction_across_two_slices(chips: ModuleType, core: str) -> None:
    """E0: its first byte is in slice 0 of the image, the others in slice 5."""
    image = bytearray(8192)
    image[0x3FF] = 0xAD  # LDA $00AB
    image[5 * 1024 : 5 * 1024 + 2] = [0xAB, 0x00]
    console = chips.Console("E0", bytes(image))
    console.read(0x1FE0)
    console.write(0xAB, 0x66)
    console.pc = 0xF3FF
    console.step(core)
    assert (console.pc, console.a) == (0xF402, 0x66)


@pytest.mark.parametrize("core", CORES)
def test_bus_rts_reads_the_byte_before_the_next_instruction(chips: ModuleType, core: str) -> None:
    """At a hot spot that switches banks."""
    image = bytearray([0x11] * 4096 + [0x22] * 4096)
    image[4096] = 0x60  # RTS
    console = chips.Console("F8", bytes(image))
    assert console.read(0xF100) == 0x22
    console.write(0xFE, 0xF8)
    console.write(0xFF, 0xFF)
    console.pc, console.s = 0xF000, 0xFD
    console.step(core)
    assert (console.pc, console.read(0xF100)) == (0xFFF9, 0x11)


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
    """JSR with the stack over the TIA: its second byte on WSYNC, or its first."""
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
    """They take over the other player's old graphics, which VDELPx shows."""
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
    """Four bits a port: 0 is never charged, 1 always, 2 and 3 are the paddles."""
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
    """Charging began 300 cycles before the frame. A paddle that has been charged since then reads
    as not charged, as in ale-py."""
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


# ---- What is recorded


def test_bus_resets_carry_the_cycles_since_hmove(chips: ModuleType) -> None:
    console = console_with(chips)
    console.cycle = 1000
    console.write(HMOVE, 0x77)
    for distance, register in ((3, RESM0), (20, RESM1), (254, RESBL), (255, RESBL), (5000, RESM0)):
        console.cycle = 1000 + distance
        console.write(register, 0x12)
    console.write(RESP0, 0x12)
    values = [value for _, _, value in console.recorded()]
    assert values == [0x77, 3, 20, 254, 255, 255, 0x12]


@pytest.mark.parametrize(("distance", "flag"), [(20, 0), (21, 1), (22, 0)])
def test_bus_hmm0_carries_whether_hmove_was_21_cycles_ago(
    chips: ModuleType, distance: int, flag: int
) -> None:
    console = console_with(chips)
    console.cycle = 500
    console.write(HMOVE, 0)
    console.cycle += distance
    console.write(HMM0, 0x6E)
    assert console.recorded()[-1] == (500 + distance, HMM0, 0x60 | flag)


def test_bus_full_buffer_is_a_fault(chips: ModuleType) -> None:
    console = console_with(chips, capacity=3)
    for value in (2, 4, 6):
        console.write(COLUBK, value)
    assert console.faults == 0
    console.write(COLUBK, 8)
    assert console.faults == FAULT_BUFFER_FULL
    assert [value for _, _, value in console.recorded()] == [2, 4, 6]


# ---- Frames


@pytest.mark.parametrize(("held", "ends"), [(75, False), (76, True), (77, True), (228, True)])
def test_bus_vsync_ends_the_frame_when_cleared_after_a_line(
    chips: ModuleType, held: int, ends: bool
) -> None:
    console = console_with(chips)
    console.begin_frame()
    console.cycle = 1000
    console.write(VSYNC, 0x02)
    console.cycle = 1000 + held
    assert not console.frame_ended
    console.write(VSYNC, 0x00)
    assert console.frame_ended == ends
    console.finish_frame()
    assert console.frame_open == (not ends)


def test_bus_vsync_set_again_starts_over(chips: ModuleType) -> None:
    console = console_with(chips)
    console.begin_frame()
    for cycle, value in ((1000, 0x02), (1070, 0xFF), (1140, 0xFD)):
        console.cycle = cycle
        console.write(VSYNC, value)
    assert not console.frame_ended  # 70 cycles since it was set last
    console.cycle = 1146
    console.write(VSYNC, 0x00)
    assert console.frame_ended


def test_bus_vsync_cleared_without_being_set_ends_nothing(chips: ModuleType) -> None:
    console = console_with(chips)
    console.begin_frame()
    console.cycle = 19000
    console.write(VSYNC, 0)
    assert not console.frame_ended


@pytest.mark.parametrize("limit", [290, 342])
def test_bus_frame_ends_at_the_line_limit_with_a_tia_write(chips: ModuleType, limit: int) -> None:
    console = console_with(chips, line_limit=limit)
    console.begin_frame()
    console.cycle = limit * 76 - 1
    console.write(COLUBK, 0)
    assert not console.frame_ended
    console.cycle = limit * 76
    console.write(0x80, 0)
    console.read(COLUBK)
    assert not console.frame_ended
    console.write(COLUBK, 0)
    assert console.frame_ended


@pytest.mark.parametrize("core", CORES)
def test_bus_frame_without_vsync_runs_to_the_line_limit(chips: ModuleType, core: str) -> None:
    console = console_with(chips, [0x85, 0x02, 0x4C, 0x00, 0xF0])  # STA WSYNC; JMP $F000
    assert console.run_frame(core)
    assert console.scanlines == 291  # the write at line 290 still waits for the line's end
    begin, *_, end = console.recorded()
    assert (begin, end[1]) == ((0, FRAME_BEGIN, 0), FRAME_END)


FRAME_PROGRAM = [
    0xA9, 0x02, 0x85, 0x00,  # LDA #2; STA VSYNC
    0x85, 0x02, 0x85, 0x02, 0x85, 0x02,  # three lines
    0xA9, 0x00, 0x85, 0x00,  # STA VSYNC: the frame ends at cycle 5 of a line
    0xA2, 0x04, 0x85, 0x02, 0xCA, 0xD0, 0xFB,  # four lines, then the first visible one
    0xA9, 0x6C, 0x85, 0x09, 0x85, 0x02,  # COLUBK in the blank
    *[0xEA] * 10, 0xA9, 0x8E, 0x85, 0x09,  # in the next line at cycle 25, which is pixel 7
    0xA2, 0x08, 0x85, 0x02, 0xCA, 0xD0, 0xFB,  # eight more lines
    0x4C, 0x00, 0xF0,
]  # fmt: skip


@pytest.mark.parametrize("core", CORES)
def test_bus_whole_frame_of_a_program(chips: ModuleType, core: str) -> None:
    console = console_with(chips, FRAME_PROGRAM)
    assert not console.run_frame(core)  # the first one ends before the picture does
    assert console.cycle == 3 * 76 + 5
    console.draw()
    for _ in range(3):
        assert console.run_frame(core)
        assert console.recorded() == [
            (5, FRAME_BEGIN, 0),
            (4 * 76 + 9, COLUBK, 0x6C),
            (5 * 76 + 25, COLUBK, 0x8E),
            (16 * 76 + 5, TOUCH, 0),
            (16 * 76 + 5, FRAME_END, 0),
        ]
        assert (console.scanlines, console.cycle, console.faults) == (16, 16 * 76 + 5, 0)
        lines = console.draw().tolist()
        assert lines == [[0x6C] * 160, [0x6C] * 7 + [0x8E] * 153] + [[0x8E] * 160] * 6


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("pal", [False, True])
def test_bus_frame_after_an_odd_number_of_lines_loses_its_colors_on_pal(
    chips: ModuleType, core: str, pal: bool
) -> None:
    program = list(FRAME_PROGRAM)
    odd = console_with(chips, program, pal=pal)
    program[program.index(0x08)] = 0x09  # one line more
    even_then_odd = console_with(chips, program, pal=pal)
    for _ in range(2):
        odd.run_frame(core)
        odd.draw()
        even_then_odd.run_frame(core)
        even_then_odd.draw()
    assert (odd.scanlines, even_then_odd.scanlines) == (16, 17)
    odd.run_frame(core)
    even_then_odd.run_frame(core)
    assert odd.recorded()[0] == (5, FRAME_BEGIN, 0)
    assert even_then_odd.recorded()[0] == (5, FRAME_BEGIN, int(pal))


@pytest.mark.parametrize("core", CORES)
def test_bus_frame_is_cut_off_after_25000_instructions(chips: ModuleType, core: str) -> None:
    console = console_with(chips, [0x4C, 0x00, 0xF0])  # JMP $F000, 3 cycles
    assert not console.run_frame(core)
    assert (console.cycle, console.frame_open) == (75000, 1)
    marks = [(register, value) for _, register, value in console.recorded()]
    assert marks == [(FRAME_BEGIN, 0), (TOUCH, 0), (GREY_OUT, 0), (FRAME_END, 0)]
    console.draw()
    assert not console.run_frame(core)  # the same frame goes on, and is greyed out once
    assert console.cycle == 150000
    assert [register for _, register, _ in console.recorded()] == [TOUCH, FRAME_END]


@pytest.mark.parametrize("core", CORES)
def test_bus_cut_off_frame_can_still_end(chips: ModuleType, core: str) -> None:
    # INX; BNE, 256 x 37 times and more in all; then VSYNC as in any frame.
    program = [0xA0, 0x40, 0xA2, 0x00, 0xCA, 0xD0, 0xFD, 0x88, 0xD0, 0xF8, *FRAME_PROGRAM[:14]]
    console = console_with(chips, program)
    assert not console.run_frame(core)
    assert console.frame_open == 1
    console.run_frame(core)
    assert (console.frame_open, console.frame_ended) == (0, True)
    console.draw()
    console.begin_frame()
    assert console.recorded()[0][1] == FRAME_BEGIN


@pytest.mark.parametrize("core", CORES)
def test_bus_frame_that_never_ends_keeps_time(chips: ModuleType, core: str) -> None:
    """The counter stays bounded; the place in the scanline, the timer, HMOVE and the paddles do not
    notice."""
    console = console_with(chips, [0x4C, 0x00, 0xF0], inpt_wiring=0x0002)  # JMP $F000, 3 cycles
    console.set_inputs(charge0=900)
    highest = cycles = 0
    for frame in range(400):
        if frame % 100 == 0:
            console.write(T1024T, 0x40)
            set_at = cycles
        console.run_frame(core)
        cycles += 75000
        console.draw()
        highest = max(highest, console.cycle)
        assert (cycles - console.cycle) % 152 == 0
        intervals = (cycles - set_at - 1) // 1024
        if intervals < 0x40:
            assert console.read(INTIM) == 0x40 - intervals - 1
    assert highest < 2**24 < cycles
    console.write(VBLANK, 0x80)
    console.write(VBLANK, 0x00)
    console.cycle += 900
    console.bus = 0
    assert console.read(INPT0) == 0x00
    console.cycle += 1
    console.bus = 0
    assert console.read(INPT0) == 0x80


@pytest.mark.parametrize("core", CORES)
def test_bus_jam_stops_the_console_and_is_a_fault(chips: ModuleType, core: str) -> None:
    console = console_with(chips, [0xEA, 0x02, 0xE8])
    assert not console.run_frame(core)
    assert (console.jammed, console.faults, console.cycle) == (1, FAULT_JAM, 2 + 2)
    cycle = console.cycle
    console.run_frame(core)
    assert (console.cycle, console.x) == (cycle, 0)


def test_bus_begin_frame_keeps_the_place_in_the_line(chips: ModuleType) -> None:
    console = console_with(chips)
    console.begin_frame()
    console.cycle = 1000
    console.write(TIM64T, 100)
    console.write(VSYNC, 2)
    console.cycle = 262 * 76 + 31
    console.write(VSYNC, 0)
    console.write(HMOVE, 0)
    console.finish_frame()
    console.begin_frame()
    assert console.cycle == 31
    console.cycle = 31 + 7
    console.write(RESM0, 0)
    assert console.recorded()[-2:] == [(31, FRAME_BEGIN, 0), (38, RESM0, 7)]
    assert (
        console.read(INTIM)
        == 0xFF
        - (262 * 76 + 38 - 1000 - 6400 - 1) % 256
        - (262 * 76 + 38 - 1000 - 6400 - 1) // 64 % 256
    )


def test_bus_reset_starts_at_the_vector_with_ram_kept(chips: ModuleType) -> None:
    console = console_with(chips)
    console.write(0x80, 0x99)
    console.pc, console.a, console.s, console.cycle = 0x1234, 7, 8, 999
    console.reset(50)
    assert (console.pc, console.a, console.s, console.cycle, console.ram[0]) == (
        0xF000,
        0,
        0xFF,
        0,
        0x99,
    )
    console.cycle = 1
    assert console.read(INTIM) == 49


def test_bus_frame_without_end_keeps_its_counters_small_and_their_differences(
    chips: ModuleType,
) -> None:
    limit, step = (1 << 19) + (152 << 16), 152 << 16
    console = console_with(chips)
    console.begin_frame()
    console.finish_frame()
    console.cycle = limit - 500
    console.write(T1024T, 20)
    console.cycle = limit + 31
    console.begin_frame()
    assert console.frame_open == 1
    assert console.cycle == limit + 31 - step
    assert console.read(INTIM) == 19
    console.cycle += 2 * 1024
    assert console.read(INTIM) == 17
