"""Files that are replaced: complete or as before, also after kills. Files of other users."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cule.disk.files import Unfinished, append, append_line, delete_stale, opened, replacing
from cule.disk.sealed import Kind
from tests.support.disk import ALONE, NEW, OLD, write


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_replacing_gives_the_new_file_or_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(NEW)
        assert path.read_bytes() == OLD
        raise KeyboardInterrupt
    assert path.read_bytes() == OLD and os.listdir(tmp_path) == ["file"]
    write(path)
    assert path.read_bytes() == NEW and os.listdir(tmp_path) == ["file"]


def test_replacing_has_a_name_that_nobody_can_have_planted(tmp_path: Path) -> None:
    """A link with an old temporary name leads to another file."""
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_bytes(OLD)
    (tmp_path / f".file.{os.getpid()}.part").symlink_to(victim)
    names = set()
    for _ in range(20):
        unfinished = Unfinished(path)
        names.add(unfinished.path.name)
        assert stat.S_ISREG(unfinished.path.lstat().st_mode)
        unfinished.abandon()
        write(path)
    assert victim.read_bytes() == OLD and path.read_bytes() == NEW
    assert len(names) == 20


@pytest.mark.parametrize("length", [1, 250, 255])
def test_replacing_takes_names_as_long_as_the_file_system_does(length: int, tmp_path: Path) -> None:
    path = tmp_path / ("n" * length)
    write(path)
    assert path.read_bytes() == NEW


def test_replacing_names_the_file_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "file", tmp_path / ("n" * 256)):
        with pytest.raises(OSError) as caught:
            write(path)
        assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []


def test_no_error_names_a_second_file(tmp_path: Path) -> None:
    path = tmp_path / "none" / "file"
    for attempt in (write, lambda path: append(path, NEW)):
        with pytest.raises(OSError) as raised:
            attempt(path)
        assert str(raised.value).endswith(f"{str(path)!r}")


def test_replacing_follows_links(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "target"
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(Path("far") / "target")
    for content in (OLD, NEW):  # first it leads nowhere
        write(tmp_path / "first", content)
        assert target.read_bytes() == content and not target.is_symlink()
        assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["far", "first", "second"]
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write(tmp_path / "round")


def test_replacing_keeps_the_mode_and_honours_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for mask, mode in ((0o027, 0o640), (0o000, 0o666), (0o077, 0o600)):
        with umask(mask):
            write(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.unlink()
    path.write_bytes(OLD)
    for mode in (0o600, 0o444, 0o755):
        path.chmod(mode)
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_replacing_never_shows_a_secret_file(tmp_path: Path) -> None:
    """It is not readable under its temporary name either."""
    path = tmp_path / "file"
    path.write_bytes(OLD)
    path.chmod(0o600)
    with umask(0), replacing(path) as file:
        file.write(NEW)
        (unfinished,) = set(tmp_path.iterdir()) - {path}
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_replacing_as_root_keeps_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    os.chown(path, 12345, 23456)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("folder", "Is a directory"),
        ("fifo", "Is a FIFO, not a regular file"),
        ("socket", "Is a socket, not a regular file"),
        ("device", "Is a device, not a regular file"),
        ("link to a device", "Is a device, not a regular file"),
    ],
)
def test_replacing_and_opened_refuse_what_is_no_regular_file(
    kind: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    elif kind == "device":
        path = Path("/dev/null")
    else:
        path.symlink_to("/dev/null")
    before = path.lstat().st_mode
    with pytest.raises(OSError, match=reason):
        write(path)
    if kind != "socket":  # which the system itself refuses to open
        with pytest.raises(OSError, match=reason), opened(path):
            pass
    assert path.lstat().st_mode == before
    assert set(os.listdir(tmp_path)) <= {"file"}


def test_replacing_waits_until_the_file_and_its_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", lambda *names: calls.append("replace") or replace(*names))
    write(tmp_path / "file")
    assert calls == ["file", "replace", "folder"]


KILLED = """
    import sys, time
    from pathlib import Path
    with files.replacing(Path(sys.argv[1])) as file:
        file.write(b"a beginning")
        file.flush()
        print("writing", flush=True)
        time.sleep(600)
"""


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen]:
    """A process that has begun to write in `replacing`."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ALONE) + textwrap.dedent(KILLED), str(path)],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        try:
            yield process
        finally:
            process.kill()


def test_replacing_deletes_what_killed_processes_left_and_nothing_else(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for name in (
        ".cule-notes.part",
        ".file.123.part",
        ".cule-0123456789abcdef-0123456789abcdef.part.d",
    ):
        (tmp_path / name).mkdir() if name.endswith(".d") else (tmp_path / name).write_bytes(OLD)
    before = set(tmp_path.iterdir())
    with writing(other) as process:
        process.send_signal(signal.SIGKILL)
    (left_by_other,) = set(tmp_path.iterdir()) - before
    for _ in range(2):
        with writing(path) as process:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert len(set(tmp_path.iterdir()) - before) == 2, (
            "each save deletes what the one before left"
        )
    with writing(path) as process:
        (alive,) = set(tmp_path.iterdir()) - before - {left_by_other}
        write(path)
        delete_stale(tmp_path, path.name)
        assert set(tmp_path.iterdir()) - before == {path, alive, left_by_other}
        process.send_signal(signal.SIGKILL)
        process.wait()
    write(path)
    assert set(tmp_path.iterdir()) - before == {path, left_by_other}
    delete_stale(tmp_path)
    assert set(tmp_path.iterdir()) - before == {path}
    assert path.read_bytes() == NEW


def test_replacing_survives_others_who_clean_up_all_the_time(tmp_path: Path) -> None:
    """A new file is not locked at once: another process may take it for a dead one's."""
    path, stop = tmp_path / "file", threading.Event()

    def clean() -> None:
        while not stop.is_set():
            delete_stale(tmp_path)

    cleaners = [threading.Thread(target=clean) for _ in range(2)]
    for cleaner in cleaners:
        cleaner.start()
    try:
        for number in range(300):
            write(path, str(number).encode())
            assert path.read_bytes() == str(number).encode()
    finally:
        stop.set()
        for cleaner in cleaners:
            cleaner.join()


def test_replacing_works_where_the_file_system_has_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be locked may be in use, so it stays."""
    import fcntl

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    path = tmp_path / "file"
    with writing(path) as process:
        process.send_signal(signal.SIGKILL)
    monkeypatch.setattr(fcntl, "flock", refuse)
    write(path)
    append_line(path, "more")
    assert path.read_bytes() == NEW + b"\nmore\n"
    assert len(os.listdir(tmp_path)) == 2


def test_replacing_by_threads_at_once_gives_whole_files(tmp_path: Path) -> None:
    path, stop = tmp_path / "file", threading.Event()
    contents = [bytes([65 + i]) * (1 << (12 + 4 * i)) for i in range(3)]
    write(path, contents[0])

    def save(content: bytes) -> None:
        while not stop.is_set():
            write(path, content)

    savers = [threading.Thread(target=save, args=[content]) for content in contents]
    for saver in savers:
        saver.start()
    try:
        for _ in range(300):
            assert path.read_bytes() in contents
    finally:
        stop.set()
        for saver in savers:
            saver.join()
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("foreign", ["file", "folder", "writable folder", "link"])
def test_opened_as_own_refuses_what_others_can_have_written(
    foreign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept between processes is code: a kernel, settings of a training."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"
    kind = Kind("cubin", 1)
    kind.write(path, lambda file: file.write(OLD))

    def read() -> bytes:
        with kind.reading(path, own=True) as file:
            return file.read()

    assert read() == OLD, "root's own"
    os.chown(folder, 54321, -1)
    os.chown(path, 54321, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert read() == OLD, "a user's own"
    if foreign == "link":
        path.rename(folder / "other")
        path.symlink_to(folder / "other")
    elif foreign == "writable folder":
        folder.chmod(0o777)
    else:
        os.chown(path if foreign == "file" else folder, 12345, -1)
    with pytest.raises(ValueError, match=r"Belongs to another user|Too many levels"):
        read()
    with kind.reading(path) as file:
        assert file.read() == OLD, "a file that the user names may be anyone's"
