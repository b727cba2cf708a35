"""Recordings as tables: `scope.record`, and `Recording`, which reads a recording's folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from cule.scope import breakdown
from cule.scope.boundary import find_boundary
from cule.scope.breakdown import GpuTime, Row, Transitions
from cule.scope.correction import corrected
from cule.scope.costs import Costs
from cule.scope.events import Process
from cule.scope.lanes import Lane, assemble
from cule.scope.recorder import Recorder
from cule.scope.storage import read_recording
from cule.scope.sweep import Cells, sweep


@dataclass
class Analysed:
    """A process with its lanes, whose time is divided among operations.

    Attributes:
        process: the process, corrected if costs were given.
        lanes: its lanes, the main one first.
        cells: the division of each lane's time.
        recorded_seconds: the window's length before the correction.
    """

    process: Process
    lanes: list[Lane]
    cells: list[Cells] = field(default_factory=list)
    recorded_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """The window's length: the wall clock."""
        return self.process.seconds


def analyse(process: Process, costs: Costs | None = None) -> Analysed:
    """Divides a process's window among operations; with costs, takes the book-keeping out first."""
    analysed = Analysed(process, assemble(process))
    analysed.recorded_seconds = analysed.seconds
    analysed.cells = [sweep(lane, process.start, process.end) for lane in analysed.lanes]
    if costs is not None:
        counted = analysed.cells
        corrected(process, analysed.lanes, costs)
        analysed.cells = [sweep(lane, process.start, process.end) for lane in analysed.lanes]
        # Calls that were nothing but book-keeping have no length now, but they were calls.
        for cells, before in zip(analysed.cells, counted, strict=True):
            cells.transitions, cells.apis = before.transitions, before.apis
    return analysed


class Recording:
    """A recording in a folder.

    Args:
        folder: where it is.
        costs: of the book-keeping, to be taken out; None: nothing is taken out.

    Raises:
        ValueError: there is no recording, or a file is damaged.
    """

    def __init__(self, folder: str | Path, costs: Costs | None = None):
        self.folder, self.costs = Path(folder), costs
        self._found: list[Analysed] | None = None

    @property
    def processes(self) -> list[Analysed]:
        """Each process."""
        if self._found is None:
            self._found = [analyse(one, self.costs) for one in read_recording(self.folder)]
        return self._found

    @property
    def problems(self) -> list[str]:
        """Sentences about missing or damaged parts of all processes."""
        return list(dict.fromkeys(p for one in self.processes for p in one.process.problems))

    def breakdown(self) -> list[Row]:
        """Where the time went: the rows of each process add up to its wall clock."""
        return [
            row
            for one in self.processes
            for lane, cells in zip(one.lanes, one.cells, strict=True)
            for row in breakdown.rows_of(lane, one.process, cells)
        ]

    def transitions(self) -> list[Transitions]:
        """How often each operation went from one level to another."""
        return [
            row
            for one in self.processes
            for lane, cells in zip(one.lanes, one.cells, strict=True)
            for row in breakdown.transitions_of(lane, cells)
        ]

    def gpu(self) -> list[GpuTime]:
        """The time of the GPUs for each operation."""
        return [
            row
            for one in self.processes
            for lane in one.lanes
            for row in breakdown.gpu_times(lane, one.process)
        ]


class record(Recording):
    """Records the program in a `with` block; after the block it is the Recording.

    Args:
        folder: the folder of the recording, which is created.
        iterations: how many iterations to record, after one that is left out, or from which to
            before which one, as (first, end); None: the whole block.
        boundaries: names of modules whose functions count as the simulator's, besides those of
            cule, ale-py and EnvPool, or as the backend's, as "MODULE=backend", besides torch's and
            JAX's.
        costs: of the book-keeping (`scope.Costs.read`), to be taken out.
        overwrite: whether an older recording there is deleted.
        children: whether the Python processes that the program starts, and those that these start,
            are recorded, too: forks, multiprocessing's, and Pythons that subprocess runs.

    Attributes:
        complete: whether everything was written.

    Raises:
        ImportError: torch is older than 2.11.
        RuntimeError: another recording runs in this process.
        ValueError: an argument is wrong, or the folder has a recording or cannot be written.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        iterations: int | tuple[int, int] | None = None,
        boundaries: Iterable[str] = (),
        costs: Costs | None = None,
        overwrite: bool = False,
        children: bool = True,
    ):
        super().__init__(folder, costs)
        names = tuple(boundaries)
        for name in names:
            find_boundary(name)
        self._recorder = Recorder(
            self.folder, iterations=iterations, boundaries=names, overwrite=overwrite,
            children=children,
        )  # fmt: skip

    @property
    def complete(self) -> bool:
        """Whether everything was written."""
        return self._recorder.complete

    def __enter__(self) -> record:
        self._recorder.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._recorder.stop()
        self._found = None
