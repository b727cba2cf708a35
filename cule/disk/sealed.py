"""Files with a checksum, which shows damage: states, checkpoints, compiled kernels.

Such a file is a line that names its kind, the version of the kind (4 bytes, little-endian), the
SHA-256 of the content, and the content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cule.disk.files import opened, replacing
from cule.errors import InvalidValue

_CHUNK_BYTES = 1 << 20


class _Hashing:
    """A file for torch.save: hashes what is written and passes it on.

    It keeps an error of the underlying file, as torch.save raises one of its own instead.
    """

    def __init__(self, file: BinaryIO):
        self.file, self.hash = file, hashlib.sha256()
        self.problem: BaseException | None = None

    def write(self, content: Any) -> int:
        """Writes all of it."""
        try:
            self.file.write(content)
        except BaseException as problem:
            self.problem = problem
            raise
        self.hash.update(content)
        return len(content)

    def flush(self) -> None:
        """Does nothing: the file is flushed at its end."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: such as "state", whose files begin with the line "cule state".
        version: the version that can be read.
    """

    name: str
    version: int

    @property
    def magic(self) -> bytes:
        """The first line."""
        return f"cule {self.name}\n".encode()

    def write(self, path: Path, write: Callable[[Any], None], version: int | None = None) -> None:
        """Writes a file. A file that was there is replaced once all is written.

        Args:
            path: the file.
            write: takes a file and writes the content to it, from the beginning to the end.
            version: the version to write into it (None: the kind's).

        Raises:
            ValueError: the file cannot be written.
        """
        version = self.version if version is None else version
        head = self.magic + version.to_bytes(4, "little")
        try:
            with replacing(path) as file:
                file.write(head + bytes(hashlib.sha256().digest_size))
                hashing = _Hashing(file)
                try:
                    write(hashing)
                except RuntimeError as problem:
                    raise (hashing.problem or problem) from None
                file.seek(len(head))
                file.write(hashing.hash.digest())
        except OSError as problem:
            wanted = f"expected a {self.name} file that can be written"
            raise InvalidValue(f"{wanted}, got {path}: {problem.strerror or problem}") from problem

    @contextmanager
    def reading(
        self, path: Path, *, own: bool = False, owner: int | None = None
    ) -> Iterator[BinaryIO]:
        """Opens a file, checks it, and gives it at the beginning of its content.

        Args:
            path: the file.
            own: as in `cule.disk.files.opened`.
            owner: the same.

        Raises:
            ValueError: the file cannot be read, is of another kind or version, or is damaged.
        """
        try:
            with opened(path, own=own, owner=owner) as file:
                self._check(path, file)
                yield file
        except OSError as problem:
            reason = problem.strerror or problem
            raise InvalidValue(
                f"expected a {self.name} file at {path}, but it cannot be read: {reason}"
            ) from problem

    def _check(self, path: Path, file: BinaryIO) -> None:
        """Checks the whole file, then goes back to the beginning of its content."""
        magic, hashing = self.magic, hashlib.sha256()
        size = len(magic) + 4 + hashing.digest_size
        head = file.read(size)
        if not head.startswith(magic) or len(head) < size:
            raise InvalidValue(
                f"expected a {self.name} file of cule, got {path}, which is none or is cut off"
            )
        version = int.from_bytes(head[len(magic) : len(magic) + 4], "little")
        if version != self.version:
            age = "a newer" if version > self.version else "an older"
            wanted = f"expected a {self.name} of version {self.version}"
            raise InvalidValue(f"{path} is of {age} cule: {wanted}, got version {version}")
        while chunk := file.read(_CHUNK_BYTES):
            hashing.update(chunk)
        if hashing.digest() != head[-hashing.digest_size :]:
            raise InvalidValue(
                f"expected {path} to be as it was written, but it is damaged or cut off"
            )
        file.seek(size)
