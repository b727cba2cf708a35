"""The cartridges' bank switching, RAM and coprocessor, on images of random bytes.

Sources: Kevin Horton, "Cart Information" (schemes and hot spots); US patent 4,644,495 (DPC). The
DPC's random number generator is clocked by accesses to its registers and to the window's last 64
bytes, as in ale-py, and not by every one.
"""

from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.registers import VSYNC

SIZES = {
    "2K": 2048,
    "4K": 4096,
    "F8": 8192,
    "F8SC": 8192,
    "F6": 16384,
    "F6SC": 16384,
    "E0": 8192,
    "FE": 8192,
    "DPC": 10240,
}
# Offsets into the window that are special in no scheme, in each of its four slices.
PLAIN = [0x100, 0x234, 0x3FF, 0x400, 0x5A5, 0x7FF, 0x800, 0x987, 0xBFF, 0xC00, 0xDEF, 0xFBF]
BANK_SCHEMES = {
    "F8": (0x1FF8, 2, 1),
    "F8SC": (0x1FF8, 2, 1),
    "F6": (0x1FF6, 4, 0),
    "F6SC": (0x1FF6, 4, 0),
}


def image_of(scheme: str) -> bytes:
    return np.random.default_rng(2600).integers(0, 256, SIZES[scheme], dtype=np.uint8).tobytes()


def plug_in(chips: ModuleType, scheme: str) -> Any:
    return chips.Console(scheme, image_of(scheme))


def plain_bytes(console: Any, base: int = 0x1000) -> list[int]:
    return [console.read(base + offset) for offset in PLAIN]


def bank_bytes(scheme: str, bank: int) -> list[int]:
    return [image_of(scheme)[4096 * bank + offset] for offset in PLAIN]


@pytest.mark.parametrize("base", [0x1000, 0x3000, 0xB000, 0xF000])
def test_cartridge_2k_shows_twice(chips: ModuleType, base: int) -> None:
    console, image = plug_in(chips, "2K"), image_of("2K")
    assert bytes(console.read(base + offset) for offset in range(4096)) == image + image


@pytest.mark.parametrize("base", [0x1000, 0x5000, 0xF000])
def test_cartridge_4k_fills_the_window(chips: ModuleType, base: int) -> None:
    console = plug_in(chips, "4K")
    assert bytes(console.read(base + offset) for offset in range(4096)) == image_of("4K")


@pytest.mark.parametrize("scheme", ["2K", "4K"])
def test_cartridge_rom_ignores_writes(chips: ModuleType, scheme: str) -> None:
    console = plug_in(chips, scheme)
    before = [console.read(0x1000 + offset) for offset in range(4096)]
    for offset in range(4096):
        console.write(0x1000 + offset, ~before[offset] & 0xFF)
    assert [console.read(0x1000 + offset) for offset in range(4096)] == before


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("scheme", BANK_SCHEMES)
def test_cartridge_atari_hot_spots_select_banks(
    chips: ModuleType, scheme: str, access: str
) -> None:
    first_hot_spot, banks, start = BANK_SCHEMES[scheme]
    console = plug_in(chips, scheme)
    assert plain_bytes(console) == bank_bytes(scheme, start)
    for bank in [*range(banks), *reversed(range(banks))]:
        if access == "write":
            console.write(first_hot_spot + bank, 0x5A)
        else:  # the read itself already comes from the new bank
            assert (
                console.read(first_hot_spot + bank)
                == image_of(scheme)[4096 * bank + (first_hot_spot & 0xFFF) + bank]
            )
        assert plain_bytes(console) == bank_bytes(scheme, bank)
        assert plain_bytes(console, 0xF000) == bank_bytes(scheme, bank)


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("scheme", BANK_SCHEMES)
def test_cartridge_atari_only_hot_spots_switch(chips: ModuleType, scheme: str, access: str) -> None:
    first_hot_spot, banks, _ = BANK_SCHEMES[scheme]
    hot_spots = range(first_hot_spot, first_hot_spot + banks)
    console = plug_in(chips, scheme)
    console.read(hot_spots[0])
    for address in [*range(0x1100, 0x1F80, 61), *range(0x1F80, 0x2000)]:
        if address in hot_spots:
            continue
        if access == "write":
            console.write(address, 0)
        else:
            assert console.read(address) == image_of(scheme)[address & 0xFFF]
        assert plain_bytes(console) == bank_bytes(scheme, 0)


@pytest.mark.parametrize("scheme", ["F8SC", "F6SC"])
def test_cartridge_superchip_ram_has_a_write_and_a_read_port(
    chips: ModuleType, scheme: str
) -> None:
    console = plug_in(chips, scheme)
    values = [(37 * i + 11) % 256 for i in range(128)]
    for i in range(128):
        console.write(0x1000 + i, values[i])
    assert [console.read(0x1080 + i) for i in range(128)] == values
    for i in range(128):
        console.write(0x1080 + i, 0)  # not the write port
    console.read(BANK_SCHEMES[scheme][0])  # RAM is the same in every bank
    assert [console.read(0xF080 + i) for i in range(128)] == values
    assert list(console.cartridge_bytes) == values


@pytest.mark.parametrize("scheme", ["F8", "F6"])
def test_cartridge_without_superchip_has_rom_there(chips: ModuleType, scheme: str) -> None:
    console = plug_in(chips, scheme)
    console.write(0x1000, 0xAA)
    bank = BANK_SCHEMES[scheme][2]
    assert [console.read(0x1000 + i) for i in range(256)] == list(
        image_of(scheme)[4096 * bank : 4096 * bank + 256]
    )


@pytest.mark.parametrize("access", ["read", "write"])
def test_cartridge_e0_hot_spots_select_slices(chips: ModuleType, access: str) -> None:
    console, image = plug_in(chips, "E0"), image_of("E0")
    slices = [4, 5, 6, 7]
    order = [(window, number) for number in (0, 7, 3, 5, 1, 6, 2, 4) for window in range(3)]
    for window, number in [(None, 0), *order]:
        if window is not None:
            hot_spot = 0x1FE0 + 8 * window + number
            slices[window] = number
            if access == "write":
                console.write(hot_spot, 0)
            else:
                assert console.read(hot_spot) == image[7 * 1024 + (hot_spot & 0x3FF)]
        offsets = [0, 1, 0x155, 0x2AA, 0x3DF]
        shown = [[console.read(0x1000 + 1024 * w + offset) for offset in offsets] for w in range(4)]
        assert shown == [[image[1024 * slices[w] + offset] for offset in offsets] for w in range(4)]


def test_cartridge_e0_nothing_else_switches(chips: ModuleType) -> None:
    console = plug_in(chips, "E0")
    before = plain_bytes(console)
    for address in [0x1000, 0x13E0, 0x17E8, 0x1BF0, 0x1FDF, *range(0x1FF8, 0x2000)]:
        console.read(address)
        console.write(address, 0)
    assert plain_bytes(console) == before == bank_bytes("E0", 1)


def test_cartridge_fe_address_line_13_selects_the_bank(chips: ModuleType) -> None:
    console = plug_in(chips, "FE")
    for base, bank in [
        (0xF000, 0),
        (0xD000, 1),
        (0xB000, 0),
        (0x9000, 1),
        (0x3000, 0),
        (0x1000, 1),
    ]:
        assert plain_bytes(console, base) == bank_bytes("FE", bank)
        assert [console.read(base + 0xFC0 + i) for i in range(64)] == list(
            image_of("FE")[4096 * bank + 0xFC0 :][:64]
        )


@pytest.mark.parametrize("core", ["static", "dynamic"])
def test_cartridge_fe_jsr_and_rts_change_banks(chips: ModuleType, core: str) -> None:
    image = bytearray(8192)
    image[0x000:0x003] = [0x20, 0x00, 0xD1]  # $F000 JSR $D100
    image[0x1100:0x1103] = [0xA9, 0x42, 0x60]  # $D100 LDA #$42; RTS
    image[0xFFC:0xFFE] = [0x00, 0xF0]
    console = chips.Console("FE", bytes(image))
    where = []
    for _ in range(3):
        console.step(core)
        where.append(console.pc)
    assert (where, console.a) == ([0xD100, 0xD102, 0xF003], 0x42)


@pytest.mark.parametrize("core", ["static", "dynamic"])
def test_cartridge_code_runs_on_in_the_bank_that_it_switched_to(
    chips: ModuleType, core: str
) -> None:
    image = bytearray(8192)
    image[0x1FFC:0x1FFE] = [0x00, 0xF2]
    image[0x1200:0x1203] = [0xAD, 0xF8, 0xFF]  # bank 1, $F200: LDA $FFF8, to bank 0
    image[0x0203:0x0205] = [0xA2, 0x77]  # bank 0, $F203: LDX #$77
    image[0x1203:0x1205] = [0xA2, 0x33]
    console = chips.Console("F8", bytes(image))
    console.step(core)
    console.step(core)
    assert (console.pc, console.x) == (0xF205, 0x77)


# ---- DPC. Fetcher f is read at $1008 + f (data), $1010 + f (data AND flag) and $1038 + f (flag), and written at
# $1040 + f (top), $1048 + f (bottom), $1050 + f (counter, low) and $1058 + f (counter, high; for 5 to 7 bit 4: music).
# $1000 to $1003 are the random number, which $1070 resets; $1004 to $1007 the amplitude.

TOP, BOTTOM, LOW, HIGH, RANDOM_RESET = 0x1040, 0x1048, 0x1050, 0x1058, 0x1070
DATA, MASKED, FLAG = 0x1008, 0x1010, 0x1038


def display(counter: int) -> int:
    return image_of("DPC")[8192 + 2047 - counter % 2048]


def set_counter(console: Any, fetcher: int, counter: int) -> None:
    console.write(LOW + fetcher, counter & 0xFF)
    console.write(HIGH + fetcher, counter >> 8)


@pytest.mark.parametrize("access", ["read", "write"])
def test_cartridge_dpc_switches_banks_like_f8(chips: ModuleType, access: str) -> None:
    console = plug_in(chips, "DPC")
    assert plain_bytes(console) == bank_bytes("DPC", 1)
    for bank in (0, 1, 0):
        if access == "write":
            console.write(0x1FF8 + bank, 0)
        else:
            assert console.read(0x1FF8 + bank) == image_of("DPC")[4096 * bank + 0xFF8 + bank]
        assert plain_bytes(console) == bank_bytes("DPC", bank)
        assert [console.read(0x1080 + i) for i in range(128)] == list(
            image_of("DPC")[4096 * bank + 128 :][:128]
        )


@pytest.mark.parametrize("fetcher", range(8))
def test_cartridge_dpc_fetchers_walk_down_the_display(chips: ModuleType, fetcher: int) -> None:
    console = plug_in(chips, "DPC")
    set_counter(console, fetcher, 0x302)
    assert [console.read(DATA + fetcher) for _ in range(5)] == [
        display(c) for c in (0x302, 0x301, 0x300, 0x2FF, 0x2FE)
    ]
    set_counter(console, fetcher, 0x001)
    assert [console.read(DATA + fetcher) for _ in range(3)] == [
        display(c) for c in (0x001, 0x000, 0x7FF)
    ]


def test_cartridge_dpc_fetchers_are_independent(chips: ModuleType) -> None:
    console = plug_in(chips, "DPC")
    for fetcher in range(8):
        set_counter(console, fetcher, 0x100 * (7 - fetcher) + 0x40)
    for turn in range(3):
        for fetcher in range(8):
            assert console.read(DATA + fetcher) == display(0x100 * (7 - fetcher) + 0x40 - turn)


def test_cartridge_dpc_counter_high_takes_three_bits(chips: ModuleType) -> None:
    console = plug_in(chips, "DPC")
    console.write(LOW, 0x12)
    console.write(HIGH, 0xFD)
    assert console.read(DATA) == display(0x512)
    console.write(LOW, 0x77)
    assert console.read(DATA) == display(0x577)


@pytest.mark.parametrize("fetcher", [0, 4, 5, 7])
def test_cartridge_dpc_flag_is_set_at_top_and_cleared_at_bottom(
    chips: ModuleType, fetcher: int
) -> None:
    """A fetcher at top sets its flag before the byte is masked with it; at bottom it clears it."""
    console = plug_in(chips, "DPC")
    console.write(TOP + fetcher, 0x24)
    console.write(BOTTOM + fetcher, 0x21)
    set_counter(console, fetcher, 0x126)
    flags = [0x00, 0x00, 0xFF, 0xFF, 0xFF, 0x00, 0x00]
    shown = [console.read(MASKED + fetcher) for _ in flags]
    assert shown == [display(0x126 - i) & flag for i, flag in enumerate(flags)]
    set_counter(console, fetcher, 0x126)
    assert [console.read(FLAG + fetcher) for _ in flags] == flags


def test_cartridge_dpc_writing_top_clears_the_flag(chips: ModuleType) -> None:
    console = plug_in(chips, "DPC")
    console.write(TOP, 0x50)
    console.write(BOTTOM, 0x10)
    set_counter(console, 0, 0x50)
    assert [console.read(FLAG), console.read(FLAG)] == [0xFF, 0xFF]
    console.write(TOP, 0x60)
    assert console.read(FLAG) == 0x00


@pytest.mark.parametrize("function", [0x1018, 0x1020, 0x1028, 0x1030])
def test_cartridge_dpc_other_functions_read_zero_and_count(
    chips: ModuleType, function: int
) -> None:
    """As in ale-py. The patent's chip also swaps, reverses and rotates the byte, which Pitfall II
    does not use."""
    console = plug_in(chips, "DPC")
    set_counter(console, 2, 0x155)
    assert console.read(function + 2) == 0
    assert console.read(DATA + 2) == display(0x154)


def next_random(value: int) -> int:
    """Fed with the complement of the parity of bits 7, 5, 4 and 3."""
    ones = sum(value >> bit & 1 for bit in (7, 5, 4, 3))
    return value << 1 & 0xFF | (ones % 2 == 0)


def test_cartridge_dpc_random_numbers_have_period_255(chips: ModuleType) -> None:
    console = plug_in(chips, "DPC")
    console.write(RANDOM_RESET, 0)
    drawn = [console.read(0x1000 + i % 4) for i in range(510)]
    value, expected = 1, []
    for _ in range(510):
        value = next_random(value)
        expected.append(value)
    assert drawn == expected
    assert len(set(drawn[:255])) == 255
    assert drawn[:255] == drawn[255:]
    assert 0xFF not in drawn  # the state that the register would be stuck in


@pytest.mark.parametrize(
    ("address", "clocks"),
    [
        (0x1008, 1),
        (0x103F, 1),
        (0x107F, 1),
        (0x1080, 0),
        (0x1400, 0),
        (0x1FBF, 0),
        (0x1FC0, 1),
        (0x1FFF, 1),
    ],
)
def test_cartridge_dpc_random_number_clock(chips: ModuleType, address: int, clocks: int) -> None:
    console = plug_in(chips, "DPC")
    console.write(RANDOM_RESET, 0)
    console.read(address)
    expected = 1
    for _ in range(clocks + 1):
        expected = next_random(expected)
    assert console.read(0x1000) == expected


def music_clocks(cycle: int) -> int:
    """Whole clocks of the music oscillator since cycle 0."""
    return int(cycle * Fraction(15750) / Fraction(119319166666667, 10**8))


@pytest.mark.parametrize("voices", range(8))
def test_cartridge_dpc_music_amplitudes(chips: ModuleType, voices: int) -> None:
    """The voices' flags are set from bottom + 1 to top; three of them add up through a resistor
    ladder."""
    console = plug_in(chips, "DPC")
    for voice in range(3):
        console.write(TOP + 5 + voice, 9)
        console.write(BOTTOM + 5 + voice, 4)
        if voices >> voice & 1:
            console.write(HIGH + 5 + voice, 0x10)
            console.write(LOW + 5 + voice, 0x77)  # loads top, whatever is written
    high, low = [0x0, 0x4, 0x5, 0x9, 0x6, 0xA, 0xB, 0xF][voices], 0
    shown, expected = [], []
    for cycle in range(100, 4000, 37):
        console.cycle = cycle
        shown.append(console.read(0x1004))
        clocks = music_clocks(cycle)
        expected.append(high if (9 - clocks) % 10 > 4 else low)
    assert shown == expected
    assert set(shown) == {high, low}


def test_cartridge_dpc_music_voices_keep_their_own_pitch(chips: ModuleType) -> None:
    console = plug_in(chips, "DPC")
    tops, bottoms = (9, 30, 101), (4, 10, 50)
    for voice in range(3):
        console.write(TOP + 5 + voice, tops[voice])
        console.write(BOTTOM + 5 + voice, bottoms[voice])
        console.write(HIGH + 5 + voice, 0x10)
        console.write(LOW + 5 + voice, 0)
    for cycle in range(80, 40000, 501):
        console.cycle = cycle
        amplitude = console.read(0x1007)
        counters = [(top - music_clocks(cycle)) % (top + 1) for top in tops]
        on = [counter > bottom for counter, bottom in zip(counters, bottoms, strict=True)]
        assert (
            amplitude == [0x0, 0x4, 0x5, 0x9, 0x6, 0xA, 0xB, 0xF][on[0] | on[1] << 1 | on[2] << 2]
        )


def test_cartridge_dpc_music_with_top_zero_is_silent(chips: ModuleType) -> None:
    console = plug_in(chips, "DPC")
    console.write(TOP + 5, 0)
    console.write(HIGH + 5, 0x10)
    for cycle in (1000, 2000, 3000):
        console.cycle = cycle
        assert console.read(0x1004) == 0


def test_cartridge_dpc_music_keeps_time_across_frames(chips: ModuleType) -> None:
    """The cycle counter moves back by whole scanlines where a frame begins; the oscillator does not
    notice."""
    console = plug_in(chips, "DPC")
    console.write(TOP + 5, 49)
    console.write(BOTTOM + 5, 24)
    console.write(HIGH + 5, 0x10)
    console.write(LOW + 5, 0)
    shown, expected, start = [], [], 0
    for _ in range(30):
        for cycle in (1500, 9001, 19950):
            console.cycle = cycle
            shown.append(console.read(0x1004))
            expected.append(4 if (49 - music_clocks(start + cycle)) % 50 > 24 else 0)
        console.write(VSYNC, 2)  # so that the frame ends
        console.cycle = 19950 + 200
        console.write(0x0000, 0)
        console.finish_frame()
        console.begin_frame()
        start += 20150 - 20150 % 76
        assert console.cycle == 20150 % 76
    assert shown == expected
    assert set(shown) == {0, 4}


def test_cartridge_dpc_reset_stops_the_clock_and_keeps_the_fetchers(chips: ModuleType) -> None:
    console = plug_in(chips, "DPC")
    set_counter(console, 1, 0x321)
    console.read(0x1FF8)
    console.cycle = 5000
    console.reset(0)
    assert console.cycle == 0
    assert plain_bytes(console) == bank_bytes("DPC", 1)
    assert console.read(DATA + 1) == display(0x321)
