"""The consoles' screens in color, and many of them in one picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import torch

from cule.engine import Engine

# The console's pixels are about twice as wide as they are high.
PIXEL_WIDTH = 2
# A mosaic with titles: its sizes in pixels, and its colors.
MARGIN, TITLE_HEIGHT = 6, 22
BACKGROUND, INK = (32, 32, 32), (235, 235, 235)


def colored(
    engine: Engine,
    palette: Callable[[bool], np.ndarray],
    env_ids: torch.Tensor | None = None,
) -> torch.Tensor:
    """The last frames of some envs in color.

    Args:
        engine: the consoles.
        palette: gives the (256, channels) uint8 colors of a television, PAL or not.
        env_ids: which envs (None: all).

    Returns:
        (n, height, 160, channels) uint8.
    """
    pal = torch.tensor([int(booted.pal) for booted in engine.boots], device=engine.device)
    group = engine.tensors["group"].view(torch.int32).long()
    screens = engine.contents.screens()
    if env_ids is not None:
        group, screens = group[env_ids], screens[env_ids]
    colors = torch.from_numpy(np.stack([palette(False), palette(True)])).to(engine.device)
    return colors[pal[group][:, None, None], screens.long()]


def mosaic(
    screens: Sequence[np.ndarray] | np.ndarray,
    titles: Sequence[str] | None = None,
    columns: int | None = None,
) -> np.ndarray:
    """Screens side by side, by default in as many rows as columns, or one row fewer.

    Args:
        screens: of each console, (height, 160, 3) uint8.
        titles: the text above each screen; there is a margin around both. None: there are no
            margins, and empty places are black.
        columns: how many screens are in a row.

    Returns:
        (rows * height, columns * 320, 3) uint8, plus titles and margins. Pixels are drawn twice as
        wide as high.
    """
    margin, top = (0, 0) if titles is None else (MARGIN, MARGIN + TITLE_HEIGHT)
    columns = columns or math.ceil(math.sqrt(len(screens)))
    rows = math.ceil(len(screens) / columns)
    tile_height = top + max(len(screen) for screen in screens)
    tile_width = margin + PIXEL_WIDTH * screens[0].shape[1]
    picture = np.zeros((rows * tile_height + margin, columns * tile_width + margin, 3), np.uint8)
    if titles is not None:
        picture[:] = BACKGROUND
    for i, screen in enumerate(screens):
        y, x = i // columns * tile_height, i % columns * tile_width
        wide = screen.repeat(PIXEL_WIDTH, axis=1)
        picture[y + top : y + top + len(screen), x + margin : x + tile_width] = wide
        if titles is not None:
            _write(picture, titles[i], x + margin + 2, y + top - 7)
    return picture


def _write(picture: np.ndarray, text: str, x: int, y: int) -> None:
    import cv2  # which only titles need

    cv2.putText(picture, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.5, INK, 1, cv2.LINE_AA)


def titles_of(games: Sequence[str], env_ids: Sequence[int]) -> list[str]:
    """The title of each env: its game, with its number if several envs play that game."""
    counts = Counter(games)
    return [
        f"{game} {i}" if counts[game] > 1 else game for game, i in zip(games, env_ids, strict=True)
    ]
