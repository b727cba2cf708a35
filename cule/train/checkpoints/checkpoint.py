"""Checkpoints: sets of files, one for each process, all written at the same step.

A set is complete once it has a mark, a file that is written after all others. So there is always a
complete set, even if a program is killed. The set before the newest stays, too: if a checksum
shows that a file of the newest is damaged, all processes continue from the older one. With
`keep_checkpoints` all stay.

All files are on process 0's machine; other machines that do not see its folder get theirs by
messages (transfer.py).

With as many processes as have written a set each one goes on from its own file. Others all go on
from process 0's, which has the networks, the optimizers and the counts (cule/train/dealing.py).
"""

from __future__ import annotations

import io
import re
import shutil
import socket
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from cule.disk.forms import formed
from cule.disk.sealed import Kind
from cule.errors import Failed, InvalidValue
from cule.train.checkpoints import transfer
from cule.train.checkpoints.contents import SavedRun
from cule.train.distributed.process_group import ProcessGroup

# The content is what torch.save writes.
FILE = Kind("checkpoint", 1)
COMPLETE = re.compile(r"step-(\d+)-of-(\d+)\.complete")
PART = re.compile(r"step-(\d+)-rank\d+\.pt")
# Names the newest set in older checkpoints, which have no checksums.
EARLIER = "latest.json"
# What the files of one set have in common, if there are several.
MARK = "set"


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


def of_steps(run: Path, steps: int, device: torch.device) -> dict[str, Any]:
    """The state of one of a run's checkpoints, that of its first process.

    Args:
        run: the run's folder.
        steps: of each env when it was written, as `complete_sets` has them.
        device: where its tensors are.

    Raises:
        ValueError: it is not there, or damaged.
    """
    path = run / "checkpoints" / part_of(steps, 0)
    with FILE.reading(path) as file:
        return dict(_loaded(file, path, device, SavedRun))


def networks_of(state: dict[str, Any]) -> dict[str, Any]:
    """The part of a checkpoint's state that evaluations and videos need."""
    names = ("steps", "updates", "networks", "attributes")
    trained = {name: state["trainer"][name] for name in names if name in state["trainer"]}
    return {**state, "trainer": trained}


def keep_networks(run: Path) -> None:
    """Reduces a training's checkpoints to what evaluations and videos need.

    The networks of the newest set stay, a hundredth of it; training cannot go on from them. Of
    several processes those of the first stay: all have the same.

    Raises:
        ValueError: there is no whole set, or the file cannot be written.
    """
    state = networks_of(newest(run, torch.device("cpu")))
    folder, steps = run / "checkpoints", state["trainer"]["steps"]
    # The file is whole at any moment, so that the set is complete all the time.
    FILE.write(folder / part_of(steps, 0), lambda file: torch.save(state, file))
    delete_sets(folder, but=(steps,))
    for path in folder.glob(f"step-{steps}-rank*.pt"):
        if path.name != part_of(steps, 0):
            path.unlink()


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


def _loaded(file: Any, where: Path, device: torch.device, form: type) -> Any:
    """The content of a process's file, which begins in an open file.

    Raises:
        ValueError: it is something else.
    """
    try:
        return formed(torch.load(file, map_location=device, weights_only=True), form)
    except Exception as problem:  # torch.load can raise any error
        line = str(problem).partition("\n")[0]
        raise InvalidValue(f"expected what a training saves in {where}, got: {line}") from problem


def _fetch(
    folder: Path, steps: int, own: bool, processes: ProcessGroup, form: type, group: Any
) -> Any:
    """The content of this process's file of a set, and for process 0 what far ones ask for.

    Args:
        folder: where the sets are.
        steps: of the set.
        own: each process has its own file; else all have that of process 0.
        processes: the processes.
        form: the type that the content has to have.
        group: by which far processes get theirs.

    Raises:
        ValueError: a file is damaged, or something else.
    """
    rank = processes.rank
    path = folder / part_of(steps, rank if own else 0)
    if rank in processes.far:
        content = io.BytesIO()
        try:
            transfer.Incoming(0, group).copy_to(content)
        except Failed as problem:
            raise InvalidValue(str(problem)) from problem
        content.seek(0)
        return _loaded(content, path, processes.device, form)
    _serve(folder, steps, processes, group, own=own)
    with FILE.reading(path) as file:
        return _loaded(file, path, processes.device, form)


def _serve(folder: Path, steps: int, processes: ProcessGroup, group: Any, *, own: bool) -> None:
    """Sends far processes the files of a set, if this is process 0.

    Raises:
        ValueError: one of them is damaged.
    """
    problem: ValueError | None = None
    for far in processes.far if processes.rank == 0 else ():
        try:
            transfer.send(partial(_copy, folder / part_of(steps, far if own else 0)), far, group)
        except ValueError as error:
            problem = error
    if problem is not None:
        raise problem


def _copy(path: Path, file: Any) -> None:
    """Copies the content of a process's file.

    Raises:
        ValueError: it is damaged.
    """
    with FILE.reading(path) as content:
        shutil.copyfileobj(content, file, transfer.PIECE_BYTES)


@dataclass(frozen=True)
class Found:
    """A checkpoint.

    Attributes:
        state: of this process; of process 0 where another number of processes has written it.
        world_size: how many processes have written it.
    """

    state: dict[str, Any]
    world_size: int


def load(folder: Path, processes: ProcessGroup, form: type = dict) -> dict[str, Any] | None:
    """The state of `find`; None: there is no set."""
    found = find(folder, processes, form)
    return None if found is None else found.state


def find(folder: Path, processes: ProcessGroup, form: type = dict) -> Found | None:
    """This process's state from the newest set that no process finds damaged.

    All processes have to call it, and look for the sets that process 0 sees: one that sees fewer
    finds damaged ones, and none waits for it. A warning says so if a newer set is damaged.

    Args:
        folder: where the sets are.
        processes: the processes.
        form: the type that a state has to have.

    Returns:
        None if there is no set.

    Raises:
        ValueError: there are sets, but all are damaged or of an earlier version, or they are on
            another machine than process 0.
    """
    sets = processes.broadcast(complete_sets(folder), 0)
    if not sets:
        _refuse_others(folder, processes)
    group = transfer.group_of(processes) if sets else None
    for complete in sets:
        own = complete.world_size == processes.size
        problem, state = None, {}
        # Far ones wait for each other's files, longer than a message may take.
        with processes.while_first_works():
            try:
                state = _fetch(folder, complete.steps, own, processes, form, group)
            except ValueError as error:
                problem = error
        fine = not processes.any(problem is not None)
        if fine:
            # Of one training and moment, whatever the names say.
            marks = processes.gather(state.get(MARK) if isinstance(state, dict) else None)
            if len({*marks}) == 1:
                return Found(state, complete.world_size)
            if marks[processes.rank] != marks[0]:
                problem = InvalidValue(
                    f"expected the parts of one checkpoint, got for process {processes.rank} that "
                    "of another training or moment than for process 0"
                )
        if problem is not None:
            warnings.warn(
                f"left out the checkpoint of step {complete.steps}: {problem}", stacklevel=2
            )
    if sets:
        raise InvalidValue(
            f"expected a whole checkpoint in {folder}, got {len(sets)}, all of them damaged"
        )
    return None


def _refuse_others(folder: Path, processes: ProcessGroup) -> None:
    """Refuses checkpoints that are not those of this version, on the machine of process 0.

    Raises:
        ValueError: there are others.
    """
    if processes.broadcast((folder / EARLIER).exists(), 0):
        raise InvalidValue(
            f"expected checkpoints with checksums, got those of an earlier version in {folder}: go "
            "on with the version that wrote them, or start a new run with --overwrite"
        )
    seen = processes.rank in processes.far and any_in(folder)
    hosts = [host for host in processes.gather(seen and socket.gethostname()) if host]
    if hosts:
        raise InvalidValue(
            f"expected checkpoints on the machine of process 0, whose {folder} has none, got some "
            f"on {hosts[0]}: let torchrun give that machine --node-rank 0, or copy the folder"
        )
