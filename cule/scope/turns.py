"""Records a program several times in one run, with different instruments in turns.

RL-Scope has a run of its own for each window, which no earlier recording can disturb. One run for
all turns is many times faster, and all kinds of windows see the machine in the same state.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from pathlib import Path

from cule.scope.annotations import Annotation, listen, stop_listening
from cule.scope.recorder import Finished, Recorder

# Iterations between a recording and the next window.
GAP = 4


def folder_of(folder: Path, turn: int, place: int) -> Path:
    """The folder of a turn's recording with the instruments in this place of `kinds`."""
    return folder / f"turn{turn}-{place}"


class Turns:
    """A listener that starts one recording after the other, and ends the program after the last.

    Args:
        folder: the folder of the recordings' folders.
        iterations: the first iteration of the first window, and the one after its last; all windows
            are as long.
        turns: how many windows of each kind.
        kinds: the instruments of the windows of a turn, as of Recorder.
        boundaries: as of Recorder.
    """

    def __init__(
        self, folder: Path, iterations: tuple[int, int], turns: int,
        kinds: Sequence[Sequence[str]], boundaries: Iterable[str],
    ):  # fmt: skip
        self.folder, self.kinds, self.boundaries = folder, kinds, tuple(boundaries)
        self._length = iterations[1] - iterations[0]
        self._coming = [(turn, place) for turn in range(turns) for place in range(len(kinds))]
        self._recorder = self._next(iterations[0])

    def _next(self, first: int) -> Recorder:
        turn, place = self._coming.pop(0)
        return Recorder(
            folder_of(self.folder, turn, place), iterations=(first, first + self._length),
            boundaries=self.boundaries, instruments=self.kinds[place], overwrite=True,
            in_parts=False,
        )  # fmt: skip

    def start(self) -> None:
        """Begins to wait for the first window."""
        listen(self)
        self._recorder.start()

    def began(self, annotation: Annotation) -> None:
        """An annotation has begun."""

    def ended(self, annotation: Annotation) -> None:
        """Starts the next recording when one is complete."""
        if annotation.kind != "iteration" or not self._recorder.ended_itself:
            return
        if not self._coming:
            raise Finished
        self._recorder = self._next(GAP)
        # Else Python would look through what the last recording left in the next window.
        gc.collect()
        self._recorder.start()

    def stop(self) -> None:
        """Ends what is not complete."""
        stop_listening(self)
        self._recorder.stop()
