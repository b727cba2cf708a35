"""The console around the chips: address decoding and the data bus.

Source: Stella Programmer's Guide ("Memory map").
"""

from types import ModuleType

import pytest

from tests.support.registers import (  # isort: skip
    COLUBK, PF1, INPT0, INPT4, INPT5, SWACNT, SWCHB,
)  # fmt: skip
from console_on_bus import CORES, console_with, run_to_end_of_program

# ---- Address decoding


def decodes_to(address: int) -> str:
    """The chip or memory at an address, by the board's wiring: A12, then A7, then A9."""
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
    """In E0, an instruction has its first byte in slice 0 of the image, and the others in slice
    5."""
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
    """That byte is a hot spot, so the read switches banks."""
    image = bytearray([0x11] * 4096 + [0x22] * 4096)
    image[4096] = 0x60  # RTS
    console = chips.Console("F8", bytes(image))
    assert console.read(0xF100) == 0x22
    console.write(0xFE, 0xF8)
    console.write(0xFF, 0xFF)
    console.pc, console.s = 0xF000, 0xFD
    console.step(core)
    assert (console.pc, console.read(0xF100)) == (0xFFF9, 0x11)
