"""The console around the chips: what is recorded for the TIA, and how a frame ends.

Source: Stella Programmer's Guide ("VSYNC"). When a frame ends is ale-py's: VSYNC must have been on
for 76 cycles, a TIA write beyond the limit of scanlines ends the frame, and so do 25,000
instructions.
"""

from types import ModuleType

import pytest

from tests.support.registers import (  # isort: skip
    VSYNC, VBLANK, COLUBK, RESP0, RESM0, RESM1, RESBL, HMM0, HMOVE, INPT0, INTIM, TIM64T,
    T1024T, FRAME_BEGIN, TOUCH, GREY_OUT, FRAME_END,
)  # fmt: skip
from console_on_bus import CORES, console_with

FAULT_JAM, FAULT_BUFFER_FULL = 1, 2


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
    """The cycle counter stays bounded.

    That changes neither the place in the scanline nor the timer, HMOVE or the paddles.
    """
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
