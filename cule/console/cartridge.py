"""A game's cartridge: its ROM image, decoded ahead of time, and how a console is set up for it."""

from __future__ import annotations

import functools

import numpy as np

from cule import _core
from cule.console.options import Group
from cule.rom import Game, detect_scheme, load_rom

NTSC_HEIGHT, PAL_HEIGHT = 210, 250


@functools.cache
def _rom(game: Game, md5: str) -> tuple[bytes, str]:
    """The game's image and its scheme; `md5` is there only as the key of the cache."""
    image = load_rom(game)
    return image, detect_scheme(image)


def rom_of(game: Game) -> tuple[bytes, str]:
    """The game's ROM image and its bank-switching scheme. Raises ValueError as load_rom does."""
    return _rom(game, game.md5)


def padded(image: bytes) -> np.ndarray:
    """The image, padded with at least one byte to a multiple of 16 bytes."""
    return np.frombuffer(image + bytes(16 + -len(image) % 16), dtype=np.uint8)


def predecoded(game: Game) -> np.ndarray:
    """The game's ROM decoded ahead of time: eight bytes for each byte of its padded image."""
    image, scheme = rom_of(game)
    return np.frombuffer(_core.decode_rom(image, scheme, len(padded(image))), dtype=np.uint8)


def picture_height(game: Game, pal: bool) -> int:
    """Visible scanlines of the game's picture."""
    height = game.facts["height"]
    return PAL_HEIGHT if pal and height == NTSC_HEIGHT else height


def config_bytes(group: Group, pal: bool, rom_offset: int, difficulty: int | None = None) -> bytes:
    """The group's ConsoleConfig. `difficulty`, if given, replaces the group's."""
    image, scheme = rom_of(group.game)
    return _core.make_config(
        {
            "scheme": scheme,
            "pal": int(pal),
            "height": picture_height(group.game, pal),
            "rom_offset": rom_offset,
            "rom_bytes": len(image),
            "game": group.game.index,
            "mode": group.mode,
            "difficulty": group.difficulty if difficulty is None else difficulty,
        }
    )
