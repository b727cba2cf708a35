"""How the TIA's writes and pixels are represented: entries of its buffer, and words of pixels."""

from types import ModuleType

import numpy as np
from tia_screen import LONG_AGO, Screen

from tests.support.registers import (  # isort: skip
    VSYNC, WSYNC, RSYNC, NUSIZ0, NUSIZ1, CTRLPF, REFP0, REFP1, PF0, PF1, PF2, RESP0, RESBL,
    AUDC0, AUDV1, GRP0, GRP1, ENAM0, ENAM1, ENABL,
)  # fmt: skip


def test_tia_words_of_32_and_of_64_pixels_agree(chips: ModuleType) -> None:
    """Compares a GPU thread's drawing functions with the CPU's, over many settings and
    positions."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        screen = Screen(chips)
        resets = sorted(zip(rng.integers(0, 76, 5).tolist(), range(RESP0, RESBL + 1), strict=True))
        for cycle, register in resets:
            screen.at(0, cycle, register, LONG_AGO)
        for register in (NUSIZ0, NUSIZ1, CTRLPF, PF0, PF1, PF2, GRP0, GRP1, REFP0, REFP1):
            screen.at(1, 0, register, int(rng.integers(0, 256)))
        for register in (ENAM0, ENAM1, ENABL):
            screen.at(1, 0, register, 2)
        for which in range(6):
            bits = screen.tia.object_bits_64(which)
            assert bits == screen.tia.object_bits_32(which)
            assert len(bits) == 160


def test_tia_entries_hold_cycle_register_and_value(chips: ModuleType) -> None:
    for cycle in (0, 1, 75, 76, 19912, 262143):
        for register, value in ((0x00, 0xFF), (0x2C, 0x00), (0x33, 0xA5)):
            assert chips.entry(cycle, register, value) == (cycle, register, value)


def test_tia_entries_too_late_keep_their_place_in_the_line(chips: ModuleType) -> None:
    for cycle in range(262144, 262144 + 300):
        kept, register, value = chips.entry(cycle, 0x1B, 0x3C)
        assert (kept % 76, register, value) == (cycle % 76, 0x1B, 0x3C)
        assert 262143 - 152 <= kept <= 262143


def test_tia_only_writes_that_can_change_a_picture_are_recorded(chips: ModuleType) -> None:
    left_out = {VSYNC, WSYNC, RSYNC, *range(AUDC0, AUDV1 + 1), *range(0x2D, 0x40)}
    assert [register for register in range(64) if not chips.is_recorded(register)] == sorted(
        left_out
    )
