"""Recordings as tables: `scope.record`, and `Recording`, which reads a recording's folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from cule.scope import breakdown
from cule.scope.analysis import Analysed, analyse_process
from cule.scope.boundary import find_boundary
from cule.scope.breakdown import GpuTime, Row, Transitions
from cule.scope.children import find_parents, in_order
from cule.scope.costs import Costs
from cule.scope.instruments import instruments_with
from cule.scope.memory import MemoryUse
from cule.scope.recorder import Recorder
from cule.scope.storage import parts_of


class Recording:
    """A recording in a folder, or in several.

    Args:
        folder: where it is; several folders, such as those of several machines, are one recording.
        costs: of the book-keeping, to be taken out; None: nothing is taken out.
        num_processes: how many processes read a long recording, which is in parts. With more than
            one the program has to be safe to import, as multiprocessing has it of programs whose
            processes are spawned.

    Raises:
        ValueError: there is no recording, or a file is damaged.
    """

    def __init__(
        self,
        folder: str | Path | Sequence[str | Path],
        costs: Costs | None = None,
        num_processes: int = 1,
    ):
        folders = [folder] if isinstance(folder, (str, Path)) else folder
        self.folders = [Path(one) for one in folders]
        self.costs, self.num_processes = costs, num_processes
        self._found: list[Analysed] | None = None

    @property
    def processes(self) -> list[Analysed]:
        """Each process."""
        if self._found is None:
            found = [
                analyse_process(parts, self.costs, self.num_processes)
                for parts in parts_of(self.folders)
            ]
            processes = [one.process for one in found]
            find_parents(processes)
            place = {id(process): place for place, process in enumerate(in_order(processes))}
            self._found = sorted(found, key=lambda one: place[id(one.process)])
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
            for row in breakdown.rows_of(lane.name, cells)
        ]

    def transitions(self) -> list[Transitions]:
        """How often each operation went from one level to another."""
        return [
            row
            for one in self.processes
            for lane, cells in zip(one.lanes, one.cells, strict=True)
            for row in breakdown.transitions_of(lane.name, cells)
        ]

    def gpu(self) -> list[GpuTime]:
        """The time of the GPUs for each operation."""
        return [row for one in self.processes for times in one.gpu for row in times]

    def memory(self) -> list[MemoryUse]:
        """The memory of each process's devices, if it was recorded."""
        return [use for one in self.processes for use in one.memory]


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
        memory: whether it is recorded what memory operations of torch take and give back, which
            makes them slower.

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
        memory: bool = False,
    ):
        super().__init__(folder, costs)
        names = tuple(boundaries)
        for name in names:
            find_boundary(name)
        self._recorder = Recorder(
            Path(folder), iterations=iterations, boundaries=names, overwrite=overwrite,
            children=children, instruments=instruments_with(memory),
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
