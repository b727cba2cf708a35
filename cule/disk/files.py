"""Writes files, and appends to files, completely or not at all.

A new file has a temporary name, in the folder where it belongs, until it is complete. Its writer
holds a lock on it. A killed process loses its locks: the next writer of the same file deletes what
that process has left.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cule.disk import descriptors
from cule.processes.forks import leave_in_child

# The temporary name has a digest of the file's name, so that it is never too long.
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
        raise OSError(
            *_NO_REGULAR_FILES.get(stat.S_IFMT(mode), (errno.EINVAL, "Is no regular file"))
        )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Lets every OSError name this file, not the temporary one or none."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None or _PART.search(str(problem.filename)):
            problem.filename = str(path)
            del problem.filename2  # None would be shown as a name
        raise


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Locks the file; False if another process has the lock or the file system has no locks."""
    try:
        descriptors.lock(descriptor, wait=wait)
    except OSError:
        return False
    return True


def is_own(status: os.stat_result, owner: int | None = None) -> bool:
    """Whether a file belongs to this user, or to root, and only they can write to it.

    Args:
        status: the file's.
        owner: another user to whom it may belong as well.
    """
    shared = descriptors.is_shared(status) and not status.st_mode & stat.S_ISVTX
    return status.st_uid in (descriptors.user(), 0, owner) and not shared


# Reading -----------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path, *, own: bool = False, owner: int | None = None) -> Iterator[BinaryIO]:
    """Opens a regular file for reading. Never waits, as opening a FIFO would.

    Args:
        path: the file.
        own: it has to belong to this user or to root, as has its folder, and to be no link.
        owner: with `own`, another user to whom both may belong.

    Raises:
        OSError: it cannot be read, or is no such file.
    """
    with _naming(path):
        names = ("O_NONBLOCK", "O_NOFOLLOW") if own else ("O_NONBLOCK",)
        descriptor = descriptors.open_descriptor(path, os.O_RDONLY, *names)
        try:
            found = os.fstat(descriptor)
            _check_regular(found.st_mode)
            if own and not all(is_own(one, owner) for one in (found, os.stat(path.parent))):
                raise PermissionError(errno.EPERM, "Belongs to another user")
            with open(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)


def content_of(path: Path, most: int = 1 << 28, *, own: bool = False) -> bytes:
    """All bytes of a regular file. Never waits.

    Args:
        path: the file.
        most: bytes that it may have.
        own: as in `opened`.

    Raises:
        OSError: it cannot be read, is no regular file or has more bytes.
    """
    with opened(path, own=own) as file, _naming(path):
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read()


# Replacing ---------------------------------------------------------------------------------------


def _digest(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def delete_stale(folder: Path, name: str | None = None) -> None:
    """Deletes the temporary files of dead writers of the file of this name (None: of any file).

    Does nothing if the folder cannot be read or its file system has no locks.
    """
    with suppress(OSError):
        for part in os.listdir(folder):
            match = _PART.fullmatch(part)
            if match is None or (name is not None and match[1] != _digest(name)):
                continue
            with suppress(OSError):
                if not descriptors.OPEN_FILES_MOVE:  # a writer has its file open
                    os.unlink(folder / part)
                    continue
                names = ("O_NOFOLLOW", "O_NONBLOCK")
                descriptor = descriptors.open_descriptor(folder / part, os.O_RDWR, *names)
                try:
                    if _lock(descriptor, wait=False):
                        os.unlink(folder / part)
                finally:
                    os.close(descriptor)


class Unfinished:
    """A new file under a temporary name: `finish` puts it in its place, `abandon` deletes it.

    It gets the mode of the file that it replaces; if there is none, 0666 less the umask.

    Args:
        path: the place. A link is followed.
        suffix: the end of the temporary name, such as ".mp4".

    Attributes:
        path: the temporary name.

    Raises:
        OSError: it cannot be made, or what is at `path` is not a regular file.
    """

    _descriptor: int | None = None

    def __init__(self, path: Path, suffix: str = ""):
        self._asked = path
        with _naming(path):
            # realpath also follows a link that leads to nothing yet.
            self._target = Path(os.path.realpath(path))
            before = None
            with suppress(FileNotFoundError):
                before = os.lstat(self._target)
                _check_regular(before.st_mode)
            delete_stale(self._target.parent, self._target.name)
            self.path, self._descriptor = self._make(suffix, 0o666 if before is None else 0o600)
            if before is not None:
                with suppress(OSError):  # some file systems have no modes
                    descriptors.take_after(self._descriptor, before)
        leave_in_child(self)

    def _make(self, suffix: str, mode: int) -> tuple[Path, int]:
        """A new, locked file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        while True:
            name = f".cule-{_digest(self._target.name)}-{secrets.token_hex(8)}.part{suffix}"
            path = self._target.parent / name
            descriptor = descriptors.open_descriptor(path, flags, mode=mode)
            _lock(descriptor, wait=True)
            # Another process may have deleted it as stale before the lock.
            if os.path.lexists(path):
                return path, descriptor
            os.close(descriptor)

    def open(self) -> BinaryIO:
        """The file, to be written and then closed."""
        assert self._descriptor is not None
        return os.fdopen(os.dup(self._descriptor), "wb")

    def finish(self) -> None:
        """Writes the file to the disk and puts it in its place.

        Raises:
            OSError: that fails. The new file is deleted, and an old one is as it was.
        """
        assert self._descriptor is not None
        try:
            with _naming(self._asked):
                os.fsync(self._descriptor)
                if not descriptors.OPEN_FILES_MOVE:
                    os.close(self._descriptor)
                    self._descriptor = -1
                os.replace(self.path, self._target)
        finally:
            self.abandon()
        with suppress(OSError):  # not all file systems can; the file is in its place already
            parent = self._target.parent
            folder = descriptors.open_descriptor(parent, os.O_RDONLY, "O_DIRECTORY")
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def leave(self) -> None:
        """In a forked child: lets the file be, which is the parent's."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def abandon(self) -> None:
        """Deletes the file, unless it is in its place. Can be called again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if descriptor >= 0:
            os.close(descriptor)
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Gives a binary file that replaces `path` when the block ends without an error.

    At any moment, `path` is either as before or the complete new file. If several threads or
    processes write it at once, one of their files stays. Links are followed, and the mode of the
    old file is kept.

    Raises:
        OSError: it cannot be written, or what is at `path` is not a regular file.
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
    """Locks a file and gives its descriptor and size; an error in the block undoes what it wrote.

    What is not a regular file, such as /dev/stdout, has no size (None), and nothing is undone.
    """
    with _naming(path):
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        descriptor = descriptors.open_descriptor(path, flags, mode=0o666)
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


def check_appendable(path: Path) -> None:
    """Checks that a file can be appended to, or is not there.

    Raises:
        OSError: it cannot, or is no regular file.
    """
    with suppress(FileNotFoundError), opened(path):
        pass


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def append(path: Path, content: bytes) -> None:
    """Appends `content` to a file, completely or not at all; the file is made if it is missing.

    Raises:
        OSError: it cannot be written.
    """
    with _appending(path) as (descriptor, _):
        _write(descriptor, content)


def append_line(path: Path, line: str, *, once: bool = False, durable: bool = True) -> None:
    """Appends a line to a file, completely or not at all; the file is made if it is missing.

    If the file's last line has no end, it gets one first.

    Args:
        path: the file.
        line: the text, without the end of the line.
        once: append nothing if the file has this line already.
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
        torn = (
            size is not None and size > 0 and descriptors.read_at(descriptor, 1, size - 1) != b"\n"
        )
        _write(descriptor, b"\n" * torn + content + b"\n")
        if durable and size is not None:
            os.fsync(descriptor)


def identity_of(descriptor: int) -> tuple[int, int] | None:
    """What tells an open file from every other one; None: it is closed."""
    try:
        about = os.fstat(descriptor)
    except OSError:
        return None
    return about.st_dev, about.st_ino
