"""Processes that compile a game and end, fork, or keep the kernel on the disk."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cule.console import rom_of
from cule.devices import nvrtc
from cule.rom import find_game
from cule.translation import background


def run(code: str, folder: Path) -> str:
    """The output of a Python process that compiles with the stand-ins above."""
    begin = f"""
        import os, sys, threading, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import cule
        from cule import translation
        from cule.devices import nvrtc
        from cule.engine import changeover, engine
        from stand_in_compiler import LoadingBackend
        os.environ["CULE_CACHE_DIR"] = {str(folder)!r}
        let = threading.Event()
        nvrtc.version = lambda: "13.0"
        nvrtc.compile_cubin = lambda *_: let.wait(60) and b"a kernel"
        changeover.architecture_of = lambda _: "sm_90"
        engine.keep_through_forks = LoadingBackend
        engine.wants_translation = lambda asked, *_: asked is not False
        env = cule.AtariEnv("pong", 2, device="cpu", num_threads=1, reset_pool_size=1)
        env.reset(seed=0)
        env.step([0, 0])
    """
    done = subprocess.run(
        # Python 3.12 warns of any fork of a process that has threads.
        [sys.executable, "-W", "ignore:This process:DeprecationWarning",
         "-c", textwrap.dedent(begin) + textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_process_that_ends_keeps_what_it_compiles(tmp_path: Path) -> None:
    assert run("threading.Timer(0.5, let.set).start(); print('played')", tmp_path) == "played\n"
    assert [path.name.startswith("pong-sm_90-") for path in tmp_path.iterdir()] == [True]


def test_forked_child_compiles_for_itself(tmp_path: Path) -> None:
    printed = run(
        """
        child = os.fork()
        let.set()
        if not child:
            other = cule.AtariEnv("pong", 2, device="cpu", num_threads=1, reset_pool_size=1)
            print("child", other.wait_until_translated(), flush=True)
            env.close()
            sys.exit(0)
        print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print("parent", env.wait_until_translated())
        """,
        tmp_path,
    )
    assert printed == "child True\nchild ended with 0\nparent True\n"


def test_thread_makes_one_file_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *_: b"the cubin")
    game = find_game("pong")
    made = background.translating(game, "sm_90", False, False).result()
    assert made.cubin == b"the cubin"
    assert len(made.marked_ops) == len(rom_of(game)[0]) + 1
    assert len(list(tmp_path.iterdir())) == 1
