"""Ends this process with a sentence when another one of the same training or search has ended.

A process that is killed cannot say so, and the others would wait for its messages: with NCCL until
a timeout. Linux tells when a process ends by a pidfd (pidfd_open(2)), which a thread waits for.
Processes of other machines are left to torchrun. If torchrun itself is killed, the processes that
it started would keep their GPUs until the training's end: so its end is waited for, too.
"""

from __future__ import annotations

import os
import select
import sys
import threading

import torch
import torch.distributed as dist

from cule.train.distributed.process_group import ProcessGroup

STATUS = 2
# The end of the sentence if the processes train.
RESUME = "--resume goes on from the newest checkpoint"
# A variable that torchrun gives to the processes that it starts.
BY_TORCHRUN = "TORCHELASTIC_RUN_ID"
# How long an error of a connection waits for the thread to find out who has ended.
PATIENCE_SECONDS = 5.0


class Watchdog:
    """While a `with` block runs, the end of another process, or of torchrun, ends this one.

    At the end of the block all processes wait for each other, unless it is left by an error.

    Args:
        processes: the processes.
        advice: what to do then; the sentence ends with it.
    """

    def __init__(self, processes: ProcessGroup, advice: str = RESUME):
        self.processes, self.advice = processes, advice
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watchdog:
        if not hasattr(os, "pidfd_open"):
            return self
        watched = {}
        for pid, rank in self._others().items():
            try:
                watched[os.pidfd_open(pid)] = rank
            except ProcessLookupError:
                self._end(rank)
            except OSError:  # not allowed here
                continue
        if not watched:
            return self
        self._stop = os.eventfd(0)
        self._thread = threading.Thread(target=self._watch, args=(watched,), daemon=True)
        self._thread.start()
        return self

    def name_by(self, processes: ProcessGroup) -> None:
        """Names processes by what they do in another layout from now on.

        Args:
            processes: the same ones with that layout.
        """
        self.processes = processes

    def _others(self) -> dict[int, int | None]:
        """The ranks of this machine's other processes by their ids; torchrun's is None."""
        others: dict[int, int | None] = {}
        if self.processes.size > 1:
            for rank, (machine, pid) in enumerate(self._ids()):
                if rank != self.processes.rank and machine == _machine():
                    others[pid] = rank
        if BY_TORCHRUN in os.environ:
            others[os.getppid()] = None
        return others

    def _ids(self) -> list[list[int]]:
        """The machine and the process id of each process."""
        mine = torch.tensor([_machine(), os.getpid()])
        gathered = [torch.zeros_like(mine) for _ in range(self.processes.size)]
        dist.all_gather(gathered, mine)
        return [one.tolist() for one in gathered]

    def _watch(self, watched: dict[int, int | None]) -> None:
        poll = select.poll()
        for handle in (*watched, self._stop):
            poll.register(handle, select.POLLIN)
        ready = {handle for handle, _ in poll.poll()}
        if self._stop not in ready:
            self._end(watched[ready.pop()])
        for handle in (*watched, self._stop):
            os.close(handle)

    def _end(self, rank: int | None) -> None:
        """Ends this process, whose main thread may wait for a GPU for ever."""
        name = "torchrun" if rank is None else f"process {rank} ({self.processes.role_of(rank)})"
        sys.stderr.write(
            f"expected {name} to go on, but it has ended, and so does process "
            f"{self.processes.rank} ({self.processes.role}); {self.advice}\n"
        )
        sys.stderr.flush()
        os._exit(STATUS)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        thread = self._thread
        if thread is None:
            return
        try:
            if kind is None:
                self.processes.barrier()
            elif issubclass(kind, RuntimeError):
                thread.join(PATIENCE_SECONDS)
        except RuntimeError:
            thread.join(PATIENCE_SECONDS)
            raise
        finally:
            os.eventfd_write(self._stop, 1)
            thread.join()


def _machine() -> int:
    """The number that torchrun gives this machine."""
    return int(os.environ.get("GROUP_RANK", "0"))
