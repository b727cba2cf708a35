"""How processes that train together meet: by torch's TCPStore, at MASTER_ADDR and MASTER_PORT.

Each says that it has come, and with what it cannot go on, before any waits for another one's
message. So wrong numbers, a layout that does not fit one machine, and processes that do not come
end all the others with a sentence, and not with a wait of half an hour.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import NoReturn

import torch.distributed as dist

from cule.errors import Failed, InvalidValue
from cule.train.distributed.ranks import address

# How long one that keeps the store stays, so that the others read why it ends.
FAREWELL_SECONDS = 1.0
REFUSED = "refused"
# How long one waits for a newer round where this one was refused.
NEWER_SECONDS = 3.0
POLL = 0.02  # seconds between two looks at the store
_MOST_NAMED = 8


def is_of_connection(problem: BaseException | None) -> bool:
    """Whether an error says that a message to or from another process has failed."""
    if isinstance(problem, dist.DistError):
        return True
    words = str(problem).lower()
    return isinstance(problem, RuntimeError) and ("gloo" in words or "nccl" in words)


def first_line(problem: BaseException) -> str:
    """The first line of an error, without the place in torch's source."""
    return str(problem).partition("\n")[0].rpartition("] ")[2][:200] or type(problem).__name__


def connect(seconds: float, *, serve: bool = False) -> dist.TCPStore:
    """A connection of its own to the store; with `serve` this process keeps it for the others.

    Args:
        seconds: for how long it tries.
        serve: whether this is the first process, which keeps the store unless torchrun does.

    Raises:
        RuntimeError: nothing can be reached there, or its port is taken.
    """
    host, port = address()
    return dist.TCPStore(
        host, port, is_master=serve and not torchrun_has_store(), wait_for_workers=False,
        multi_tenant=True, timeout=timedelta(seconds=seconds),
    )  # fmt: skip


def torchrun_has_store() -> bool:
    """Whether torchrun keeps the store, and not process 0."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def meet(
    rank: int, size: int, seconds: float, prepare: Callable[[], None]
) -> tuple[dist.Store, str]:
    """Waits until all processes have come; returns a store of their own, and its prefix.

    Args:
        rank: of this process.
        size: how many there are.
        seconds: for how long it waits.
        prepare: what may fail in one of them; then all end.

    Raises:
        RuntimeError: one has not come in time.
        ValueError: `prepare` has failed here or elsewhere, two processes have the same number, or
            they do not agree on how many there are.
    """
    where, end = ":".join(map(str, address())), time.monotonic() + seconds
    wanted = f"expected {size} processes to meet at {where} within {seconds:g} seconds"
    try:
        connected = connect(seconds, serve=rank == 0)
    except RuntimeError as problem:
        raise Failed(
            f"{wanted} (MASTER_ADDR and MASTER_PORT), got nothing there for process {rank}: "
            f"{first_line(problem)}"
        ) from problem
    all_came = False
    try:
        part = _new_round(connected) if rank == 0 else _round_of_first(connected, rank, end)
        store = dist.PrefixStore(part, connected)
        _come(store, rank, size, prepare)
        _wait(store, rank, size, end)
        all_came = True
        return store, part
    except dist.DistError as problem:
        raise Failed(f"{wanted}, but {first_line(problem)}") from problem
    except TimeoutError as problem:
        raise Failed(f"{wanted}, but {problem}") from problem
    finally:
        if rank == 0 and not all_came and not torchrun_has_store():
            time.sleep(FAREWELL_SECONDS)


def _new_round(connected: dist.Store) -> str:
    """A part of the store that nobody has used; process 0 tells the others its name."""
    part = f"round {connected.add('rounds', 1)}"
    connected.set("round", part)
    return part


def _round_of_first(connected: dist.Store, rank: int, end: float) -> str:
    """The part of the store in which process 0 waits for this one.

    torchrun's store may still have that of a process 0 that has ended, which gives no answer.
    """
    part, token, refused = "", secrets.token_hex(8), None
    while time.monotonic() < end:
        now = connected.get("round").decode() if connected.check(["round"]) else ""
        store = dist.PrefixStore(now, connected)
        if now != part:
            store.set(f"process {rank}", token)
            store.add(f"processes {rank}", 1)  # another one of this number may replace the token
            part = now
        answer = f"answer to {rank}"
        if part and store.check([answer]) and store.get(answer).decode() == token:
            return part
        # It may be that of processes before these, which torchrun has started again.
        if part and store.check([REFUSED]):
            refused = refused or (part, time.monotonic())
            if refused[0] != part:
                refused = part, time.monotonic()
            if time.monotonic() - refused[1] > NEWER_SECONDS:
                _raise_refused(store)
        time.sleep(POLL)
    raise TimeoutError("process 0 has not come")


def _come(store: dist.Store, rank: int, size: int, prepare: Callable[[], None]) -> None:
    """Says that this process has come, or what it cannot go on with."""
    try:
        told = store.compare_set("size", "", str(size)).decode()
        if told != str(size):
            raise InvalidValue(
                f"expected one WORLD_SIZE for all processes that train together, got {size} for "
                f"process {rank} and {told} for others"
            )
        prepare()
    except Exception as problem:
        store.set(REFUSED, f"process {rank} on {socket.gethostname()}: {problem}")
        raise
    if store.add("came", 1) == size:
        store.set("go", "")


def _wait(store: dist.Store, rank: int, size: int, end: float) -> None:
    """Waits for all others; process 0 answers them.

    Raises:
        TimeoutError: some have not come.
        ValueError: one cannot go on.
    """
    came: set[int] = set()
    while not store.check(["go"]):
        if store.check([REFUSED]):
            _raise_refused(store)
        if time.monotonic() > end:
            raise TimeoutError(_missing(came, size) if rank == 0 else "not all of them have come")
        for other in range(1, size if rank == 0 else 1):
            count = store.add(f"processes {other}", 0)
            if count > 1:
                twice = (
                    f"expected a RANK of its own for each of {size} processes, got {other} twice"
                )
                store.set(REFUSED, twice)
                raise InvalidValue(twice)
            if count:
                came.add(other)
                store.set(f"answer to {other}", store.get(f"process {other}").decode())
        time.sleep(POLL)


def _raise_refused(store: dist.Store) -> NoReturn:
    """Raises what another process has said that it cannot go on with."""
    raise InvalidValue(
        f"expected all processes to go on, but another one failed: {store.get(REFUSED).decode()}"
    )


def _missing(came: Collection[int], size: int) -> str:
    """Which processes have not come, in words."""
    missing = [str(rank) for rank in range(1, size) if rank not in came]
    named = ", ".join(missing[:_MOST_NAMED]) + (", ..." if len(missing) > _MOST_NAMED else "")
    return f"{named} of them {'has' if len(missing) == 1 else 'have'} not come"
