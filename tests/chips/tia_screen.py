"""What the TIA's tests share: a TIA whose picture is read as letters, and random writes."""

from types import ModuleType
from typing import Any

import numpy as np

from tests.support.registers import (  # isort: skip
    VBLANK, NUSIZ0, NUSIZ1, COLUP0, COLUP1, COLUPF, COLUBK, PF0, RESP0, RESP1, RESM0, RESM1,
    RESBL, AUDC0, GRP0, GRP1, HMM0, CXCLR, FRAME_BEGIN, TOUCH,
)  # fmt: skip

FIRST_LINE, LINES = 10, 6
COLORS = {COLUP0: 0x24, COLUP1: 0x48, COLUPF: 0x6C, COLUBK: 0x8E}
LETTERS = {0x24: "0", 0x48: "1", 0x6C: "f", 0x8E: ".", 0x00: " "}  # blank: the beam is off
LONG_AGO = 255  # cycles since HMOVE, which RESxx entries carry


class Screen:
    """A TIA with `LINES` visible lines.

    `setup` writes before the first of them, `at` writes at a cycle of a line.
    """

    def __init__(
        self, chips: ModuleType, setup: dict[int, int] | None = None, **options: Any
    ) -> None:
        self.tia = chips.Tia(first_line=FIRST_LINE, lines=LINES, **options)
        self.now = 0
        self.tia.write(0, FRAME_BEGIN, 0)
        self.setup(COLORS | (setup or {}))

    def setup(self, writes: dict[int, int]) -> None:
        for register, value in writes.items():
            self.now += 3
            if RESP0 <= register <= RESBL:
                self.now += -self.now % 76  # in the blank
            assert self.now < FIRST_LINE * 76
            self.tia.write(self.now, register, value)

    def at(self, line: int, cycle: int, register: int, value: int = 0) -> None:
        now = (FIRST_LINE + line) * 76 + cycle
        assert now >= self.now, "writes go in the order of time"
        self.now = now
        self.tia.write(now, register, value)

    def lines(self) -> list[str]:
        """The finished picture, with a letter for each pixel."""
        self.tia.write((FIRST_LINE + LINES + 1) * 76, TOUCH, 0)
        return ["".join(LETTERS[color] for color in row) for row in self.tia.picture().tolist()]


def line_of(**objects: list[tuple[int, int]]) -> str:
    """A line of background with runs (start, width) of p0, p1 and pf. Earlier ones are in front."""
    pixels = ["."] * 160
    for name, runs in reversed(objects.items()):
        for start, width in runs:
            for x in range(start, start + width):
                pixels[x % 160] = {"p0": "0", "p1": "1", "pf": "f", "dark": " "}[name]
    return "".join(pixels)


EMPTY = "." * 160
# Players at 3, missiles and ball at 2: RESxx in the blank. Writing NUSIZx afterwards lets first
# copies show at once.
AT_LEFT = {
    RESP0: LONG_AGO,
    RESP1: LONG_AGO,
    RESM0: LONG_AGO,
    RESM1: LONG_AGO,
    RESBL: LONG_AGO,
    NUSIZ0: 0,
    NUSIZ1: 0,
}
# By NUSIZx: where the copies of a player and its missile begin.
COPIES = {
    0: [0],
    1: [0, 16],
    2: [0, 32],
    3: [0, 16, 32],
    4: [0, 64],
    5: [0],
    6: [0, 32, 64],
    7: [0],
}
OVERLAP = AT_LEFT | {
    GRP0: 0xFF,
    GRP1: 0xFF,
    NUSIZ1: 0x05,
    PF0: 0xF0,
}  # P0 3-10, P1 4-19, playfield 0-15 and 80-95


def random_write(rng: np.random.Generator) -> tuple[int, int]:
    """A recorded register and a value. Some values are small, and some repeat."""
    register = int(rng.choice([VBLANK, *range(NUSIZ0, AUDC0), *range(GRP0, CXCLR + 1)]))
    value = (
        int(rng.integers(0, 256))
        if rng.random() < 0.7
        else int(rng.choice([0, 2, 0x10, 0x30, 0x70]))
    )
    if register == HMM0:
        value = int(rng.choice([0x70, 0x61, 0x60, 0x20]))
    return register, LONG_AGO if register in (RESM0, RESM1, RESBL) else value
