"""ROM images of all schemes, plugged into a console."""

from types import ModuleType
from typing import Any

import numpy as np

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


def image_of(scheme: str) -> bytes:
    return np.random.default_rng(2600).integers(0, 256, SIZES[scheme], dtype=np.uint8).tobytes()


def plug_in(chips: ModuleType, scheme: str) -> Any:
    return chips.Console(scheme, image_of(scheme))


def plain_bytes(console: Any, base: int = 0x1000) -> list[int]:
    return [console.read(base + offset) for offset in PLAIN]


def bank_bytes(scheme: str, bank: int) -> list[int]:
    return [image_of(scheme)[4096 * bank + offset] for offset in PLAIN]
