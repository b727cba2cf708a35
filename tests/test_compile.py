"""`python -m cule.compile`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from cule import compile as program
from cule import translation
from cule.devices import nvrtc
from cule.disk.cache import cache_folder
from cule.errors import Failed
from cule.rom import find_game, list_games
from cule.translation import kernel_files

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler that makes a small kernel, also in the processes that compile, which are forks."""
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: FORK)
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(nvrtc, "architectures", lambda: ["sm_80", "sm_90"])
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda source, *_: source[-100:].encode())
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "cache"))


def test_games_are_compiled_once_and_envs_find_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "kernels"
    words = ["pong", "ALE/Breakout-v5", "pong", "--arch", "sm_90", "sm_80", "--folder", str(folder)]
    assert program.main([*words, "--jobs", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8 + 1
    assert {line.split("] ")[1].split(":")[0] for line in lines[:-1]} == {
        f"{game} for {architecture}, {envs} envs"
        for game in ("pong", "breakout") for architecture in ("sm_80", "sm_90")
        for envs in ("few", "many")
    }  # fmt: skip
    assert lines[-1].startswith("8 compiled, 0 were there, 0 failed; ")
    assert len([path for path in folder.iterdir() if kernel_files.is_kernel(path)]) == 8
    assert len(list(folder.iterdir())) == 8, "no lock is left"
    assert program.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.endswith("was there") for line in lines[:-1])
    assert lines[-1].startswith("0 compiled, 8 were there")
    # An env's process finds them there, and compiles nothing.
    monkeypatch.setenv(kernel_files.VARIABLE, str(folder))
    monkeypatch.setattr(nvrtc, "compile_cubin", None)
    for in_step in (False, True):
        assert translation.translate(find_game("breakout"), "sm_80", in_step, at_first=True).whole


def test_by_default_they_go_into_the_cache_which_is_the_users_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert program.main(["pong", "--arch", "sm_90", "--jobs", "1"]) == 0
    assert cache_folder().stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(nvrtc, "compile_cubin", None)
    assert translation.translate(find_game("pong"), "sm_90").whole


def test_envs_with_sound_or_several_players_have_kernels_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["pong", "--arch", "sm_90", "--folder", str(tmp_path)]
    assert program.main(words) == program.main([*words, "--sound"]) == 0
    assert program.main([*words, "--sound", "--num-players", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(", 0 were there")[0] for line in lines[2::3]] == ["2 compiled"] * 3
    envs = {line.split("] ")[1].split(":")[0] for line in lines if "] " in line}
    assert envs == {
        f"pong for sm_90, {count} envs{more}"
        for count in ("few", "many") for more in ("", ", sound", ", 2 players, sound")
    }  # fmt: skip
    monkeypatch.setenv(kernel_files.VARIABLE, str(tmp_path))
    monkeypatch.setattr(nvrtc, "compile_cubin", None)
    for num_players in (1, 2):
        assert translation.translate(find_game("pong", num_players), "sm_90", sound=True).whole


def test_all_means_every_game() -> None:
    wanted = program.kernels_of(["pong", "all"], ["sm_90"])
    assert [sum(one.game == game for one in wanted) for game in list_games()] == [2] * 104


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pomg", "--arch", "sm_90"], "expected one of the 104 games"),
        (["pong", "--arch", "sm_35"], "expected --arch to be of sm_80, sm_90, which NVRTC 13.0"),
        (["pong", "--arch", "90"], "got '90'"),
        (["pong"], "expected --arch, such as --arch sm_90, as there is no GPU here"),
        (["freeway", "--arch", "sm_90", "--num-players", "2"], "expected num_players=1"),
        (["pong", "--arch", "sm_90", "--jobs", "0"], "expected a whole number of at least 1"),
        (["pong", "--arch", "sm_90", "--folder", "/dev/null/x"], "/dev/null"),
        ([], "the following arguments are required: GAME"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    try:
        status = program.main(words)
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr().err
    assert status in (1, 2) and said.count("\n") == 1
    assert message in said


def test_a_game_that_does_not_compile_is_named_and_the_others_are_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index = find_game("pong").index

    def compile_cubin(source: str, *_: object) -> bytes:
        if f"TranslatedCore<RunBlock, {index}," in source:
            raise Failed("nvrtcCompileProgram failed: it is too hard")
        return b"a kernel"

    monkeypatch.setattr(nvrtc, "compile_cubin", compile_cubin)
    words = ["pong", "breakout", "--arch", "sm_90", "--folder", str(tmp_path / "kernels")]
    assert program.main(words) == 1
    printed = capsys.readouterr()
    assert sorted(printed.err.splitlines()) == [
        f"cule.compile: pong for sm_90, {envs} envs: nvrtcCompileProgram failed: it is too hard"
        for envs in ("few", "many")
    ]
    assert printed.out.splitlines()[-1].startswith("2 compiled, 0 were there, 2 failed")


def test_a_process_that_is_killed_ends_the_program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert program.main(["pong", "--arch", "sm_90", "--folder", str(tmp_path)]) == 2
    assert "got one that was killed, as when memory runs out" in capsys.readouterr().err


INTERRUPTED = """
    import multiprocessing, os, sys, time
    fork = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda _: fork
    from cule import compile as program
    from cule.devices import nvrtc
    nvrtc.version, nvrtc.architectures = lambda: "13.0", lambda: ["sm_90"]

    def compile_cubin(*_):
        os.write(1, b"%d\\n" % os.getpid())  # at once, as two processes write
        time.sleep(600)

    nvrtc.compile_cubin = compile_cubin
    sys.exit(program.main(["pong", "--arch", "sm_90", "--jobs", "2", "--folder", sys.argv[1]]))
"""


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(INTERRUPTED), str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    compiling = [int(process.stdout.readline()) for _ in range(2)]
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr.read() == "cule.compile: interrupted\n"
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in compiling):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not list(tmp_path.glob("*.kernel"))
