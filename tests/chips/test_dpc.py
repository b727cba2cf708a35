"""The DPC of Pitfall II: data fetchers, random numbers, music.

Fetcher f is read at $1008 + f (data), $1010 + f (data AND flag) and $1038 + f (flag). It is written
at $1040 + f (top), $1048 + f (bottom), $1050 + f (counter, low) and $1058 + f (counter, high; for 5
to 7 bit 4: music). $1000 to $1003 are the random number, which $1070 resets; $1004 to $1007 the
amplitude.
"""

from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest
from console_with_rom import bank_bytes, image_of, plain_bytes, plug_in

from tests.support.registers import VSYNC

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
    """At its top, a fetcher sets its flag before the byte is masked with it; at its bottom it
    clears the flag."""
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
    """This is as in ale-py.

    The patent's chip also swaps, reverses and rotates the byte, which Pitfall II does not use.
    """
    console = plug_in(chips, "DPC")
    set_counter(console, 2, 0x155)
    assert console.read(function + 2) == 0
    assert console.read(DATA + 2) == display(0x154)


def next_random(value: int) -> int:
    """The next state of a shift register fed with the complement of the parity of bits 7, 5, 4
    and 3."""
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
    """The voices' flags are set from bottom + 1 to top. A resistor ladder adds up three of them."""
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
    """At the beginning of a frame the cycle counter moves back by whole scanlines.

    That does not change the oscillator.
    """
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
        console.write(VSYNC, 0)
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
