"""Checkpoints: sets of files, one for each process, all written at the same step.

A set is complete once it has a mark, a file that is written after all others. So there is always a
complete set, even if a program is killed. The set before the newest stays, too: if a checksum
shows that a file of the newest is damaged, all processes continue from the older one.

A thread writes a process's file while the training goes on: with 8,192 envs it has 1.4 GB.
"""

from __future__ import annotations

import re
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cule.disk.files import delete_stale, replacing
from cule.disk.forms import formed
from cule.disk.sealed import Kind
from cule.errors import InvalidValue
from cule.train.checkpoints.contents import SavedRun
from cule.train.distributed.process_group import ProcessGroup

# The content is what torch.save writes.
FILE = Kind("checkpoint", 1)
COMPLETE = re.compile(r"step-(\d+)-of-(\d+)\.complete")
PART = re.compile(r"step-(\d+)-rank\d+\.pt")
# Names the newest set in older checkpoints, which have no checksums.
EARLIER = "latest.json"


@dataclass(frozen=True, order=True)
class Set:
    """A complete set.

    Attributes:
        steps: of each env, when the set was written.
        world_size: the number of processes that wrote it.
    """

    steps: int
    world_size: int


def part_of(steps: int, rank: int) -> str:
    """The name of a process's file in a set."""
    return f"step-{steps}-rank{rank}.pt"


def on_host(state: Any) -> Any:
    """A copy of a state in the host's memory, which later changes of the state do not reach.

    Args:
        state: tensors, numbers and strings, in dictionaries, lists and tuples.
    """
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {key: on_host(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)([on_host(value) for value in state])
    return state


class Writer:
    """Writes sets, one after the other, while the training goes on.

    All processes have to call each of its methods but `close`, at the same iteration.

    Args:
        folder: the folder of checkpoints, which is created if it is missing.
        processes: the processes.
    """

    def __init__(self, folder: Path, processes: ProcessGroup):
        self.folder, self.processes = folder, processes
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        # The set that is being written: its steps, those of the set before, and the thread's work.
        self._begun: tuple[int, int | None, Future[None]] | None = None

    def begin(self, steps: int, state: dict[str, Any], before: int | None = None) -> None:
        """Begins to write a set, once the last one is complete.

        Args:
            steps: of each env so far; the set is named after them.
            state: a value for torch.save, which may change as soon as this returns.
            before: the steps of another set that stays; all others are deleted at the end.

        Raises:
            ValueError: a process cannot write this set or the last one.
        """
        self.finish()
        with self.processes.all_or_none():
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.processes.rank == 0:
                # The set is incomplete while its files are replaced one by one.
                delete_marks(self.folder, steps)
            saved = on_host(state)
        path = self.folder / part_of(steps, self.processes.rank)
        written = self._thread.submit(FILE.write, path, lambda file: torch.save(saved, file))
        self._begun = steps, before, written

    def poll(self) -> None:
        """Completes the set if all processes have written their files; does not wait for them.

        Raises:
            ValueError: a process cannot write.
        """
        if self._begun is not None and not self.processes.any(not self._begun[2].done()):
            self.finish()

    def finish(self) -> None:
        """Waits until the set is complete.

        Raises:
            ValueError: a process cannot write.
        """
        if self._begun is None:
            return
        (steps, before, written), self._begun = self._begun, None
        with self.processes.all_or_none():
            written.result()
        with self.processes.all_or_none():
            if self.processes.rank == 0:
                with replacing(self.folder / f"step-{steps}-of-{self.processes.size}.complete"):
                    pass
                delete_sets(self.folder, but=(steps, before))
                delete_stale(self.folder)

    def close(self) -> None:
        """Ends the thread. After an error a single process's set is still completed."""
        if self.processes.size == 1:
            with suppress(ValueError):
                self.finish()
        self._thread.shutdown()


def newest(run: Path, device: torch.device) -> dict[str, Any]:
    """The state of a run's newest checkpoint, that of its first process.

    Raises:
        ValueError: there is no checkpoint, or all are damaged.
    """
    state = load(run / "checkpoints", ProcessGroup(0, 1, device), form=SavedRun)
    if state is None:
        raise InvalidValue(
            f"expected a run folder with checkpoints, as training writes it, got {run}"
        )
    return state


def networks_of(state: dict[str, Any]) -> dict[str, Any]:
    """The part of a checkpoint's state that evaluations and videos need."""
    names = ("steps", "updates", "networks", "attributes")
    trained = {name: state["trainer"][name] for name in names if name in state["trainer"]}
    return {**state, "trainer": trained}


def keep_networks(run: Path) -> None:
    """Reduces the checkpoints of a single process's training to what evaluations and videos need.

    The networks of the newest set stay, a hundredth of it; training cannot go on from them.

    Raises:
        ValueError: there is no whole set, or the file cannot be written.
    """
    state = networks_of(newest(run, torch.device("cpu")))
    folder, steps = run / "checkpoints", state["trainer"]["steps"]
    # The file is whole at any moment, so that the set is complete all the time.
    FILE.write(folder / part_of(steps, 0), lambda file: torch.save(state, file))
    delete_sets(folder, but=(steps,))


def delete_marks(folder: Path, steps: int) -> None:
    """Makes the set of these steps incomplete."""
    for mark in folder.glob(f"step-{steps}-of-*.complete"):
        mark.unlink()


def delete_sets(folder: Path, but: tuple[int | None, ...] = ()) -> None:
    """Deletes all sets, complete or not, except those of these steps."""
    for pattern in (COMPLETE, PART):
        for path in folder.iterdir():
            match = pattern.fullmatch(path.name)
            if match and int(match[1]) not in but:
                path.unlink()


def delete(folder: Path) -> None:
    """Deletes all sets."""
    (folder / EARLIER).unlink(missing_ok=True)
    if folder.exists():
        delete_sets(folder)


def complete_sets(folder: Path) -> list[Set]:
    """The sets in a folder, the newest first."""
    if not folder.exists():
        return []
    matches = [COMPLETE.fullmatch(path.name) for path in folder.iterdir()]
    return sorted((Set(int(match[1]), int(match[2])) for match in matches if match), reverse=True)


def any_in(folder: Path) -> bool:
    """Whether a folder has a run's checkpoints, of any version."""
    return bool(complete_sets(folder)) or (folder / EARLIER).exists()


def _read(path: Path, device: torch.device, form: type) -> Any:
    """The content of a process's file.

    Raises:
        ValueError: it is damaged, or something else.
    """
    with FILE.reading(path) as file:
        try:
            return formed(torch.load(file, map_location=device, weights_only=True), form)
        except Exception as problem:  # torch.load can raise any error
            line = str(problem).partition("\n")[0]
            raise InvalidValue(
                f"expected what a training saves in {path}, got: {line}"
            ) from problem


def load(
    folder: Path, processes: ProcessGroup, world_size: int | None = None, form: type = dict
) -> dict[str, Any] | None:
    """This process's state from the newest set that no process finds damaged.

    All processes have to call it, and look for the sets that process 0 sees: one that sees fewer
    finds damaged ones, and none waits for it. A warning says so if a newer set is damaged.

    Args:
        folder: where the sets are.
        processes: the processes.
        world_size: how many processes must have written the set (None: any number).
        form: the type that a state has to have.

    Returns:
        The state; None if there is no set.

    Raises:
        ValueError: another number of processes wrote the newest set, or there are sets, but all are
            damaged or of an earlier version.
    """
    sets = processes.broadcast(complete_sets(folder), 0)
    if not sets and (folder / EARLIER).exists():
        raise InvalidValue(
            f"expected checkpoints with checksums, got those of an earlier version in {folder}: go "
            "on with the "
            "version that wrote them, or start a new run with --overwrite"
        )
    for complete in sets:
        if world_size not in (None, complete.world_size):
            raise InvalidValue(
                f"expected the number of processes that wrote the checkpoint in {folder} "
                f"({complete.world_size}), "
                f"got {world_size}"
            )
        problem = None
        try:
            state = _read(folder / part_of(complete.steps, processes.rank), processes.device, form)
        except ValueError as error:
            problem = error
        if not processes.any(problem is not None):
            return state
        if problem is not None:
            warnings.warn(
                f"left out the checkpoint of step {complete.steps}: {problem}", stacklevel=2
            )
    if sets:
        raise InvalidValue(
            f"expected a whole checkpoint in {folder}, got {len(sets)}, all of them damaged"
        )
    return None
