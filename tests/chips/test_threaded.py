"""Threaded code against the interpreter, frame by frame: programs of random instructions."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

# The bytes of an image of each scheme, and addresses at which an access does more.
SCHEMES = {
    "2K": (2048, []),
    "4K": (4096, []),
    "F8": (8192, [0x1FF8, 0x1FF9]),
    "F8SC": (8192, [0x1FF8, 0x1FF9, 0x1000, 0x1010, 0x1080, 0x10F0]),
    "F6": (16384, [0x1FF6, 0x1FF7, 0x1FF8, 0x1FF9]),
    "F6SC": (16384, [0x1FF6, 0x1FF9, 0x1005, 0x107F, 0x1085]),
    "E0": (8192, [0x1FE0, 0x1FE5, 0x1FE9, 0x1FF3]),
    "FE": (8192, [0x01FE]),
    "DPC": (8192 + 2048, [0x1FF8, 0x1FF9, 0x1000, 0x1008, 0x1012, 0x1040, 0x1055, 0x1070]),
}
JAMS = [code for code in range(256) if code & 0x9F in (0x02, 0x12) or code in (0x92, 0xB2, 0xD2)]
JAMS += [0xF2]
NO_JAMS = np.setdiff1d(np.arange(256), JAMS)
LOADS, STORES = [0xA5, 0xA6, 0xA4, 0xA9, 0xA2, 0xA0, 0xB5, 0xB1, 0xBD], [0x85, 0x86, 0x84, 0x95]
STATE = (
    "pc", "a", "x", "y", "s", "p", "cycle", "instructions_left", "jammed", "faults",
    "frame_ended", "frame_open", "scanlines", "ram", "cartridge_bytes",
)  # fmt: skip


FREQUENT = np.array([
    *LOADS, *STORES, 0xCA, 0x88, 0xE8, 0xC8, 0xD0, 0x10, 0xF0, 0x90, 0xE6, 0xC6, 0x69, 0x65, 0xE5,
    0xC9, 0x20, 0x60, 0x4C, 0x48, 0x68, 0x08, 0x24, 0x2C, 0x0A, 0x4A, 0x29, 0xAD, 0x8D, 0xB9, 0x91,
    0x9A, 0x18, 0x38,
])  # fmt: skip


def random_operands(random: np.random.Generator, count: int, special: list[int]) -> np.ndarray:
    """(count,) addresses: most are of RAM, a chip or ROM, or special ones."""
    addresses = [
        random.integers(0x80, 0x100, count),
        random.integers(0x00, 0x40, count),
        random.integers(0x280, 0x2A0, count),
        random.integers(0xF000, 0x10000, count),
        *(np.full(count, address | 0xE000) for address in special[:2]),
        *(np.full(count, address) for address in special[2:]),
    ]
    return np.choose(random.integers(len(addresses), size=count), addresses)


def random_image(random: np.random.Generator, scheme: str, wild: float) -> bytes:
    """Instructions one after the other. A share `wild` of them is any that does not halt."""
    length, special = SCHEMES[scheme]
    count = length // 2  # of instructions, each of two bytes or three
    any_opcode = random.random(count) < wild
    opcodes = np.where(any_opcode, random.choice(NO_JAMS, count), random.choice(FREQUENT, count))
    operands = random_operands(random, count, special)
    branches = opcodes & 0x1F == 0x10
    low = np.where(branches, random.integers(0xD0, 0x130, count), operands & 0xFF) & 0xFF
    rows = np.stack([opcodes, low, operands >> 8], axis=1).astype(np.uint8)
    used = np.ones(rows.shape, bool)
    used[:, 2] = ~branches & (random.random(count) < 0.5)
    image = rows[used][:length]
    # Every bank starts at its middle, and a BRK leads there too.
    for bank in range(0, min(length, 16384), 2048):
        if bank % 4096 == 2048 or length == 2048:
            image[bank + 0x7FC : bank + 0x800] = [0x00, 0xF4, 0x80, 0xF5]
    return image.tobytes()


def made(chips: ModuleType, scheme: str, seed: int) -> tuple[Any, Any]:
    """Two consoles in the same state, with a program of their own seed."""
    random = np.random.default_rng([seed, len(scheme), ord(scheme[0]), ord(scheme[1])])
    image = random_image(random, scheme, wild=float(random.choice([0.02, 0.1, 0.5])))
    line_limit = int(random.choice([60, 290]))
    code = random_image(random, "2K", wild=0.1)  # RAM is random code, too
    stack = int(random.choice([0xFF, 0xFD, 0x80, 0x20, 0x1F, 0x00]))
    in_ram = 0x80 + int(random.integers(100))
    consoles = tuple(chips.Console(scheme, image, line_limit=line_limit) for _ in range(2))
    for console in consoles:
        for i in range(128):
            console.write(0x80 + i, code[i])
        console.s = stack
        if seed % 4 == 0:
            console.pc = in_ram
    return consoles


def state_of(console: Any) -> dict[str, Any]:
    return {name: getattr(console, name) for name in STATE} | {"recorded": console.recorded()}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_threaded_code_does_what_the_interpreter_does(chips: ModuleType, scheme: str) -> None:
    instructions = 0
    for seed in range(100):
        threaded, interpreted = made(chips, scheme, seed)
        for frame in range(4):
            threaded.run_frame("threaded")
            interpreted.run_frame("dynamic")
            assert state_of(threaded) == state_of(interpreted), (seed, frame)
            instructions += 25_000 - interpreted.instructions_left
        assert (threaded.draw() == interpreted.draw()).all(), seed
    assert instructions > 100_000
