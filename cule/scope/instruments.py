"""What records in a process, and what it is written to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter_ns

from cule.disk.files import Unfinished
from cule.scope.activities import Activities, synchronize
from cule.scope.annotations import Annotation, listen, stop_listening
from cule.scope.boundary import Boundaries
from cule.scope.collect import Collected, clock_offset
from cule.scope.jax_calls import JaxCalls
from cule.scope.parts import Parts, return_memory
from cule.scope.storage import Writer, activities_path, marks_path

# The instruments of a recording; calibration leaves some of them out.
INSTRUMENTS = ("annotations", "boundaries", "activities", "cuda")
# Besides them, only if it is asked for, as it makes operators slower.
MEMORY = "memory"


def instruments_with(memory: bool) -> tuple[str, ...]:
    """All of them, and on demand that of memory."""
    return (*INSTRUMENTS, MEMORY) if memory else INSTRUMENTS


def unwritten(folder: Path, problem: Exception) -> str:
    """A sentence about a recording that cannot be written."""
    reason = getattr(problem, "strerror", None) or problem
    return (
        f"expected to write the recording into {folder}, got: {reason}; the recording is "
        "incomplete, the program goes on"
    )


class Instruments:
    """The instruments of a recording.

    Args:
        folder: where it is written.
        name: the process.
        kinds: which of INSTRUMENTS record, and MEMORY.
        levels: of boundaries besides the known ones (boundary.levels_of).
        problems: gets sentences about errors.
        in_parts: whether a long recording is written in parts while the program runs.
        thread: the identity of the thread that writes them.
        on_part: called when a part has been written, but for the last one.

    Attributes:
        collected: the lists of threads.
        parts: the parts that have ended.
    """

    def __init__(
        self, folder: Path, name: str, kinds: frozenset[str], levels: Mapping[str, str],
        problems: list[str], in_parts: bool, thread: int | None, on_part: Callable[[], None],
    ):  # fmt: skip
        self.folder, self.name, self.kinds, self.problems = folder, name, kinds, problems
        self.collected, self.parts = Collected(), Parts(self._begin_part, in_parts, thread)
        self._offset, self._on_part = clock_offset(), on_part
        self._boundaries = Boundaries(self.collected, levels)
        self._jax = JaxCalls(self.collected, self._offset, self._boundaries.timed)
        self._activities: Activities | None = None
        self._writer: Writer | None = None
        self._recording, self._begun = False, 0
        # Held while a part ends, as another thread may end the recording meanwhile.
        self._changing = threading.RLock()
        # What ends those that were started, the last one first.
        self._ends: list[Callable[[], None]] = []

    def now(self) -> int:
        """The time, as the recording has it: nanoseconds since the Unix epoch."""
        return perf_counter_ns() + self._offset

    def start(self) -> None:
        """Starts all of them."""
        if "annotations" in self.kinds:
            self.collected.note_open()
            for listener in (self.parts, self.collected):
                listen(listener)
            self._ends.append(lambda: stop_listening(self.parts))
            self._ends.append(lambda: stop_listening(self.collected))
        if "boundaries" in self.kinds:
            self._boundaries.install()
            self._ends += [self.collected.note_waits, self._boundaries.uninstall]
        # torch's profiler first: only the first one that asks for it gets what GPUs do.
        if "activities" in self.kinds:
            self._begin_activities()
            self._ends.append(self._end_activities)
        if "boundaries" in self.kinds:
            self._jax.start()
            self._ends.append(self._end_jax)
        if self.kinds:
            path = marks_path(self.folder, self.name)
            self._writer = Writer(path, self.collected, self._offset, self.parts.look)
            self._writer.start()

    def end_with(self, end: Callable[[], None]) -> None:
        """Has something else end with them, before they do."""
        self._ends.append(end)

    def _begin_activities(self) -> None:
        self._activities = None
        try:
            activities = Activities("cuda" in self.kinds, MEMORY in self.kinds)
            activities.start()
            self._activities = activities
        except RuntimeError as problem:
            self.problems.append(str(problem))

    def _end_activities(self) -> None:
        if self._activities is not None:
            self._activities.stop()

    def _end_jax(self) -> None:
        self._jax.stop()
        if self._jax.problem is not None:
            self.problems.append(self._jax.problem)

    # Windows --------------------------------------------------------------------------------------

    def begin_window(self) -> int:
        """Says that what is noted counts from now on; returns the time."""
        self._recording = True
        self.parts.restart()
        self._begun = self.now()
        return self._begun

    def end_window(self) -> tuple[int, int]:
        """Waits for the GPU; returns the time after that and before."""
        with self._changing:
            self._recording = False
        asked = self.now()
        synchronize()
        end = self.now()
        if self.parts.windows:
            self.parts.windows.append([self._begun, end, asked])
        return end, asked

    def _begin_part(self, annotation: Annotation) -> None:
        """Ends a part of the recording, writes it, and begins the next one.

        Args:
            annotation: one that begins now.
        """
        with self._changing:
            if self._recording and self._writer is not None:
                self._write_part(self._writer, annotation)

    def _write_part(self, writer: Writer, annotation: Annotation) -> None:
        asked = self.now()
        synchronize()
        window, number = [self._begun, self.now(), asked], len(self.parts.windows)
        self.collected.note_waits()
        try:
            if "boundaries" in self.kinds:
                self._end_jax()
            self._end_activities()
            writer.write(marks_path(self.folder, self.name, number + 1))
            self._write_activities(number)
            self.parts.windows.append(window)
            self._on_part()
        except (OSError, RuntimeError) as problem:
            self.problems.append(unwritten(self.folder, problem))
        if self._activities is not None:
            self._activities.release()
        self._activities = None
        return_memory()
        if "activities" in self.kinds:
            self._begin_activities()
        if "boundaries" in self.kinds:
            self._jax.start()
        self.collected.note_open(annotation)
        self.begin_window()

    # The end --------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends all that were started."""
        while self._ends:
            try:
                self._ends.pop()()
            except RuntimeError as problem:
                self.problems.append(f"expected a part of the recording to end, got: {problem}")

    def abandon(self) -> None:
        """In a forked child: they are its parent's."""
        self._boundaries.uninstall()
        self._jax.abandon()
        # CUDA, and so a profile of it, cannot be used after a fork.
        if self._activities is not None and not self._activities.with_gpu:
            self._activities.stop()

    def stop_writing(self) -> None:
        """Writes the rest of the lists."""
        if self._writer is not None:
            self._writer.stop()

    def write(self) -> None:
        """Writes what is not written yet.

        Raises:
            OSError, RuntimeError: it cannot be written.
        """
        self.stop_writing()
        if self._writer is not None and self._writer.problem is not None:
            raise self._writer.problem
        self._write_activities(max(0, len(self.parts.windows) - 1))

    def _write_activities(self, part: int) -> None:
        """Writes the trace of a part.

        Raises:
            OSError, RuntimeError: it cannot be written.
        """
        if self._activities is None:
            return
        unfinished = Unfinished(activities_path(self.folder, self.name, part), ".json.gz")
        try:
            self._activities.write(unfinished.path)
            unfinished.finish()
        finally:
            unfinished.abandon()
