"""Records a window of a running program into a folder.

An error in the recording does not stop the program: it becomes a warning, and a sentence in the
report.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from cule.errors import Failed, InvalidValue
from cule.programs.results import command_line
from cule.scope import capture, reference
from cule.scope.activities import (
    check_torch,
    missing_gpu,
    synchronize,
    uses_gpu,
)
from cule.scope.annotations import Annotation, listen, stop_listening
from cule.scope.boundary import levels_of
from cule.scope.children import Children
from cule.scope.following import Follow, Following
from cule.scope.instruments import INSTRUMENTS, MEMORY, Instruments, unwritten
from cule.scope.iterations import WARM_ITERATIONS, check_iterations
from cule.scope.names import process_name, title_of_process
from cule.scope.storage import delete, prepare, write_about
from cule.scope.utilization import Utilization, gpu_uuid

# Instead of them: the window is between cudaProfilerStart and cudaProfilerStop, as ncu wants it.
RANGE = "range"


class Finished(BaseException):
    """Ends a program whose recording is complete, where that was asked for."""


class Recorder:
    """Records a window of this process.

    Args:
        folder: where to; it may have other processes' recordings.
        iterations: how many of the next iterations, or from which to before which one, counted from
            0; None: all from `start` to `stop`.
        boundaries: modules whose functions are a simulator's, besides cule, ale-py and EnvPool, or
            the backend's, as "MODULE=backend".
        instruments: which of INSTRUMENTS record, and MEMORY; without any only the window's length
            is recorded.
        overwrite: whether an older recording of this process is deleted.
        finish: whether the program is ended, by a `Finished`, when the iterations are recorded.
        in_parts: whether a long recording is written in parts while the program runs; one with
            MEMORY is not, as what one part takes another may give back.
        children: whether processes that this one starts are recorded with it.
        followed: this process is recorded with another one, which said so; None: for itself.
        thread: the number of the main lane's thread; None: that of this thread.
        thread_before_fork: the number that Kineto knows the thread by, if this is a fork.

    Attributes:
        complete: whether the recording is in the folder.
        follow: what processes that are started have to know; None: they are not recorded.
        problems: sentences about errors of the recording.

    Raises:
        ImportError: torch is too old.
        ValueError: an argument is wrong, or the folder cannot be written.
    """

    _running: Recorder | None = None
    # In a fork: what recorded its parent.
    abandoned: Recorder | None = None

    def __init__(
        self,
        folder: Path,
        *,
        iterations: int | tuple[int, int] | None = None,
        boundaries: Iterable[str] = (),
        instruments: Iterable[str] = INSTRUMENTS,
        overwrite: bool = False,
        finish: bool = False,
        in_parts: bool = True,
        children: bool = False,
        followed: Follow | None = None,
        thread: int | None = None,
        thread_before_fork: int | None = None,
    ):
        check_torch()
        self.folder, self.name = folder, process_name()
        self.followed, self._thread_before_fork = followed, thread_before_fork
        if followed is not None:
            self.name = f"{followed.root}.{os.getpid()}"
        self.instruments, self.finish = frozenset(instruments), finish
        self.iterations = check_iterations(iterations)
        self._claim = prepare(folder, self.name, overwrite)
        self.complete, self.problems = False, list(filter(None, [missing_gpu()]))
        levels = levels_of(boundaries)
        # A followed process's recording may be begun by the thread that looks for the window.
        follows = followed is not None
        identity = threading.main_thread().ident if follows else threading.get_ident()
        self._recording = Instruments(
            folder, self.name, self.instruments, levels, self.problems,
            in_parts and MEMORY not in self.instruments, identity,
            lambda: write_about(folder, self.name, self._about("recording")),
        )  # fmt: skip
        if thread is not None:
            self._recording.collected.numbers[threading.main_thread().ident] = thread
        self.window: list[int] = []
        # When the recording began to wait for the GPU's last work.
        self.asked: int | None = None
        self._main, self._seen, self._state = thread or threading.get_native_id(), 0, "new"
        self._first_iteration: int | None = None
        self._reference = reference.Reference()
        self._utilization = Utilization()
        self.follow, self._following = followed, None
        if children:
            packages = {name.partition(".")[0] for name in levels}
            self.follow = Follow(
                str(folder.resolve()), self.name, tuple(boundaries), tuple(sorted(packages)),
                tuple(sorted(self.instruments)),
            )  # fmt: skip
            self._following = Following(self.follow)
        self._children = Children()
        try:
            write_about(folder, self.name, self._about("recording"))
        except OSError as problem:
            raise InvalidValue(
                f"expected a folder that can be written, got {folder}: {problem.strerror}"
            ) from problem

    # From start to stop --------------------------------------------------------------------------

    def start(self) -> None:
        """Begins to record, or to wait for the first of the iterations.

        Raises:
            RuntimeError: this process is recorded already.
        """
        if Recorder._running is not None and Recorder._running.followed is not None:
            Recorder._running.discard()
        if Recorder._running is not None:
            raise Failed(
                "expected one recording at a time, got another one while that into "
                f"{Recorder._running.folder} runs"
            )
        Recorder._running, self._state = self, "waiting"
        if self.instruments:
            if self.followed is None:
                self._utilization.start()
            self._children.install()
        if self._following is not None:
            self._following.start()
        if self.iterations is None:
            self._begin_instruments()
            self._begin_window()
        else:
            listen(self)

    def began(self, annotation: Annotation) -> None:
        """Looks whether an iteration that begins is one of those to record."""
        if annotation.kind != "iteration" or self.iterations is None:
            return
        first, _ = self.iterations
        if self._first_iteration is None:
            self._first_iteration = self._recording.now()
        warm = first - WARM_ITERATIONS
        if self._state == "waiting" and self._seen >= warm - reference.ITERATIONS:
            self._state = "reference"
        if self._state == "reference" and self._seen < warm:
            self._reference.note()
        elif self._state == "reference":
            self._reference.end()
            self._begin_instruments()
        if self._state == "warm" and self._seen >= first:
            self._begin_window()
        self._seen += 1

    def ended(self, annotation: Annotation) -> None:
        """Looks whether an iteration that has ended was the last one to record."""
        if annotation.kind != "iteration" or self._state != "recording":
            return
        if self.iterations is not None and self._seen >= self.iterations[1]:
            self.stop()
            if self.finish:
                raise Finished

    @property
    def ended_itself(self) -> bool:
        """Whether all iterations are recorded."""
        return self._state == "done"

    def _begin_instruments(self) -> None:
        """Starts them some iterations before the window, so that they are warm in it."""
        self._state = "warm"
        self._recording.start()

    def _begin_window(self) -> None:
        synchronize()
        if RANGE in self.instruments and uses_gpu():
            torch.cuda.profiler.start()
            self._recording.end_with(torch.cuda.profiler.stop)
        self._state = "recording"
        if self.instruments and self._thread_before_fork is None:
            # A fork takes its parent's children for its own until multiprocessing says otherwise.
            self._children.begin()
        if self._following is not None:
            try:
                self._following.open()
            except OSError as problem:
                self.problems.append(
                    f"expected to record the processes that {self.name} starts, got: "
                    f"{problem.strerror}"
                )
        self.window = [self._recording.begin_window()]

    def stop(self) -> None:
        """Ends the recording and writes it. Can be called again."""
        if self._state in ("new", "done"):
            return
        if self._state == "recording":
            end, self.asked = self._recording.end_window()
            self.window.append(end)
        if self._state == "reference":
            self._reference.abandon()
        if self._following is not None:
            self._following.close()
        self._end_instruments()
        self._utilization.stop()
        self._say_what_is_missing()
        self._write()
        if self._following is not None:
            self._following.wait()
        self._claim.release()
        if self.followed is not None:
            return  # the report has its problems
        for sentence in self.problems:
            warnings.warn(sentence, stacklevel=3)

    def _end_instruments(self) -> None:
        self._state = "done"
        stop_listening(self)
        self._recording.stop()
        if self.instruments:
            self._children.uninstall()
        Recorder._running = None

    def discard(self) -> None:
        """Ends the recording, and deletes it."""
        self._end_instruments()
        self._recording.stop_writing()
        delete(self.folder, self.name)
        self._claim.release()

    def abandon(self) -> None:
        """In a forked child: the recording is its parent's. Nothing of it is left in the child."""
        self._state = "done"
        Recorder._running, Recorder.abandoned = None, self
        self._following = None
        self._children.uninstall()
        self._recording.abandon()

    def _say_what_is_missing(self) -> None:
        if self.iterations is None or self._seen >= self.iterations[1]:
            return
        first, end = self.iterations
        self.problems.append(
            f"expected {end - first} iterations to record, from iteration {first} on, got "
            f"{max(0, self._seen - first)}: the program began {self._seen} by `with "
            "scope.iteration():`"
        )

    # Writing -------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Writes what is not written yet."""
        try:
            self._recording.write()
            write_about(self.folder, self.name, self._about("complete"))
            self.complete = True
        except (OSError, RuntimeError) as problem:
            self.problems.append(unwritten(self.folder, problem))

    def _about(self, state: str) -> dict[str, Any]:
        """The description of the process for its file (about.py)."""
        gpus = []
        if state == "complete" and uses_gpu():
            gpus = [
                {"index": i, "uuid": gpu_uuid(i), "name": torch.cuda.get_device_name(i)}
                for i in range(torch.cuda.device_count())
            ]
        nodes = {
            number: [dataclasses.asdict(node) for node in of_graph]
            for number, of_graph in (capture.graphs.items() if state == "complete" else ())
        }
        return {
            "state": state, "name": self.name, "main": self._main, "pid": os.getpid(),
            "parent": os.getppid(), "rank": int(os.environ.get("RANK", 0)),
            "world_size": int(os.environ.get("WORLD_SIZE", 1)), "host": socket.gethostname(),
            "root": None if self.followed is None else self.followed.root,
            "title": None if self.followed is None else title_of_process(),
            "thread_before_fork": self._thread_before_fork,
            "children": self._children.started,
            "command": command_line(), "torch": torch.__version__,
            "cuda": torch.version.cuda, "instruments": sorted(self.instruments),
            "window": self.window if len(self.window) == 2 else None, "asked": self.asked,
            "parts": self._recording.parts.windows,
            "gpus": gpus,
            "iterations": self.iterations, "first_iteration": self._first_iteration,
            "utilization": [dataclasses.astuple(one) for one in self._utilization.samples],
            "reference": self._reference.result, "graphs": nodes, "problems": self.problems,
        }  # fmt: skip


def _after_fork_in_child() -> None:
    Recorder.abandoned = None
    if Recorder._running is not None:
        Recorder._running.abandon()


os.register_at_fork(after_in_child=_after_fork_in_child)
