"""Files that are appended to: whole lines, also on a full disk and by several processes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cule.disk.files import append, append_line
from tests.support.disk import ALONE


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Leaves room for this many bytes: os.write writes a part, and then fails."""
    left, write = [0], os.write

    def write_some(descriptor: int, content: bytes) -> int:
        some = bytes(content)[: left[0]]
        if not some:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= len(some)
        return write(descriptor, some)

    monkeypatch.setattr(os, "write", write_some)
    return left


@pytest.mark.parametrize("room", [0, 1, 5, 11])
def test_append_line_on_a_full_disk_appends_nothing(
    room: int, tmp_path: Path, full_disk: list[int]
) -> None:
    path = tmp_path / "rows"
    full_disk[0] = 100
    append_line(path, "whole")
    full_disk[0] = room
    with pytest.raises(OSError, match="No space left on device") as caught:
        append_line(path, "torn by it.")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"whole\n"
    full_disk[0] = 100
    append_line(path, "more")
    append(path, b"end")
    assert path.read_bytes() == b"whole\nmore\nend"


def test_append_line_begins_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b'whole\n{"to')
    append_line(path, "more")
    append_line(path, "more", once=True)
    append_line(path, '{"to', once=True)
    append_line(path, "new", once=True)
    assert path.read_bytes() == b'whole\n{"to\nmore\nnew\n'


def test_append_line_takes_devices(tmp_path: Path) -> None:
    append_line(Path("/dev/null"), "nothing", once=True)
    with pytest.raises(OSError, match="No space left on device"):
        append_line(Path("/dev/full"), "nothing")
    with pytest.raises(IsADirectoryError):
        append_line(tmp_path, "nothing")


def test_append_line_by_processes_at_once_tears_nothing(tmp_path: Path) -> None:
    """Those that fail remove what they have written, but nobody else's lines."""
    path, code = (
        tmp_path / "rows",
        """
        import os, sys
        from pathlib import Path
        name, path = sys.argv[1], Path(sys.argv[2])
        write = os.write
        def write_some(descriptor, content):
            if len(content) < 4000:
                raise OSError(28, "No space left on device")
            return write(descriptor, content[:1000])
        if name == "fails":
            os.write = write_some
        for number in range(150):
            try:
                files.append_line(path, f"{name} {number} " + "x" * 5000, durable=False)
            except OSError:
                pass
    """,
    )
    command = [sys.executable, "-c", textwrap.dedent(ALONE) + textwrap.dedent(code)]
    processes = [subprocess.Popen([*command, name, str(path)]) for name in ("a", "fails", "b")]
    assert [process.wait() for process in processes] == [0, 0, 0]
    lines = path.read_text().splitlines()
    assert all(len(line.split(" ")[2]) == 5000 for line in lines)
    for name in ("a", "b"):
        numbers = [int(line.split(" ")[1]) for line in lines if line.startswith(name)]
        assert numbers == list(range(150))
    assert len(lines) == 300
