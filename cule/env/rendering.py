"""Renderers: a class for each render mode.

"mosaic" and "rgb_array" draw the screens when `render` is called. "human" and "rgb_array_list" draw
them at every reset and step, as in gymnasium.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import logger

from cule.engine import Engine
from cule.env.screens import PIXEL_WIDTH, colored, mosaic
from cule.env.window import Window
from cule.facts.palette import rgb_palette

# The speed of a console.
FRAMES_PER_SECOND = 60


class Renderer:
    """render_mode=None: shows nothing.

    Args:
        engine: the consoles.
        title: of a window.

    Attributes:
        shows: whether it shows screens.
    """

    shows = False

    def __init__(self, engine: Engine, title: str):
        self.engine, self.title = engine, title

    def reset(self, mask: torch.Tensor | None) -> None:
        """Called when episodes have begun in the envs of `mask`, (num_envs,) bool; None: in all."""

    def step(self) -> None:
        """Called when a step has been played."""

    def render(self) -> Any:
        """The result of AtariEnv.render."""
        logger.warn("render() shows nothing, as the env was made with render_mode=None")

    def close(self) -> None:
        """Frees its pictures or its window."""

    def screens(self) -> np.ndarray:
        """(num_envs, height, 160, 3) uint8: the last frames in color."""
        return colored(self.engine, rgb_palette).cpu().numpy()


class Mosaic(Renderer):
    """One picture of all screens."""

    shows = True

    def render(self) -> np.ndarray:
        """(rows * height, columns * 320, 3) uint8."""
        return mosaic(self.screens())


class Pictures(Renderer):
    """A picture of each env."""

    shows = True

    def render(self) -> tuple[np.ndarray, ...]:
        """(height, 320, 3) uint8 for each env."""
        return tuple(self.screens().repeat(PIXEL_WIDTH, axis=2))


class PictureLists(Renderer):
    """All pictures of each env since the last `render`, or since the env's last `reset`."""

    shows = True

    def __init__(self, engine: Engine, title: str):
        super().__init__(engine, title)
        groups = engine.tensors["group"].view(torch.int32).tolist()
        self._pal = [int(engine.boots[group].pal) for group in groups]
        self._colors = np.stack([rgb_palette(False), rgb_palette(True)])
        self._forget()

    def _forget(self) -> None:
        # Palette indices take a sixth of the memory of colors.
        self._screens: list[list[np.ndarray]] = [[] for _ in self._pal]

    def _look(self, env_ids: Any) -> None:
        for i, screen in zip(
            env_ids, self.engine.contents.screens()[env_ids].cpu().numpy(), strict=True
        ):
            self._screens[i].append(screen.copy())

    def reset(self, mask: torch.Tensor | None) -> None:
        """Deletes the frames of the envs that are reset, and stores their first new one."""
        chosen = (
            list(range(len(self._pal))) if mask is None else torch.nonzero(mask).flatten().tolist()
        )
        for i in chosen:
            self._screens[i] = []
        self._look(chosen)

    def step(self) -> None:
        """Stores a frame of each env."""
        self._look(list(range(len(self._pal))))

    def render(self) -> tuple[list[np.ndarray], ...]:
        """A list for each env of (height, 320, 3) uint8."""
        pictures = tuple(
            [self._colors[pal][screen].repeat(PIXEL_WIDTH, axis=1) for screen in screens]
            for pal, screens in zip(self._pal, self._screens, strict=True)
        )
        self._forget()
        return pictures


class Human(Renderer):
    """A window that each reset and step draws again, at the speed of a console."""

    shows = True

    def __init__(self, engine: Engine, title: str):
        super().__init__(engine, title)
        height, width = self._picture().shape[:2]
        steps_per_second = FRAMES_PER_SECOND / engine.options.frameskip
        self._window = Window(title, width, height, steps_per_second)

    def _picture(self) -> np.ndarray:
        return mosaic(self.screens())

    def reset(self, mask: torch.Tensor | None) -> None:
        """Draws the screens."""
        self._window.show(self._picture())

    def step(self) -> None:
        """Draws the screens."""
        if self._window.is_open:
            self._window.show(self._picture())

    def render(self) -> None:
        """Returns None: each reset and step has drawn the window already."""

    def close(self) -> None:
        """Closes the window."""
        self._window.close()


RENDERERS: dict[str | None, type[Renderer]] = {
    None: Renderer,
    "mosaic": Mosaic,
    "rgb_array": Pictures,
    "rgb_array_list": PictureLists,
    "human": Human,
}
