"""A window on the screen, by pygame (`pip install pygame`)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from cule.errors import InvalidValue
from cule.processes.forks import leave_in_child

# A window fills at most this share of the desktop, and is at most this many times as large as its
# picture.
_SHARE_OF_DESKTOP, _LARGEST_SCALE = 0.85, 3.0
# SDL's drivers without a visible window. SDL uses one if it finds no display, but it is wanted only
# if SDL_VIDEODRIVER names it.
INVISIBLE_DRIVERS = ("dummy", "offscreen")


def load_pygame() -> Any:
    """The module pygame, without the line that it prints.

    Raises:
        gymnasium.error.DependencyNotInstalled: it is not installed.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as problem:
        raise DependencyNotInstalled(
            "render_mode='human' needs pygame: pip install pygame"
        ) from problem
    return pygame


class Window:
    """A window that shows one picture after the other.

    Args:
        title: the text of the title bar.
        width: of the pictures, in pixels.
        height: of the pictures, in pixels.
        pictures_per_second: how fast pictures are shown.

    Raises:
        gymnasium.error.DependencyNotInstalled: pygame is not installed.
        ValueError: there is no display.
    """

    def __init__(self, title: str, width: int, height: int, pictures_per_second: float):
        self.is_open = False
        self._pygame = pygame = load_pygame()
        try:
            pygame.display.init()
            if pygame.display.get_driver() in INVISIBLE_DRIVERS and not os.environ.get(
                "SDL_VIDEODRIVER"
            ):
                raise pygame.error("there is none")
            wide, high = pygame.display.get_desktop_sizes()[0]
            scale = min(
                _SHARE_OF_DESKTOP * wide / width, _SHARE_OF_DESKTOP * high / height, _LARGEST_SCALE
            )
            size = (max(1, int(width * scale)), max(1, int(height * scale)))
            self._surface = pygame.display.set_mode(size)
        except pygame.error as problem:
            pygame.display.quit()
            raise InvalidValue(
                f"expected a display for render_mode='human', but it takes no window ({problem}); "
                "render_mode='rgb_array' gives pictures, and cule.RecordVideo records a video"
            ) from problem
        pygame.display.set_caption(title)
        self._picture = pygame.Surface((width, height))
        self._clock, self._rate = pygame.time.Clock(), pictures_per_second
        self.is_open = True
        leave_in_child(self)

    def show(self, picture: np.ndarray) -> None:
        """Draws a picture, (height, width, 3) uint8, unless the window is closed, and waits."""
        pygame = self._pygame
        if not self.is_open or not pygame.display.get_init():
            return
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()
            return
        pygame.surfarray.blit_array(self._picture, picture.swapaxes(0, 1))
        pygame.transform.scale(self._picture, self._surface.get_size(), self._surface)
        pygame.display.flip()
        self._clock.tick(self._rate)

    def leave(self) -> None:
        """In a forked child: the window, and the line to the display, are the parent's."""
        self.is_open = False

    def close(self) -> None:
        """Closes the window. Can be called again."""
        if self.is_open:
            self.is_open = False
            self._pygame.display.quit()
