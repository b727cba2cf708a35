"""`python -m cule.info` says what is there and how to fix what is wrong."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import ale_py.roms
import pytest
import torch

import cule
from cule import _core, info
from cule.devices import nvrtc
from cule.disk.cache import cache_folder, make_folder
from cule.rom import games
from tests.support import warm

SMI = "Tesla T4, 580.95.05, 7.5"


def text_of(section: info.Section) -> str:
    return "\n".join(section.lines)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretends one GPU that the driver and torch see, and a build with CUDA for it."""
    monkeypatch.setattr(info, "_driver_gpus", lambda: [SMI])
    monkeypatch.setattr(_core, "has_cuda", lambda: True)
    monkeypatch.setattr(_core, "CUDA_ARCHITECTURES", ["75", "90"])
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index=None: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index=None: "Tesla T4")
    memory = SimpleNamespace(total_memory=16 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: memory)


# The program ------------------------------------------------------------------------------------


def test_info_names_versions_build_roms_and_makes_an_env() -> None:
    done = warm.run(["-m", "cule.info"])
    assert done.returncode == 0, done.stderr
    for needed in (
        f"cule {cule.__version__} in {Path(cule.__file__).parent}",
        f"torch {metadata.version('torch')}",
        f"gymnasium {metadata.version('gymnasium')}",
        f"104 of 104 in {Path(ale_py.roms.__file__).parent}, of ale-py",
        "Backends of this build:\n  CPU\n",
        "Compilers:\n  c++ ",
        "made one of ",
    ):
        assert needed in done.stdout


def test_info_without_roms_fails_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CULE_ROM_DIR", str(tmp_path))
    assert info.main([]) == 1
    said = capsys.readouterr().out
    assert f"0 of 104 in {tmp_path}, named by CULE_ROM_DIR" in said
    assert "104 of 104 games cannot be played" in said
    assert "unset CULE_ROM_DIR" in said
    assert "no env can be made without a ROM" in said


def test_info_with_some_roms_succeeds_and_names_the_first_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image = (Path(ale_py.roms.__file__).parent / "breakout.bin").read_bytes()
    (tmp_path / "breakout.bin").write_bytes(image)
    (tmp_path / "adventure.bin").write_bytes(image)
    monkeypatch.setenv("CULE_ROM_DIR", str(tmp_path))
    assert info.main([]) == 0
    said = capsys.readouterr().out
    assert f"1 of 104 in {tmp_path}" in said
    assert "103 of 104 games cannot be played. The first, adventure:" in said
    assert "which is the ROM of 'breakout'" in said
    assert "made one of breakout" in said


def test_info_lists_problems_once_at_the_end() -> None:
    sections = [info.Section("A", ["a"], ["do this"]), info.Section("B", ["b"])]
    assert list(info.report(sections)) == ["A:", "  a", "B:", "  b", "Problems:", "  - do this"]
    assert list(info.report(sections[1:])) == ["B:", "  b", "No problems."]


# Versions ---------------------------------------------------------------------------------------


def test_versions_that_are_too_old_or_lacking_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"torch": "2.3.1+cpu", "gymnasium": "1.10.0", "numpy": "2.0.0", "tqdm": "4.0"}
    found["typeguard"] = "4.4"

    def version(package: str) -> str:
        if package not in found:
            raise metadata.PackageNotFoundError(package)
        return found[package]

    monkeypatch.setattr(metadata, "version", version)
    needs = ["torch>=2.4", "gymnasium>=1.1", "numpy", 'jax>=9; extra == "jax"']
    monkeypatch.setattr(metadata, "requires", lambda package: needs)
    assert info.versions().problems == [
        "cule needs torch 2.4 or newer, and 2.3.1+cpu is installed: pip install --upgrade torch",
        "ale-py is not installed: pip install ale-py",
        "opencv-python-headless is not installed: pip install opencv-python-headless",
    ]


# GPUs -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("gpu")
def test_gpu_that_is_served_is_listed_with_its_driver() -> None:
    found = info.gpus()
    assert text_of(found) == f"the driver lists {SMI}\ncuda:0 is Tesla T4, sm_75, 16 GiB, served"
    assert found.problems == []
    assert info.backends().lines == ["CPU", "CUDA, with code for sm_75, sm_90"]


@pytest.mark.usefixtures("gpu")
def test_gpu_without_code_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "CUDA_ARCHITECTURES", ["80"])
    found = info.gpus()
    assert "cuda:0 is Tesla T4, sm_75, 16 GiB, not served" in found.lines
    (problem,) = found.problems
    assert "CMAKE_ARGS=-DCMAKE_CUDA_ARCHITECTURES=75" in problem


@pytest.mark.usefixtures("gpu")
def test_gpu_beside_a_build_without_cuda_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "has_cuda", lambda: False)
    (problem,) = info.gpus().problems
    assert "built without CUDA" in problem
    assert "CULE_CUDA=ON" in problem


@pytest.mark.usefixtures("gpu")
def test_gpu_that_torch_cannot_use_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (problem,) = info.gpus().problems
    assert "torch finds no usable GPU though the driver lists some" in problem
    monkeypatch.setattr(torch.version, "cuda", None)
    (problem,) = info.gpus().problems
    assert "this torch is a build for the CPU" in problem


def test_no_gpu_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "_driver_gpus", lambda: [])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = info.gpus()
    assert found.lines == ["none: nvidia-smi and torch find no GPU"]
    assert found.problems == []


@pytest.mark.usefixtures("gpu")
def test_missing_run_time_compiler_is_a_problem_on_a_gpu_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version() -> str:
        raise OSError("expected NVIDIA's run-time compiler, and found none")

    monkeypatch.setattr(nvrtc, "version", version)
    (problem,) = info.compilers().problems
    assert problem.endswith("and found none: pip install nvidia-cuda-nvrtc-cu12")
    monkeypatch.setattr(_core, "has_cuda", lambda: False)
    assert info.compilers().problems == []


# Caches -----------------------------------------------------------------------------------------


def test_cache_is_counted_and_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("CULE_CACHE_DIR", str(folder))
    assert info.caches() == info.Section(
        "Caches", [f"0 compiled games, 0.0 MiB, in {folder}, which can be deleted"]
    )
    folder.mkdir()
    for game in games()[:3]:
        (folder / f"{game.name}-sm_90-0123.kernel").write_bytes(bytes(2**20))
    assert info.caches().lines == [f"3 compiled games, 3.0 MiB, in {folder}, which can be deleted"]


def test_shared_kernels_are_counted_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CULE_KERNELS", f"{tmp_path}:{tmp_path / 'missing'}")
    tmp_path.chmod(0o755)
    (tmp_path / "pong-sm_90-0123-13.0.kernel").touch()
    found = info.caches()
    assert found.lines[1:] == [f"1 compiled games in {tmp_path}, which is only read"]
    (problem,) = found.problems
    assert problem.startswith("expected a folder of compiled games in CULE_KERNELS, got")


def test_cache_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("CULE_CACHE_DIR", str(file))
    (problem,) = info.caches().problems
    assert problem.endswith("name another folder in CULE_CACHE_DIR")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_cache_of_another_user_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path))
    os.chown(tmp_path, 12345, 12345)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    (problem,) = info.caches().problems
    assert problem.startswith(f"{tmp_path} belongs to another user, so nothing is read from it")


@pytest.mark.parametrize("home", [None, "/proc", "/proc/none"])
def test_cache_of_a_user_without_a_home_is_among_the_temporary_files(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number of which it knows nothing."""

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for name in ("CULE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).startswith("/proc"))
    folder = tmp_path / f"cule-{os.geteuid()}"
    assert cache_folder() == folder and info.caches().problems == []
    make_folder(folder / "tuned")
    assert (folder / "tuned").is_dir() and folder.stat().st_mode & 0o777 == 0o700
