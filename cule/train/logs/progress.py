"""A progress bar of a training on stderr. It moves from the first step on, before any learning."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm


class Progress(tqdm):
    """Counts emulated frames; shows frames per second and the time that is left.

    Args:
        game: the game that is trained.
        total: frames at the end of the training.
        shown: whether there is a bar at all.
        done: frames played before.
    """

    def __init__(self, game: str, total: int, *, shown: bool, done: int = 0):
        self.game, self.phase = game, ""
        super().__init__(
            total=total, initial=done, unit="frame", unit_scale=True, desc=game, smoothing=0.1,
            mininterval=0.5, disable=not shown, file=sys.stderr,
        )  # fmt: skip

    def reach(self, frames: int, phase: str = "") -> None:
        """Moves to the number of frames played; `phase` names what comes before learning."""
        self.update(frames - self.n)
        if phase != self.phase:
            self.phase = phase
            self.set_description(f"{self.game}, {phase}" if phase else self.game)

    def show_values(self, values: dict[str, Any]) -> None:
        """Shows these numbers next to the bar; None is not shown."""
        known = {
            name.replace("_", " "): f"{value:.4g}"
            for name, value in values.items()
            if value is not None
        }
        self.set_postfix(known)
