"""The consoles' screens in color, and many of them in one picture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from cule.engine import Engine

# The console's pixels are about twice as wide as they are high.
PIXEL_WIDTH = 2


def colored(engine: Engine, palette: Callable[[bool], np.ndarray], env_ids: torch.Tensor | None = None) -> torch.Tensor:
    """(n, height, 160, channels) uint8: the last frames of some envs (None: all) in the colors of `palette(pal)`."""
    pal = torch.tensor([int(booted.pal) for booted in engine.boots], device=engine.device)
    group = engine.tensors["group"].view(torch.int32).long()
    screens = engine.screens()
    if env_ids is not None:
        group, screens = group[env_ids], screens[env_ids]
    colors = torch.from_numpy(np.stack([palette(False), palette(True)])).to(engine.device)
    return colors[pal[group][:, None, None], screens.long()]


def mosaic(screens: np.ndarray) -> np.ndarray:
    """Screens side by side, in a square of as many rows as columns or one fewer, empty places black.

    Args:
        screens: (n, height, 160, 3) uint8.

    Returns:
        (rows * height, columns * 320, 3) uint8: pixels are drawn twice as wide as high.
    """
    count, height, width, channels = screens.shape
    wide = screens.repeat(PIXEL_WIDTH, axis=2)
    columns = int(np.ceil(np.sqrt(count)))
    rows = -(-count // columns)
    places = np.zeros((rows * columns, height, width * PIXEL_WIDTH, channels), np.uint8)
    places[:count] = wide
    grid = places.reshape(rows, columns, height, width * PIXEL_WIDTH, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width * PIXEL_WIDTH, channels)
