"""A ROM decoded ahead of time: what may be executed as it was decoded, and what must be fetched
through the bus."""

from types import ModuleType

import numpy as np
import pytest

CORES = ["static", "dynamic"]
BANK, SLICE = 4096, 1024
# Per scheme: how many bytes of the image hold code, how many of them are always contiguous, and the
# offsets in the window of 4 KiB at which an access has an effect: below the first, and from the
# second on.
SCHEMES = {
    "2K": (2048, 2048, 0, BANK),
    "4K": (BANK, BANK, 0, BANK),
    "F8": (2 * BANK, BANK, 0, 0xFF8),
    "F8SC": (2 * BANK, BANK, 0x100, 0xFF8),
    "F6": (4 * BANK, BANK, 0, 0xFF6),
    "F6SC": (4 * BANK, BANK, 0x100, 0xFF6),
    "E0": (2 * BANK, SLICE, 0, 0xFE0),
    "FE": (2 * BANK, BANK, 0, BANK),
    "DPC": (2 * BANK, BANK, 0x80, 0xFC0),
}
NOT_CODE = {"DPC": 2048}
LDA_ABSOLUTE = 0xAD


def decode(chips: ModuleType, scheme: str, code: bytes) -> list[list[int] | None]:
    """(opcode, length, cycles, operand) for each byte of an image and the one after it; None if
    it is to be fetched slowly."""
    rows = chips.decode_rom(scheme, code + bytes(NOT_CODE.get(scheme, 0)))
    assert len(rows) == len(code) + NOT_CODE.get(scheme, 0) + 1
    return [row if row[1] else None for row in rows]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(3))
def test_decode_rom_of_random_bytes(chips: ModuleType, scheme: str, seed: int) -> None:
    """A byte is decoded if it begins an instruction whose bytes are contiguous and have no side
    effects."""
    size, run, special_end, special_begin = SCHEMES[scheme]
    code = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()
    rows = decode(chips, scheme, code)
    for at, opcode in enumerate(code):
        length = chips.predecode(opcode, 0, 0)[1]
        offsets = range(at % BANK, at % BANK + length)
        in_a_row = at // run == (at + length - 1) // run
        if in_a_row and all(special_end <= offset < special_begin for offset in offsets):
            low, high = [*code[at + 1 : at + length], 0, 0][:2]
            assert rows[at] == chips.predecode(opcode, low, high), hex(at)
        else:
            assert rows[at] is None, hex(at)
    assert rows[-1] is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_decode_rom_of_three_byte_instructions_marks_the_ends(
    chips: ModuleType, scheme: str
) -> None:
    size, run, special_end, special_begin = SCHEMES[scheme]
    window = min(size, BANK)
    rows = decode(chips, scheme, bytes([LDA_ABSOLUTE] * size))
    ends = {end - k for end in range(run, window + 1, run) for k in (1, 2)}
    specials = (
        {*range(special_end), *range(special_begin - 2, BANK)} if special_begin < BANK else set()
    )
    for bank in range(0, size, window):
        assert [i for i in range(window) if rows[bank + i] is None] == sorted(ends | specials)


@pytest.mark.parametrize(
    ("scheme", "at", "code", "is_slow"),
    [
        ("F8", 0xFF5, [0xAD, 0x84, 0x02], False),  # up to the byte before the hot spot
        ("F8", 0xFF6, [0xAD, 0x84, 0x02], True),
        ("F8", 0xFF7, [0xA9, 0x00], True),
        ("F8", 0xFF7, [0xEA], False),
        ("F6", 0xFF5, [0xA9, 0x00], True),
        ("F6", 0xFF4, [0xA9, 0x00], False),
        ("F8SC", 0x0FF, [0xAD, 0x84, 0x02], True),  # in the Superchip's RAM
        ("F8SC", 0x100, [0xAD, 0x84, 0x02], False),
        ("F8", 0x0FF, [0xAD, 0x84, 0x02], False),
        ("E0", 0x3FE, [0xA9, 0x00], False),
        ("E0", 0x3FF, [0xA9, 0x00], True),  # goes on in whatever the next slice is
        ("E0", 0x3FF, [0xEA], False),
        ("F8", 0x3FF, [0xA9, 0x00], False),
        ("FE", 0xFFE, [0xA9, 0x00], False),
        ("FE", 0xFFF, [0xA9, 0x00], True),  # the next bank's first byte does not follow
        ("DPC", 0x07F, [0xEA], True),
        ("DPC", 0xFBF, [0xA9, 0x00], True),
        ("DPC", 0xFBE, [0xA9, 0x00], False),
        ("2K", 0x7FE, [0xA9, 0x00], False),
        ("2K", 0x7FF, [0xA9], True),
    ],
)
def test_decode_rom_marks_what_must_be_fetched_through_the_bus(
    chips: ModuleType, scheme: str, at: int, code: list[int], is_slow: bool
) -> None:
    image = bytearray([0xEA] * SCHEMES[scheme][0])
    image[at : at + len(code)] = bytes(code)
    assert (decode(chips, scheme, bytes(image))[at] is None) == is_slow


# ---- Executing what is marked


@pytest.mark.parametrize("core", CORES)
def test_decode_rom_marked_operand_switches_banks_while_it_is_fetched(
    chips: ModuleType, core: str
) -> None:
    image = bytearray([0x11] * BANK + [0x22] * BANK)
    image[BANK + 0xFF7 : BANK + 0xFF9] = [
        0xA9,
        0x66,
    ]  # bank 1: LDA, with the operand at the hot spot of bank 0
    image[0xFF8] = 0x55
    console = chips.Console("F8", bytes(image))
    console.pc = 0xFFF7
    console.step(core)
    assert (console.pc, console.a, console.cycle, console.read(0xF100)) == (0xFFF9, 0x55, 2, 0x11)


@pytest.mark.parametrize("core", CORES)
def test_decode_rom_marked_code_runs_from_superchip_ram(chips: ModuleType, core: str) -> None:
    image = bytearray([0x02] * 2 * BANK)  # the image would halt
    image[0x1FFC:0x1FFE] = [0x80, 0xF0]
    console = chips.Console("F8SC", bytes(image))
    for i, byte in enumerate(
        [0xA9, 0x5A, 0xA2, 0x77, 0x4C, 0x80, 0xF0]
    ):  # LDA #$5A; LDX #$77; JMP $F080
        console.write(0xF000 + i, byte)
    for _ in range(3):
        console.step(core)
    assert (console.pc, console.a, console.x, console.jammed, console.cycle) == (
        0xF080,
        0x5A,
        0x77,
        0,
        2 + 2 + 3,
    )


@pytest.mark.parametrize("core", CORES)
def test_decode_rom_frame_runs_in_and_out_of_marked_code(chips: ModuleType, core: str) -> None:
    """A subroutine in RAM takes as many of a frame's instructions as it has, and no more."""
    image = bytearray([0xEA] * BANK)
    image[:4] = [0x20, 0x80, 0x00, 0x02]  # JSR $0080; JAM
    image[0xFFC:0xFFE] = [0x00, 0xF0]
    console = chips.Console("4K", bytes(image))
    for i, byte in enumerate([0xA2, 0x03, 0xCA, 0xD0, 0xFD, 0x60]):  # LDX #3; DEX; BNE; RTS
        console.write(0x80 + i, byte)
    console.run_frame(core)
    assert (console.jammed, console.x, console.pc) == (1, 0, 0xF004)
    assert 25_000 - console.instructions_left == 1 + 1 + 3 * 2 + 1 + 1
    assert console.cycle == 6 + 2 + 3 * 2 + 2 * 3 + 2 + 6 + 2


@pytest.mark.parametrize("core", CORES)
def test_decode_rom_code_in_the_tia_is_what_the_bus_holds(chips: ModuleType, core: str) -> None:
    """JMP $2D0E leaves $2D on the bus.

    The TIA's mirror at $2D0E does not drive the bus, so AND $2D2D is executed.
    """
    image = bytearray([0xEA] * BANK)
    image[:5] = [0xA9, 0xFF, 0x4C, 0x0E, 0x2D]
    image[0xFFC:0xFFE] = [0x00, 0xF0]
    console = chips.Console("4K", bytes(image))
    for _ in range(3):
        console.step(core)
    assert (console.pc, console.a, console.cycle) == (0x2D11, 0x80 | 0x2D, 2 + 3 + 4)
