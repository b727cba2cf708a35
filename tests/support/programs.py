"""Programs in place of a game's ROM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cule.console import cartridge, start_states
from cule.rom import Game


@contextmanager
def program_in_place_of(game: str, image: bytes) -> Iterator[None]:
    """Makes consoles of the game that are made in the block run this program, in a cartridge
    without banks."""
    rom = cartridge._rom

    def replaced(asked: Game, md5: str) -> tuple[bytes, str]:
        return (image, "4K") if asked.name == game else rom(asked, md5)

    kept = (start_states.boot, start_states.kept_reset_pool)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(cartridge, "_rom", replaced)
        for cached in kept:
            cached.cache_clear()
        try:
            yield
        finally:
            for cached in kept:
                cached.cache_clear()
