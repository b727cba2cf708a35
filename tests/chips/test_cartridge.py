"""The cartridges' bank switching, RAM and coprocessor, on images of random bytes.

Sources: Kevin Horton, "Cart Information" (schemes and hot spots); US patent 4,644,495 (DPC). The
DPC's random number generator is clocked by accesses to its registers and to the window's last 64
bytes, as in ale-py, and not by every one.
"""

from types import ModuleType

import pytest
from console_with_rom import bank_bytes, image_of, plain_bytes, plug_in

BANK_SCHEMES = {
    "F8": (0x1FF8, 2, 1),
    "F8SC": (0x1FF8, 2, 1),
    "F6": (0x1FF6, 4, 0),
    "F6SC": (0x1FF6, 4, 0),
}


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
