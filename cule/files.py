"""Files that are there whole or not at all, and what is appended to files whole or not at all.

A new file has a temporary name, in the folder where it belongs, until it is whole. Its writer holds a
lock on it. A killed process loses its locks: whoever next writes the same file deletes what such a
process has left.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# The temporary name: short however long the file's own name is, which it holds a digest of.
_PART = re.compile(r"\.cule-([0-9a-f]{16})-[0-9a-f]{16}\.part(\.\w+)?")
_NO_REGULAR_FILES = {
    stat.S_IFDIR: (errno.EISDIR, "Is a directory"),
    stat.S_IFIFO: (errno.EINVAL, "Is a FIFO, not a regular file"),
    stat.S_IFSOCK: (errno.EINVAL, "Is a socket, not a regular file"),
    stat.S_IFCHR: (errno.EINVAL, "Is a device, not a regular file"),
    stat.S_IFBLK: (errno.EINVAL, "Is a device, not a regular file"),
    stat.S_IFLNK: (errno.ELOOP, os.strerror(errno.ELOOP)),
}


def _check_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(*_NO_REGULAR_FILES.get(stat.S_IFMT(mode), (errno.EINVAL, "Is no regular file")))


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Lets every OSError name this file, not the temporary one or none."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None or _PART.search(str(problem.filename)):
            problem.filename, problem.filename2 = str(path), None
        raise


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Whether the file is locked now: not if another has it or the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


# Reading -----------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Gives a regular file to read, and never waits, as a FIFO would let it.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with _naming(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _check_regular(os.fstat(descriptor).st_mode)
            with open(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)


# Replacing ---------------------------------------------------------------------------------------


def _digest(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def delete_stale(folder: Path, name: str | None = None) -> None:
    """Deletes temporary files of writers that are dead: of the file of this name (None: of all).

    Nothing happens where the folder cannot be read or its file system has no locks.
    """
    with suppress(OSError):
        for part in os.listdir(folder):
            match = _PART.fullmatch(part)
            if match is None or (name is not None and match[1] != _digest(name)):
                continue
            with suppress(OSError):
                flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(folder / part, flags)
                try:
                    if _lock(descriptor, wait=False):
                        os.unlink(folder / part)
                finally:
                    os.close(descriptor)


class Unfinished:
    """A new file that takes its place at the end, by `finish`, or never, by `abandon`.

    It has the mode of the file whose place it takes, or what the umask leaves of 0666.

    Args:
        path: the place. A link is followed.
        suffix: what the temporary name has to end with, such as ".mp4".

    Attributes:
        path: the temporary name.

    Raises:
        OSError: it cannot be made, or there is something at `path` that is no regular file.
    """

    _descriptor: int | None = None

    def __init__(self, path: Path, suffix: str = ""):
        self._asked = path
        with _naming(path):
            # Also where a link leads to nothing yet.
            self._target = Path(os.path.realpath(path))
            before = None
            with suppress(FileNotFoundError):
                before = os.lstat(self._target)
                _check_regular(before.st_mode)
            delete_stale(self._target.parent, self._target.name)
            self.path, self._descriptor = self._make(suffix, 0o666 if before is None else 0o600)
            if before is not None:
                self._take_after(before)

    def _make(self, suffix: str, mode: int) -> tuple[Path, int]:
        """A new, locked file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        while True:
            name = f".cule-{_digest(self._target.name)}-{secrets.token_hex(8)}.part{suffix}"
            path = self._target.parent / name
            descriptor = os.open(path, flags, mode)
            _lock(descriptor, wait=True)
            # Another process may have deleted it as stale before the lock.
            if os.path.lexists(path):
                return path, descriptor
            os.close(descriptor)

    def _take_after(self, before: os.stat_result) -> None:
        """Gives the file the group, the mode and, as root may, the owner of another one."""
        assert self._descriptor is not None
        for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
            with suppress(OSError):
                os.fchown(self._descriptor, owner, group)
        with suppress(OSError):  # some file systems have no modes
            os.fchmod(self._descriptor, stat.S_IMODE(before.st_mode))

    def open(self) -> BinaryIO:
        """The file, to be written and then closed."""
        assert self._descriptor is not None
        return os.fdopen(os.dup(self._descriptor), "wb")

    def finish(self) -> None:
        """Puts the file in its place, and sees to it that it is on the disk.

        Raises:
            OSError: that cannot be; the file is gone then, and its place is as it was.
        """
        assert self._descriptor is not None
        try:
            with _naming(self._asked):
                os.fsync(self._descriptor)
                os.replace(self.path, self._target)
        finally:
            self.abandon()
        with suppress(OSError):  # not all file systems know how, and the file is in its place
            folder = os.open(self._target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def abandon(self) -> None:
        """Deletes the file, unless it is in its place. May be called again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
            os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Gives a binary file that takes the place of `path` when the block ends, unless that raises.

    So there is, at any moment, what was there before or the whole new file. Several threads and
    processes may do so at once: one of their files stays. A link is followed, and the mode of the
    file that was there is kept.

    Raises:
        OSError: it cannot be written, or there is something that is no regular file.
    """
    unfinished = Unfinished(path)
    try:
        with _naming(path), unfinished.open() as file:
            yield file
        unfinished.finish()
    finally:
        unfinished.abandon()


# Appending ---------------------------------------------------------------------------------------


@contextmanager
def _appending(path: Path) -> Iterator[tuple[int, int | None]]:
    """Gives the descriptor and the size of a file that is locked, and is as it was where the block raises.

    What is no regular file, such as /dev/stdout, has no size (None), and no way back.
    """
    with _naming(path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                yield descriptor, None
                return
            _lock(descriptor, wait=True)
            size = os.fstat(descriptor).st_size
            try:
                yield descriptor, size
            except BaseException:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def append(path: Path, content: bytes) -> None:
    """Appends all of it to a file, which is made if it is not there, or nothing.

    Raises:
        OSError: it cannot be written.
    """
    with _appending(path) as (descriptor, _):
        _write(descriptor, content)


def append_line(path: Path, line: str, *, once: bool = False, durable: bool = True) -> None:
    """Appends a whole line to a file, which is made if it is not there, or nothing.

    It is a line of its own also where the file's last one lacks its end.

    Args:
        path: the file.
        line: without its end.
        once: append nothing where the file has this line.
        durable: wait until it is on the disk.

    Raises:
        OSError: it cannot be written.
    """
    content = line.encode()
    with _appending(path) as (descriptor, size):
        if size and once:
            with open(os.dup(descriptor), "rb") as file:
                file.seek(0)
                if any(known.rstrip(b"\n") == content for known in file):
                    return
        torn = size is not None and size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        _write(descriptor, b"\n" * torn + content + b"\n")
        if durable and size is not None:
            os.fsync(descriptor)
