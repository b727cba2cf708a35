"""How processes that train together meet: by torch's TCPStore, at MASTER_ADDR and MASTER_PORT.

Each says that it has come, and with what it cannot go on, before any waits for another one's
message. So wrong numbers, a layout that does not fit one machine, and processes that do not come
end all the others with a sentence, and not with a wait of half an hour.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

from cule.errors import Failed, InvalidValue
from cule.train.distributed.ranks import address

# How often this process has joined others.
_JOINED = itertools.count()
# How long one that keeps the store stays, so that the others read why it ends.
FAREWELL_SECONDS = 1.0
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
        ValueError: `prepare` has failed here or elsewhere, two processes have the same number, they
            do not agree on how many there are, or one has not come.
    """
    where, end = ":".join(map(str, address())), time.monotonic() + seconds
    try:
        connected = connect(seconds, serve=rank == 0)
    except RuntimeError as problem:
        raise Failed(
            f"expected {size} processes to meet at {where} (MASTER_ADDR and MASTER_PORT) within "
            f"{seconds:g} seconds, got none there for process {rank}: {first_line(problem)}"
        ) from problem
    # Each time a part of the store of its own: else one that joins again may find addresses of the
    # last time.
    prefix = f"joined {next(_JOINED)}"
    store, all_came = dist.PrefixStore(prefix, connected), False
    try:
        _come(store, rank, size, end, prepare)
        all_came = True
        return store, prefix
    except dist.DistError as problem:
        missing = _missing(store, size)
        raise Failed(
            f"expected {size} processes to meet at {where} within {seconds:g} seconds, but "
            f"{missing or first_line(problem)}"
        ) from problem
    finally:
        if rank == 0 and not all_came and not torchrun_has_store():
            time.sleep(FAREWELL_SECONDS)


def _come(store: dist.Store, rank: int, size: int, end: float, prepare: Callable[[], None]) -> None:
    """Says that this process has come; waits for all others, or for a reason not to go on."""
    try:
        if store.add(f"process {rank}", 1) > 1:
            raise InvalidValue(
                f"expected a RANK of its own for each of {size} processes that train together, got "
                f"{rank} twice, once on {socket.gethostname()}"
            )
        told = store.compare_set("size", "", str(size)).decode()
        if told != str(size):
            raise InvalidValue(
                f"expected one WORLD_SIZE for all processes that train together, got {size} for "
                f"process {rank} and {told} for others"
            )
        prepare()
    except Exception as problem:
        store.set("refused", f"process {rank} on {socket.gethostname()}: {problem}")
        store.set("go", "")
        raise
    if store.add("came", 1) == size:
        store.set("go", "")
    store.wait(["go"], timedelta(seconds=max(0.001, end - time.monotonic())))
    if store.check(["refused"]):
        raise InvalidValue(
            "expected all processes to go on, but another one failed, "
            f"{store.get('refused').decode()}"
        )


def _missing(store: dist.Store, size: int) -> str:
    """Which processes have not come, in words; "": the store is gone, or all have."""
    try:
        missing = [str(rank) for rank in range(size) if not store.check([f"process {rank}"])]
    except RuntimeError:
        return ""
    named = ", ".join(missing[:_MOST_NAMED]) + (", ..." if len(missing) > _MOST_NAMED else "")
    return f"{named} of them {'has' if len(missing) == 1 else 'have'} not come" if missing else ""
