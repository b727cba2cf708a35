"""Claims of a folder: held by one process, until it releases it or ends."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cule.disk import claims
from cule.disk.claims import Claim
from tests.support.disk import OLD


def in_a_child(work: Callable[[], None]) -> int:
    """Forks, and runs `work` in the child; its status, -9 if a signal 9 ended it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_claim_is_held_by_one_process_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.lock"

    def refused() -> None:
        with pytest.raises(
            ValueError, match=rf"got {path.parent}, which process {os.getppid()} on"
        ):
            Claim(path, "a folder")

    with Claim(path, "a folder") as claim:
        assert claims.seen_in(path) == claim.mark
        assert in_a_child(refused) == 0
        with pytest.raises(ValueError, match="expected a folder that nothing else writes to"):
            Claim(path, "a folder")
        assert path.exists()
    assert not path.parent.exists(), "neither the file nor the folder that was made for it is left"
    assert claims.seen_in(path) is None


def test_a_claim_ends_with_its_process_and_not_with_a_child(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"

    def dies() -> None:
        held = Claim(path, "a folder")
        os.kill(os.getpid(), signal.SIGKILL)
        held.release()

    assert in_a_child(dies) == -signal.SIGKILL
    assert path.exists()
    claim = Claim(path, "a folder")
    assert in_a_child(claim.release) == 0, "a child's ending and releasing change nothing"
    with pytest.raises(ValueError, match="which process"):
        Claim(path, "a folder")
    # Nor does a child that lives on have it when the process ends.
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    claim.release()
    try:
        Claim(path, "a folder").release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_claim_leaves_none_of_the_folders_that_it_has_made(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for path in (tmp_path / "there/a/b/run.lock", tmp_path / "c/run.lock"):
        Claim(path, "a folder").release()
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "there"]
    with Claim(tmp_path / "there/a/b/run.lock", "a folder"):
        (tmp_path / "there/a/log").touch()
    assert sorted(tmp_path.rglob("*")) == [
        tmp_path / name for name in ("there", "there/a", "there/a/log")
    ]


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_a_claim_takes_no_other_file_and_waits_for_none(kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / "run.lock", tmp_path / "other"
    other.write_bytes(OLD)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(other)
    else:
        path.mkdir()
    with pytest.raises((OSError, ValueError)):
        Claim(path, "a folder")
    assert other.read_bytes() == OLD and os.path.lexists(path)


def test_a_claim_says_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="without locks .No locks available.: nothing finds out"):
        Claim(tmp_path / "run.lock", "a folder").release()


@pytest.mark.parametrize("end", ["release", "forget"])
def test_a_claim_leaves_a_file_alone_that_the_program_has_opened_under_its_number(
    end: str, tmp_path: Path
) -> None:
    claim = Claim(tmp_path / "a.lock", "a folder")
    number = claim._descriptor
    assert number is not None
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), number)
    getattr(claim, end)()
    assert os.fstat(number).st_size == 0
    os.close(number)
    closed = Claim(tmp_path / "b.lock", "a folder")
    assert closed._descriptor is not None
    os.close(closed._descriptor)
    getattr(closed, end)()
