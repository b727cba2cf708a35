"""Palettes: their make, and screens in ale-py's colors."""

from __future__ import annotations

import ale_py
import numpy as np
import pytest

from cule.facts.palette import NTSC_RGB, PAL_RGB, grey_palette, rgb_palette
from cule.rom import find_game, rom_path

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


@pytest.mark.parametrize("pal", [False, True])
def test_palettes_have_256_entries(pal: bool) -> None:
    for palette, channels in ((rgb_palette(pal), 3), (grey_palette(pal), 1)):
        assert palette.shape == (256, channels)
        assert palette.dtype == np.uint8
    np.testing.assert_array_equal(rgb_palette(pal)[::2], PAL_RGB if pal else NTSC_RGB)


@pytest.mark.parametrize("pal", [False, True])
def test_grey_rises_with_luminance_and_greys_are_grey(pal: bool) -> None:
    grey = grey_palette(pal)[::2, 0].reshape(16, 8).astype(int)
    assert (np.diff(grey, axis=1) > 0).all()
    np.testing.assert_array_equal(rgb_palette(pal)[:16:2, 0], grey[0])
    lost = rgb_palette(pal)[1::2]
    assert (lost == lost[:, :1]).all()
    np.testing.assert_array_equal(lost[:, 0], grey.reshape(-1))


def test_pal_has_the_grey_hues_that_pal_has() -> None:
    for hue in (0, 1, 14, 15):
        np.testing.assert_array_equal(PAL_RGB.reshape(16, 8, 3)[hue], PAL_RGB[:8])


@pytest.mark.parametrize(
    ("game", "pal"),
    [("pong", False), ("ms_pacman", False), ("up_n_down", False), ("air_raid", True)],
)
def test_palette_gives_the_colors_of_ale(game: str, pal: bool) -> None:
    ale = ale_py.ALEInterface()
    ale.loadROM(rom_path(find_game(game)))
    ale.reset_game()
    for _ in range(60):
        ale.act(ale.getLegalActionSet()[1])
        screen = ale.getScreen()
        np.testing.assert_array_equal(rgb_palette(pal)[screen], ale.getScreenRGB())
        np.testing.assert_array_equal(grey_palette(pal)[screen, 0], ale.getScreenGrayscale())
