"""Claims: a folder or file that only one process writes to at a time.

A claim is the lock of a file beside what is claimed. The system releases it when the process ends,
however that happens, and a forked child does not have it. Linux gives NFS's server the same lock,
so that it holds between machines, too, unless the folder was mounted with local locks (`nolock`,
`local_lock`) or by a file system that has none; then a warning says so. A server may keep the lock
of a machine that has crashed until its lease is over, about 90 seconds.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import tempfile
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from cule.disk import descriptors
from cule.disk.files import identity_of, opened
from cule.errors import InvalidValue
from cule.processes.forks import after_fork_in_child

# The file has who holds it in one line, and what no other claim has in the next.
_MOST_BYTES = 300
_held: weakref.WeakSet[Claim] = weakref.WeakSet()


def _read(descriptor: int) -> tuple[str, str]:
    """Who holds a claim, in words, and the claim's mark."""
    text = descriptors.read_at(descriptor, _MOST_BYTES, 0).decode(errors="replace")
    holder, _, mark = text.partition("\n")
    return holder.strip(), mark.strip()


def seen_in(path: Path) -> str | None:
    """The mark of a claim, as this machine sees it; None: it sees no claim.

    Raises:
        OSError: the folder cannot be written, or the file cannot be read.
    """
    if not path.parent.is_dir():
        return None
    # NFS may still take the file to be missing, until something is written to the folder.
    with tempfile.TemporaryFile(dir=path.parent):
        pass
    with suppress(FileNotFoundError), opened(path) as file:
        return _read(file.fileno())[1]
    return None


class Claim:
    """A claim, until `release`, the end of a `with` block or that of the process.

    Args:
        path: the file whose lock it is; made, with its folder, if it is missing, and deleted at
            the end.
        what: what is claimed, in words, for the message.

    Attributes:
        path: the file.
        holder: who has it, in words; the file has that, too.
        mark: what no other claim has, of this file or of one on another machine.

    Raises:
        OSError: the file cannot be made.
        ValueError: another process has it, or this one does already.
    """

    _descriptor: int | None = None
    _identity: tuple[int, int] | None = None

    def __init__(self, path: Path, what: str):
        self.path, self.holder = path, f"process {os.getpid()} on {socket.gethostname()}"
        self.mark = secrets.token_hex(8)
        self._new_folders = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        while self._descriptor is None:
            self._try(what)
        _held.add(self)

    def _try(self, what: str) -> None:
        """Takes the lock, unless the file was deleted by who had it before."""
        flags, names = os.O_RDWR | os.O_CREAT, ("O_NOFOLLOW", "O_NONBLOCK")
        descriptor = descriptors.open_descriptor(self.path, flags, *names, mode=0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InvalidValue(f"expected a regular file or none at {self.path}, got another")
            try:
                descriptors.lock(descriptor, wait=False)
            except (BlockingIOError, PermissionError):
                holder = _read(descriptor)[0] or "another process"
                raise InvalidValue(
                    f"expected {what} that nothing else writes to at the same time, got "
                    f"{self.path.parent}, which {holder} uses ({self.path})"
                ) from None
            except OSError as problem:
                warnings.warn(
                    f"{self.path.parent} is on a file system without locks ({problem.strerror}): "
                    "nothing finds out if another process writes to it, too",
                    stacklevel=4,
                )
            if not self._is_at_path(descriptor):
                return
            os.ftruncate(descriptor, 0)
            text = f"{self.holder}\n{self.mark}\n"
            descriptors.write_at(descriptor, text.encode(), 0)
            with suppress(OSError):
                os.fsync(descriptor)  # so that other machines see it on NFS, too
            self._identity = identity_of(descriptor)
            self._descriptor, descriptor = descriptor, -1
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _is_at_path(self, descriptor: int) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), os.lstat(self.path))
        return False

    def release(self) -> None:
        """Gives it up. Can be called again."""
        descriptor = self._taken()
        if descriptor is None:
            return
        if descriptors.OPEN_FILES_MOVE:
            self._delete(descriptor)
        # Explicitly: a child that was not forked by Python may have the descriptor, too.
        with suppress(OSError):
            descriptors.unlock(descriptor)
        os.close(descriptor)
        if not descriptors.OPEN_FILES_MOVE:  # fails if the file is another process's by now
            self._delete(None)

    def _delete(self, descriptor: int | None) -> None:
        with suppress(OSError):
            if descriptor is None or self._is_at_path(descriptor):
                self.path.unlink()
            for folder in self._new_folders:
                folder.rmdir()  # unless something is in it now

    def forget(self) -> None:
        """In a forked child: lets the parent alone have it."""
        descriptor = self._taken()
        if descriptor is not None:
            os.close(descriptor)

    def _taken(self) -> int | None:
        """The descriptor, of which this object knows no more; None if it is that of another file.

        Programs close all their files, and open others under the same numbers.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None or identity_of(descriptor) != self._identity:
            return None
        return descriptor

    def __del__(self) -> None:
        self.release()

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _after_fork_in_child() -> None:
    for claim in list(_held):
        claim.forget()


after_fork_in_child(_after_fork_in_child)
