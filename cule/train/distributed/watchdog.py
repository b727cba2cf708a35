"""Ends this process with a sentence when another one of the same training or search has ended.

A process that is killed cannot say so, and the others would wait for its messages: with NCCL until
a timeout. Linux tells when a process of this machine ends by a pidfd (pidfd_open(2)), which a
thread waits for; of other machines' processes, heartbeats.py does. If torchrun itself is killed,
the processes that it started would keep their GPUs until the training's end: so its end is waited
for, too. An error of a connection becomes a sentence that names who was at its other end.
"""

from __future__ import annotations

import os
import select
import sys
import threading

from cule.train.distributed.heartbeats import PATIENCE_SECONDS, Heartbeats, Loss
from cule.train.distributed.meeting import first_line, is_of_connection
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.ranks import machine

STATUS = 2
# The end of the sentence if the processes train.
RESUME = "--resume goes on from the newest checkpoint"
# A variable that torchrun gives to the processes that it starts.
BY_TORCHRUN = "TORCHELASTIC_RUN_ID"


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
        self._beats: Heartbeats | None = None
        self._ending = threading.Lock()

    def __enter__(self) -> Watchdog:
        if not hasattr(os, "pidfd_open"):
            return self
        watched = {}
        for pid, rank in self._others().items():
            try:
                watched[os.pidfd_open(pid)] = rank
            except ProcessLookupError:
                self._end_after(rank)
            except OSError:  # not allowed here
                continue
        if self.processes.size > 1:
            self._beats = Heartbeats(self.processes)
        if not watched and self._beats is None:
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
        here = machine()
        for rank, (its, pid) in enumerate(self.processes.gather((here, os.getpid()))):
            if rank != self.processes.rank and its == here:
                others[pid] = rank
        if BY_TORCHRUN in os.environ:
            others[os.getppid()] = None
        return others

    def _watch(self, watched: dict[int, int | None]) -> None:
        """The thread that waits for the end of a process, and asks for signs of life."""
        poll, beats = select.poll(), self._beats
        for handle in (*watched, self._stop):
            poll.register(handle, select.POLLIN)
        wait = None if beats is None else 1000 * beats.interval
        while not (ready := {handle for handle, _ in poll.poll(wait)}):
            if beats is not None and (loss := beats.loss()) is not None:
                self._end_without(loss)
        if self._stop not in ready:
            self._end_after(watched[ready.pop()])
        for handle in (*watched, self._stop):
            os.close(handle)

    def _end_after(self, rank: int | None) -> None:
        """Ends this process after the end of another one of this machine, or of torchrun."""
        if rank is not None and self._beats is not None:
            self._beats.tell(rank, ended=True)  # as other machines do not see it
        self._end(
            f"expected {'torchrun' if rank is None else self._named((rank,))} to go on, but it has "
            f"ended, and so does process {self.processes.rank} ({self.processes.role})"
        )

    def _end_without(self, loss: Loss) -> None:
        """Ends this process when nothing is heard any more of others, or of the store."""
        assert self._beats is not None
        if loss.ranks:
            # As this process may be all that others hear.
            self._beats.tell(loss.ranks[0], ended=loss.ended)
        what = self._named(loss.ranks) + self._beats.where(loss)
        me = f"process {self.processes.rank} ({self.processes.role})"
        if loss.ended:
            it_has = "they have" if len(loss.ranks) > 1 else "it has"
            self._end(f"expected {what} to go on, but {it_has} ended, and so does {me}")
        seconds = self._beats.timeout
        self._end(
            f"expected {what} to go on, but nothing was heard of it for {seconds:g} seconds, and "
            f"{me} ends"
        )

    def _named(self, ranks: tuple[int, ...]) -> str:
        return " and ".join(f"process {rank} ({self.processes.role_of(rank)})" for rank in ranks)

    def _end(self, sentence: str) -> None:
        """Ends this process, whose main thread may wait for a GPU for ever; says why once."""
        self._ending.acquire()  # for ever: another thread is ending the process
        sys.stderr.write(f"{sentence}; {self.advice}\n")
        sys.stderr.flush()
        os._exit(STATUS)

    def _end_by(self, problem: BaseException) -> None:
        """Ends this process after an error of a connection, if that is what it is.

        Who was at the other end may be found out in a moment: then that is the sentence.
        """
        assert self._thread is not None
        self._thread.join(PATIENCE_SECONDS)
        if not is_of_connection(problem) or self._beats is None:
            return
        loss = self._beats.suspected()
        if loss is not None:
            self._end_without(loss)
        self._end(
            "expected all processes to go on, but the connection to another one has failed "
            f"({first_line(problem)}), and process {self.processes.rank} "
            f"({self.processes.role}) ends"
        )

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: object
    ) -> None:
        if self._thread is None:
            return
        try:
            if kind is None:
                self.processes.barrier()
            elif isinstance(problem, RuntimeError):
                self._end_by(problem)
        except RuntimeError as broken:
            self._end_by(broken)
            raise
        finally:
            if self._beats is not None and kind is not None:
                self._beats.leave()
            # Others may end at once.
            os.eventfd_write(self._stop, 1)
            self._thread.join()
            if self._beats is not None and kind is None:
                self._beats.stop()
