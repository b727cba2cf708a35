"""What cule does on Windows, tried elsewhere: POSIX's functions are gone, `msvcrt` is a stand-in.

release/try_wheel.py tries the real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

STAND_IN = """
import ctypes, errno, os, sys, types
import cv2, gymnasium, numpy, socket, tempfile, torch, tqdm, typeguard  # they know this system
import ale_py.roms, gymnasium.vector.utils, torch.utils.data

held, close = {}, os.close  # files that are locked, by their descriptors

def locking(descriptor, mode, size):
    assert size == 1 and os.lseek(descriptor, 0, os.SEEK_CUR) == 1 << 30
    file = os.stat(descriptor).st_ino
    if mode == 0:
        del held[descriptor]
    elif file in held.values():
        raise OSError(0, "Error")  # Wine has no other number
    else:
        held[descriptor] = file

def closing(descriptor):
    held.pop(descriptor, None)
    close(descriptor)

def status(about):
    assert about[0] == ctypes.sizeof(about) == 64
    about[1] = 1 << 34
    return 1

os.close = closing
for name in ("fchmod", "fchown", "geteuid", "getuid", "pread", "pwrite", "register_at_fork",
             "sched_getaffinity", "sysconf", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW",
             "O_NONBLOCK"):
    delattr(os, name)
os.O_BINARY = 0
sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = None
sys.modules["msvcrt"] = types.SimpleNamespace(
    locking=locking, LK_UNLCK=0, LK_LOCK=1, LK_NBLCK=2)
kernel32 = types.SimpleNamespace(GlobalMemoryStatusEx=status)
ctypes.windll = types.SimpleNamespace(kernel32=kernel32)
sys.platform = "win32"
"""


def run(program: str, folder: Path) -> None:
    """Runs a program where the system seems to be Windows."""
    words = [sys.executable, "-c", STAND_IN + textwrap.dedent(program)]
    root = Path(__file__).resolve().parents[1]
    variables = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_env_plays_without_posix(tmp_path: Path) -> None:
    run(
        """
        import cule
        from cule.devices.device import usable_memory
        assert usable_memory() <= 1 << 34
        env = cule.AtariEnv("pong", 2, device="cpu")
        env.reset(seed=0)
        observations = env.step(torch.zeros(2, dtype=torch.int64))[0]
        assert observations.shape == (2, 4, 84, 84)
        env.close()
        """,
        tmp_path,
    )


def test_files_are_whole_and_closed_before_they_are_renamed_or_deleted(tmp_path: Path) -> None:
    run(
        """
        from pathlib import Path
        from cule.disk.files import append_line, content_of, replacing

        def closed(move):
            def moved(path, *other):
                opened = {os.readlink(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")
                          if os.path.lexists(f"/proc/self/fd/{one}")}
                assert os.path.abspath(path) not in opened
                return move(path, *other)
            return moved

        os.replace, os.unlink = closed(os.replace), closed(os.unlink)
        path = Path("file")
        for content in (b"one\\n", b"two\\n"):
            with replacing(path) as file:
                file.write(content)
            assert content_of(path, own=True) == content
        append_line(path, "three")
        append_line(path, "four")
        assert path.read_bytes() == b"two\\nthree\\nfour\\n"
        Path(".cule-0123456789abcdef-0123456789abcdef.part").touch()
        from cule.disk.files import delete_stale
        delete_stale(Path.cwd())
        assert os.listdir() == ["file"]
        """,
        tmp_path,
    )


def test_a_claim_is_held_once_and_its_file_is_deleted(tmp_path: Path) -> None:
    run(
        """
        from pathlib import Path
        from cule.disk.claims import Claim, seen_in
        path = Path("folder/claim.lock")
        with Claim(path, "a folder") as claim:
            assert seen_in(path) == claim.mark
            try:
                Claim(path, "a folder")
            except ValueError as refused:
                assert claim.holder in str(refused)
            else:
                raise AssertionError
        assert not path.parent.exists()
        """,
        tmp_path,
    )
