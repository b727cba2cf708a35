"""Writes sets of checkpoints while a training goes on.

A thread writes a process's file: with 8,192 envs it has 1.4 GB. All files are on process 0's
machine; those of processes that do not see its folder go there by messages (transfer.py). The set
of a single process is complete with its file, that of several once all of them know of all files.
"""

from __future__ import annotations

import secrets
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

from cule.disk.files import delete_stale, replacing
from cule.train.checkpoints import transfer
from cule.train.checkpoints.checkpoint import FILE, MARK, delete_marks, delete_sets, part_of
from cule.train.distributed.process_group import ASKED_EVERY, ProcessGroup


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
        keep: whether sets before the newest two stay.
    """

    def __init__(self, folder: Path, processes: ProcessGroup, *, keep: bool = False):
        self.folder, self.processes, self.keep = folder, processes, keep
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        # The thread's messages are among themselves.
        self._group = transfer.group_of(processes)
        # The set that is being written: its steps, those of the set before, and the thread's work.
        self._begun: tuple[int, int | None, Future[None]] | None = None

    def begin(self, steps: int, state: dict[str, Any], before: int | None = None) -> None:
        """Begins to write a set, once the last one is complete.

        Args:
            steps: of each env so far; the set is named after them.
            state: a value for torch.save, which may change as soon as this returns.
            before: the steps of another set that stays; all others are deleted at the end, unless
                all are kept.

        Raises:
            ValueError: a process cannot write this set or the last one.
        """
        self.finish()
        processes = self.processes
        with processes.all_or_none():
            if processes.rank not in processes.far:
                self.folder.mkdir(parents=True, exist_ok=True)
            if processes.rank == 0:
                # The set is incomplete while its files are replaced one by one.
                delete_marks(self.folder, steps)
            saved = on_host(state)
        if processes.size > 1:
            mark = secrets.token_hex(8) if processes.rank == 0 else None
            saved[MARK] = processes.broadcast(mark, 0)
        self._begun = steps, before, self._thread.submit(self._write, steps, before, saved)

    def _write(self, steps: int, before: int | None, saved: dict[str, Any]) -> None:
        """Writes this process's file, and process 0 those of far ones, which send them."""
        processes = self.processes
        if processes.rank in processes.far:
            transfer.send(partial(torch.save, saved), 0, self._group)
            return
        problem: Exception | None = None
        for rank in (processes.rank, *(processes.far if processes.rank == 0 else ())):
            incoming = None if rank == processes.rank else transfer.Incoming(rank, self._group)
            write = partial(torch.save, saved) if incoming is None else incoming.copy_to
            try:
                FILE.write(self.folder / part_of(steps, rank), write)
            except Exception as error:
                problem = problem or error
                if incoming is not None:
                    with suppress(RuntimeError):
                        incoming.drain()
        if problem is not None:
            raise problem
        if processes.size == 1:
            self._complete(steps, before)

    def _complete(self, steps: int, before: int | None) -> None:
        """Marks a set as complete, and deletes older ones."""
        with replacing(self.folder / f"step-{steps}-of-{self.processes.size}.complete"):
            pass
        if not self.keep:
            delete_sets(self.folder, but=(steps, before))
        delete_stale(self.folder)

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
        # Not in one message, as files may take longer than its timeout.
        while self.processes.size > 1 and self.processes.any(not wait([written], ASKED_EVERY).done):
            pass
        with self.processes.all_or_none():
            written.result()
        with self.processes.all_or_none():
            if self.processes.size > 1 and self.processes.rank == 0:
                self._complete(steps, before)

    def close(self) -> None:
        """Ends the thread. After an error a single process's set is still completed."""
        if self.processes.size == 1:
            with suppress(ValueError):
                self.finish()
        self._thread.shutdown()
