"""Open files by their numbers, as POSIX has them: what Windows lacks is made up for here.

Nothing else in cule.disk knows of Windows, where nobody can rename or delete a file that is open.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Whether an open file can be renamed and deleted.
OPEN_FILES_MOVE = sys.platform != "win32"
# What is locked on Windows: a byte far behind the end, since nobody could read one that is.
_LOCKED_BYTE = 1 << 30


def open_descriptor(path: str | os.PathLike[str], flags: int, *names: str, mode: int = 0) -> int:
    """Opens a file whose bytes are read and written as they are. Programs do not inherit it.

    Args:
        path: the file.
        flags: `os.O_RDWR` and others that every system has.
        names: further flags, such as "O_NOFOLLOW", which some systems lack.
        mode: of a file that is made.
    """
    for name in ("O_CLOEXEC", "O_BINARY", *names):
        flags |= getattr(os, name, 0)
    return os.open(path, flags, mode)


def lock(descriptor: int, *, wait: bool) -> None:
    """Locks a file, for this process alone, until it is closed.

    Raises:
        BlockingIOError, PermissionError: another process has the lock.
        OSError: the file system has no locks.
    """
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            # The one that waits gives up after ten seconds.
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as problem:  # every file system of Windows has locks
            raise BlockingIOError(errno.EACCES, os.strerror(errno.EACCES)) from problem
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def unlock(descriptor: int) -> None:
    """Unlocks a file.

    Raises:
        OSError: that fails.
    """
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Up to `size` bytes from a place on."""
    if sys.platform == "win32":
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size)
    return os.pread(descriptor, size, offset)


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Writes a few bytes to a place."""
    if sys.platform == "win32":
        os.lseek(descriptor, offset, os.SEEK_SET)
        os.write(descriptor, content)
    else:
        os.pwrite(descriptor, content, offset)


def user() -> int:
    """The number of the user. Windows has no such numbers: there it is 0, as are files' owners."""
    return 0 if sys.platform == "win32" else os.geteuid()


def is_shared(status: os.stat_result, others: int = stat.S_IWOTH) -> bool:
    """Whether other users can write to a file, by its mode.

    On Windows modes do not say that; a user's own folder is theirs alone.

    Args:
        status: the file's.
        others: the bits of the mode that let them.
    """
    return sys.platform != "win32" and bool(status.st_mode & others)


def take_after(descriptor: int, before: os.stat_result) -> None:
    """Gives a file the group of another one, and its owner if root does this; then its mode.

    What the file system or Windows lacks is left out.
    """
    if sys.platform == "win32":
        return
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        try:
            os.fchown(descriptor, owner, group)
        except OSError:
            continue
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
