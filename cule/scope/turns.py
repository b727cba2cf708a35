"""Records a program several times in one run, uninstrumented and instrumented in turns.

A run of its own for each turn is what RL-Scope does, and free of what one profile leaves behind for
the next window. One run for all turns is many times faster, and both kinds of windows see the same
machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cule.scope.annotations import Annotation, listen, stop_listening
from cule.scope.recorder import INSTRUMENTS, Finished, Recorder

# Iterations between a recording and the next window.
GAP = 4


def folder_of(folder: Path, turn: int, instrumented: bool) -> Path:
    """The folder of a turn's recording."""
    return folder / f"turn{turn}-{'instrumented' if instrumented else 'plain'}"


class Turns:
    """A listener that starts one recording after the other, and ends the program after the last.

    Args:
        folder: where the recordings' folders go.
        iterations: from which to before which iteration the first window goes; the others are as
            long.
        turns: how many windows of each kind.
        boundaries: as of Recorder.
    """

    def __init__(
        self, folder: Path, iterations: tuple[int, int], turns: int, boundaries: Iterable[str]
    ):
        self.folder, self.boundaries = folder, tuple(boundaries)
        self._length = iterations[1] - iterations[0]
        self._coming = [(turn, kind) for turn in range(turns) for kind in (False, True)]
        self._recorder = self._next(iterations[0])

    def _next(self, first: int) -> Recorder:
        turn, instrumented = self._coming.pop(0)
        instruments: Sequence[str] = INSTRUMENTS if instrumented else ()
        return Recorder(
            folder_of(self.folder, turn, instrumented), iterations=(first, first + self._length),
            boundaries=self.boundaries, instruments=instruments, overwrite=True,
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
        self._recorder.start()

    def stop(self) -> None:
        """Ends what is not complete."""
        stop_listening(self)
        self._recorder.stop()
