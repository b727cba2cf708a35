"""The search for collisions, compared with a check of each pixel and with a replay."""

from types import ModuleType

import numpy as np
import pytest
from tia_screen import LONG_AGO, random_write

from tests.support.registers import (  # isort: skip
    VSYNC, VBLANK, NUSIZ0, COLUP0, CTRLPF, RESP0, RESP1, RESM0, RESM1, RESBL, AUDC0, GRP0,
    HMOVE, CXCLR, TOUCH,
)  # fmt: skip


@pytest.mark.parametrize("wanted", ["all", "some", "one"])
def test_tia_collisions_that_nobody_sees_are_those_of_every_pixel(
    chips: ModuleType, wanted: str
) -> None:
    """Compares a search with a check of each pixel.

    States, writes and the gaps between them are random. If few latches are wanted, the search can
    skip most writes.
    """
    rng = np.random.default_rng(["all", "some", "one"].index(wanted))
    registers = [*range(NUSIZ0, COLUP0), *range(CTRLPF, AUDC0), *range(GRP0, CXCLR + 1), TOUCH]
    latched = 0
    for seed in range(600):
        collisions = chips.Collisions(seed)
        cycle = 0
        for _ in range(60):
            gap = rng.choice([1, 3, 5, 14, 76, 230], p=[0.1, 0.4, 0.3, 0.14, 0.04, 0.02])
            cycle += int(gap)
            some = int(rng.integers(1, 0x8000) & rng.integers(1, 0x8000))
            one = 1 << int(rng.integers(15))
            mask = {"all": 0x7FFF, "some": some, "one": one}[wanted]
            register = int(rng.choice(registers))
            value = int(rng.integers(0, 256)) if rng.random() < 0.8 else 0
            is_strobe = register in (RESP0, RESP1, RESM0, RESM1, RESBL)
            collisions.write(cycle, register, LONG_AGO if is_strobe else value)
            assert collisions.find(mask) == collisions.expected & mask
            latched |= collisions.expected & mask
    assert latched == 0x7FFF


def test_tia_collisions_of_whole_lines_are_those_of_every_pixel(chips: ModuleType) -> None:
    """Random lines without writes are each searched in one piece, with HMOVE between them."""
    for seed in range(1000, 1400):
        collisions = chips.Collisions(seed)
        for line in range(6):
            collisions.write(76 * line + 75, CXCLR, 0)
            collisions.write(76 * line + 151, TOUCH, 0)
            assert collisions.find(0x7FFF) == collisions.expected
            collisions.write(76 * line + 151, HMOVE, 0)


def test_tia_collisions_are_within_reach(chips: ModuleType) -> None:
    """Compares what is noted when objects are written with a check of each pixel.

    It must leave out no latch that is set, and leave out many that are not.
    """
    rng = np.random.default_rng(7)
    registers = [VBLANK, *range(NUSIZ0, COLUP0), *range(CTRLPF, AUDC0), *range(GRP0, CXCLR)]
    unset, left_out = 0, 0
    for seed in range(5000, 6500):
        collisions = chips.Collisions(seed)
        cycle = 0
        for _ in range(int(rng.integers(1, 16))):
            cycle += int(rng.choice([3, 5, 14, 76, 230]))
            register = int(rng.choice(registers))
            value = int(rng.integers(0, 256)) if rng.random() < 0.8 else 0
            is_strobe = register in (RESP0, RESP1, RESM0, RESM1, RESBL)
            collisions.write(cycle, register, LONG_AGO if is_strobe else value)
        collisions.write(cycle + 80, TOUCH, 0)
        expected, reached = collisions.expected, collisions.in_reach(0x7FFF)
        assert expected & ~reached == 0
        unset += (~expected & 0x7FFF).bit_count()
        left_out += (~reached & 0x7FFF).bit_count()
    assert left_out > unset / 5


@pytest.mark.parametrize("dense", [False, True])
def test_tia_latches_are_found_when_they_are_read(chips: ModuleType, dense: bool) -> None:
    """Compares the search through segments with a replay of all entries, for random programs
    that read latches at any time."""
    rng = np.random.default_rng(3 + dense)
    read = 0
    for _ in range(60):
        console = chips.Console("4K", bytes(4096), first_line=6, lines=200)
        tia = chips.Tia(first_line=6, lines=200)
        fed, cycle, known = 0, 0, int(rng.integers(1, 256))
        console.begin_frame()
        for _ in range(400):
            cycle += int(rng.choice([3, 5, 14, 76, 230], p=[0.3, 0.2, 0.2, 0.2, 0.1]))
            console.cycle = cycle
            kind = rng.random()
            if cycle > 230 * 76:
                console.write(VSYNC, 2)
                console.cycle = cycle + 100
                console.write(VSYNC, 0)
                console.finish_frame()
                console.begin_frame()
                cycle = console.cycle
            elif kind < (0.3 if dense else 0.02):
                entries = console.recorded()
                for entry in entries[fed:]:
                    tia.write(*entry)
                fed = len(entries)
                tia.write(cycle, TOUCH, 0)
                register = int(rng.choice([number for number in range(8) if known >> number & 1]))
                console.bus = 0
                found = console.read(register)
                assert found == tia.collision_register(register)
                read += found != 0
            else:
                register, value = random_write(rng)
                if register == CXCLR and rng.random() < 0.8:
                    continue
                if register == VBLANK:
                    value &= 0xFD if rng.random() < 0.8 else 0xFF
                console.write(register, value)
    assert read > 50
