"""Signs of life between the processes of several machines, in torch's TCPStore.

A machine that loses its power or its network closes no connection, and a message to it waits. So a
thread of each process counts up a number in the store, and reads those of all others. One whose
number stays the same for longer than the timeout is lost. If the store itself says nothing, the
machine that keeps it is lost, or this one's network. A process that evaluates or compiles for long
is not: its thread counts on.

The store is torchrun's, or process 0's. Its calls may wait for ever on a dead connection, so that
they have a thread of their own, and another one judges (watchdog.py).
"""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass

import torch.distributed as dist

from cule.train.distributed.meeting import connect, torchrun_has_store
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.ranks import address

# Seconds between two signs of life; a tenth of the timeout if that is less.
MOST_SECONDS = 1.0
# Who has missed so many of its signs is taken to be at the other end of a broken connection.
MISSED = 3
# How long one that an error ends has to end with its own message, and others with theirs.
PATIENCE_SECONDS = 5.0
# What a process says when it leaves; the key for one that is lost, and the words for how.
LEFT, LOST, ENDED, SILENT = b"left", "lost", "ended", "silent"


@dataclass(frozen=True)
class Loss:
    """What was lost.

    Attributes:
        ranks: the processes; none: the machine that keeps the store.
        ended: they have certainly ended; else nothing was heard of them.
    """

    ranks: tuple[int, ...] = ()
    ended: bool = False


class Heartbeats:
    """Counts up this process's number and reads the others', until it is stopped.

    All processes have to make it.

    Args:
        processes: the processes.

    Attributes:
        interval: seconds between two signs of life.
        hosts: the names of the processes' machines, by rank.
    """

    def __init__(self, processes: ProcessGroup):
        self.timeout, self.rank = processes.timeout, processes.rank
        self.interval = min(MOST_SECONDS, self.timeout / 10)
        self.hosts = processes.gather(socket.gethostname())
        # An earlier watch of the same processes has left its numbers.
        part = processes.broadcast(str(time.time_ns()), 0)
        self._store = dist.PrefixStore(f"{processes.prefix} {part}", connect(self.timeout))
        self._keys = [str(rank) for rank in range(processes.size)]
        self._store.set(self._keys[self.rank], "0")
        processes.barrier()
        self._seen = [b""] * processes.size
        self._hear_all()
        self._broken: float | None = None
        # What this process says beside its number: that it leaves, or that another one is lost.
        self._leaves, self._lost = False, ""
        self._heard_of: Loss | None = None
        self._stop, self._wake, self._said = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _hear_all(self) -> None:
        """From now on all have to give signs."""
        self._judged = self._contact = now = time.monotonic()
        self._heard = [now] * len(self._keys)

    def _beat(self) -> None:
        """The thread that calls the store."""
        count = 0
        while not self._stop.is_set():
            count += 1
            last = self._leaves or bool(self._lost)
            try:
                self._talk(LEFT.decode() if self._leaves else str(count))
                self._broken = None
            except RuntimeError:
                self._broken = self._broken or time.monotonic()
            if last:
                self._said.set()
            self._wake.wait(self.interval)
            self._wake.clear()

    def _talk(self, own: str) -> None:
        if self._lost:
            self._store.set(LOST, self._lost)
        self._store.set(self._keys[self.rank], own)
        values, now = self._store.multi_get(self._keys), time.monotonic()
        for rank, value in enumerate(values):
            if value != self._seen[rank]:
                self._seen[rank], self._heard[rank] = value, now
        self._contact = now
        if self._store.check([LOST]):
            number, how = self._store.get(LOST).decode().split()
            self._heard_of = Loss((int(number),), ended=how == ENDED)

    def loss(self) -> Loss | None:
        """What is lost; None: nothing. It is to be called at each interval."""
        now = time.monotonic()
        if now - self._judged > MISSED * self.interval + PATIENCE_SECONDS:
            self._hear_all()  # this process was stopped, and could hear nobody
        self._judged = now
        if self._heard_of is not None and self._heard_of.ranks != (self.rank,):
            return self._heard_of
        if self._broken is not None and now - self._broken > PATIENCE_SECONDS:
            return Loss(ended=True)
        if now - self._contact > self.timeout:
            return Loss()
        left = [rank for rank in self._silent(PATIENCE_SECONDS) if self._seen[rank] == LEFT]
        if left:
            return Loss(tuple(left), ended=True)
        silent = self._silent(self.timeout)
        return Loss(tuple(silent)) if silent else None

    def _silent(self, seconds: float) -> list[int]:
        """The processes of which nothing was heard for so long, while the store could be read."""
        return [r for r, heard in enumerate(self._heard)
                if r != self.rank and self._contact - heard > seconds]  # fmt: skip

    def suspected(self) -> Loss | None:
        """What a connection that has broken led to, as far as signs of life say it."""
        if self._broken is not None:
            return Loss(ended=True)
        silent = self._silent(MISSED * self.interval)
        return Loss(tuple(silent), ended=True) if silent else None

    def where(self, loss: Loss) -> str:
        """What is lost, in words without a role: its machine, if it is another one."""
        if not loss.ranks:
            return f"the machine with the processes' store ({address()[0]})"
        host = self.hosts[loss.ranks[0]]
        return "" if host == self.hosts[self.rank] else f" on {host}"

    def tell(self, rank: int, *, ended: bool) -> None:
        """Tells all what has become of a process; those that keep the store stay until all know it.

        Waits for the store, but not for long.

        Args:
            rank: the process.
            ended: as of Loss.
        """
        self._lost = f"{rank} {ENDED if ended else SILENT}"
        self._say()
        if self.rank == 0 and not torchrun_has_store():
            time.sleep(MISSED * self.interval)

    def leave(self) -> None:
        """Tells all that this process ends by an error, and stops."""
        self._leaves = True
        self._say()
        self.stop()

    def _say(self) -> None:
        self._wake.set()
        self._said.wait(MOST_SECONDS)

    def stop(self) -> None:
        """Ends the thread, unless it waits for the store."""
        self._stop.set()
        self._wake.set()
        self._thread.join(MOST_SECONDS)
