"""Kernels on disk: which are found, whose are trusted, and that two processes make none twice."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cule
from cule import _core, translation
from cule.devices import driver, nvrtc
from cule.disk import cache
from cule.disk.claims import Claim
from cule.engine import changeover, engine
from cule.rom import find_game
from cule.translation import executed, kernel, kernel_files
from tests.env.stand_in_compiler import LoadingBackend

FORK = multiprocessing.get_context("fork")
PONG = find_game("pong")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What a stand-in for the compiler has compiled. The cache is tmp_path/own."""
    sources: list[str] = []
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(driver, "version", lambda: "13.0")
    monkeypatch.setattr(
        nvrtc, "compile_cubin", lambda source, *_: sources.append(source) or source.encode()
    )
    return sources


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in CULE_KERNELS."""
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv(kernel_files.VARIABLE, str(folder))
    return folder


def no_profile(*_: object) -> None:
    raise AssertionError("the game was played")


def test_a_kernel_is_found_without_playing_the_game(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [translation.translate(PONG, "sm_90", in_step) for in_step in (False, True)]
    executed.profile.cache_clear()
    monkeypatch.setattr(_core, "profile", no_profile)
    for in_step, first in enumerate(made):
        again = translation.translate(PONG, "sm_90", bool(in_step), at_first=True)
        assert again.cubin == first.cubin and again.whole
        assert np.array_equal(again.marked_ops, first.marked_ops)
        assert np.array_equal(again.played, first.played)
    assert len(compiled) == 2
    with pytest.raises(AssertionError, match="the game was played"):
        translation.translate(PONG, "sm_80")


def test_a_name_has_all_that_a_kernel_is_made_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def name(game: str = "pong", whole: bool = True, in_step: bool = False) -> str:
        return kernel_files.stem_of(find_game(game), "sm_90", in_step, whole)

    names = {name(), name("breakout"), name(whole=False), name(in_step=True)}
    assert len(names) == 4
    assert name() == name("ALE/Pong-v5")
    texts = dict(_core.headers())
    monkeypatch.setattr(_core, "headers", lambda: texts)
    for changed in ("execution/profile.h", "kernels/cuda/play.cuh"):
        texts[changed] += "// changed\n"
        names.add(name())
    # The image and the files that write the source.
    monkeypatch.setattr(kernel_files, "rom_of", lambda _: (b"another image", "4K"))
    names.add(name())
    (tmp_path / "source.py").write_text("")
    monkeypatch.setattr(kernel_files, "__file__", str(tmp_path / "kernel_files.py"))
    names.add(name())
    assert len(names) == 8


def test_kernels_of_others_are_used_and_not_changed(
    compiled: list[str], shared: Path, tmp_path: Path
) -> None:
    path, was_there = translation.compile_into(shared, PONG, "sm_90", False)
    assert not was_there
    assert translation.compile_into(shared, PONG, "sm_90", False) == (path, True)
    content = path.read_bytes()
    assert translation.translate(PONG, "sm_90").cubin == compiled[0].encode()
    assert len(compiled) == 1
    assert not (tmp_path / "own").exists()
    assert path.read_bytes() == content
    # One that is damaged is compiled for this user.
    path.write_bytes(content[:-1])
    assert translation.translate(PONG, "sm_90").whole
    assert len(compiled) == 2
    assert path.read_bytes() == content[:-1]


@pytest.mark.parametrize("own", ["13.0", "12.9", None])
@pytest.mark.parametrize("of_others", ["12.9", "13.0", "13.1", "13.2"])
def test_what_another_compiler_made_is_used_if_the_driver_loads_it(
    own: str | None, of_others: str, compiled: list[str], shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def version() -> str:
        if own is None:
            raise OSError("expected NVIDIA's run-time compiler")
        return own

    monkeypatch.setattr(nvrtc, "version", lambda: of_others)
    translation.compile_into(shared, PONG, "sm_90", False)
    monkeypatch.setattr(nvrtc, "version", version)
    monkeypatch.setattr(driver, "version", lambda: "13.1")
    if of_others in ("13.0", "13.1", own):
        assert translation.translate(PONG, "sm_90").cubin == compiled[0].encode()
        assert len(compiled) == 1
    elif own is None:
        with pytest.raises(OSError, match="run-time compiler"):
            translation.translate(PONG, "sm_90")
    else:
        translation.translate(PONG, "sm_90")
        assert len(compiled) == 2


def test_the_package_is_found(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "packages" / kernel_files.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('it is not imported')\n")
    monkeypatch.syspath_prepend(package.parent)
    kernel_files._package.cache_clear()
    assert importlib.util.find_spec(kernel_files.PACKAGE) is not None
    try:
        translation.compile_into(package, PONG, "sm_90", True)
        translation.translate(PONG, "sm_90", True)
        assert len(compiled) == 1
    finally:
        kernel_files._package.cache_clear()
    assert kernel_files.PACKAGE not in sys.modules


# Trust --------------------------------------------------------------------------------------------


def writable_by_a_group(folder: Path) -> None:
    folder.chmod(0o775)


def writable_by_all(folder: Path) -> None:
    folder.chmod(0o1777)


def below_a_writable_folder(folder: Path) -> None:
    folder.parent.chmod(0o777)


def a_file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("")


def missing(folder: Path) -> None:
    folder.rmdir()


def below_another_users_folder(folder: Path) -> None:
    os.chown(folder.parent, 12345, 12345)


FAULTS = [writable_by_a_group, writable_by_all, below_a_writable_folder, a_file, missing]
FAULTS += [below_another_users_folder] if os.geteuid() == 0 else []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_others_can_change_is_not_read_and_the_user_is_told(
    fault: Callable[[Path], None], compiled: list[str], shared: Path,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    below = tmp_path / "above" / "shared"
    below.parent.mkdir(mode=0o755)
    shared.rename(below)
    monkeypatch.setenv(kernel_files.VARIABLE, str(below))
    if fault not in (a_file, missing):
        translation.compile_into(below, PONG, "sm_90", False)
        compiled.clear()
    fault(below)
    monkeypatch.setattr(changeover, "architecture_of", lambda _: "sm_90")
    monkeypatch.setattr(engine, "keep_through_forks", LoadingBackend)
    monkeypatch.setattr(engine, "wants_translation", lambda *_: True)
    with pytest.warns(UserWarning, match=r"^expected a folder of compiled games in CULE_KERNELS"):
        env = cule.AtariEnv("pong", 2, device="cpu", num_threads=1, reset_pool_size=1)
    assert env.wait_until_translated()
    env.close()
    assert compiled, "nothing was read"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_a_named_folder_is_trusted_and_nobody_else(
    compiled: list[str], shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = translation.compile_into(shared, PONG, "sm_90", False)
    for one in (shared, path):
        os.chown(one, 12345, 12345)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert kernel_files.check_shared(shared) == 12345
    translation.translate(PONG, "sm_90")
    assert len(compiled) == 1
    os.chown(path, 23456, 23456)
    monkeypatch.setattr(nvrtc, "version", lambda: "12.0")
    translation.translate(PONG, "sm_90")
    assert len(compiled) == 2


def test_content_of_a_wrong_form_is_not_used(compiled: list[str], shared: Path) -> None:
    path, _ = translation.compile_into(shared, PONG, "sm_90", False)
    good = kernel_files.read(path, PONG, True)
    assert good is not None
    wrong = [
        good._replace(marked_ops=good.marked_ops[:-1]),
        good._replace(marked_ops=good.marked_ops.astype(np.int64)),
        good._replace(played=good.played[:, 1:]),
        good._replace(played=np.array([object()], dtype=object)),
    ]
    for one in wrong:
        kernel_files.write(path, one)
        assert kernel_files.read(path, PONG, True) is None


# Two processes ------------------------------------------------------------------------------------


def test_two_processes_do_not_compile_the_same_kernel(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    both, log = FORK.Barrier(2), tmp_path / "log"

    def compile_slowly(*_: object) -> bytes:
        with log.open("a") as file:
            file.write("compiled\n")
        time.sleep(0.5)
        return b"a kernel"

    def translate() -> None:
        both.wait(60)
        assert translation.translate(PONG, "sm_90").cubin == b"a kernel"

    monkeypatch.setattr(nvrtc, "compile_cubin", compile_slowly)
    processes = [FORK.Process(target=translate) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert log.read_text() == "compiled\n"


def test_who_waits_for_another_process_does_not_wait_for_ever(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache, "MOST_SECONDS", 0.3)
    stem = kernel_files.stem_of(PONG, "sm_90", False, True)
    path = kernel_files.path_in(tmp_path / "own", stem, "13.0")
    with Claim(path.with_suffix(".lock"), "a kernel"):
        begun = time.monotonic()
        translation.translate(PONG, "sm_90")
        assert time.monotonic() - begun >= 0.3
    assert len(compiled) == 1
    assert kernel.read(path, PONG, True) is not None
