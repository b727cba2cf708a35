"""`make dist` makes wheels for other systems, and a package of kernels."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest

import cule

ROOT = Path(__file__).resolve().parents[1]


def test_wheels_have_tags_of_their_system_and_of_no_later_glibc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    from dist import check_tags
    from targets import TARGETS

    good = {
        "linux-aarch64": ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64.manylinux_2_28_aarch64",
                          "manylinux_2_17_aarch64"),
        "macos-arm64": ("macosx_11_0_arm64",),
        "windows-x86_64": ("win_amd64",),
    }  # fmt: skip
    bad = ("manylinux_2_28_x86_64", "manylinux_2_31_aarch64", "linux_aarch64", "macosx_14_0_arm64",
           "win_arm64")  # fmt: skip
    for name, tags in good.items():
        for tag in tags:
            check_tags(f"cule-0.1.0-cp311-cp311-{tag}.whl", TARGETS[name])
        for tag in (*bad, *(tag for other in good.keys() - {name} for tag in good[other])):
            with pytest.raises(SystemExit, match=r"expected a wheel with the tag .+, got cule-"):
                check_tags(f"cule-0.1.0-cp311-cp311-{tag}.whl", TARGETS[name])


def test_an_import_library_has_what_the_core_calls_and_names_the_dll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang")
    pytest.importorskip("elftools")
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    from targets import TARGETS, cmake_variables

    version = "{}{}".format(*sys.version_info)
    told = cmake_variables(TARGETS["windows-x86_64"], Path(sys.executable), version, tmp_path)
    library = Path(str(told["Python_LIBRARY"])).read_bytes()
    assert f"python{version}.dll".encode() in library
    for name in (b"PyObject_Call", b"_Py_NoneStruct", b"PyExc_ValueError"):
        assert b"__imp_" + name + b"\0" in library
    headers = Path(str(told["Python_INCLUDE_DIR"]))
    assert "MS_WINDOWS" in (headers / "pyconfig.h").read_text() and (headers / "Python.h").exists()


def test_workflow_makes_and_tries_wheels_that_can_be_made_and_tests_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    from dist import PYTHONS
    from targets import TARGETS
    from try_wheel import FOLDERS, TESTS

    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    named = re.search(r'--targets ([^"]+)"', text)
    assert named and named[1].split() == list(TARGETS)
    versions = {f"python{version}" for version in re.findall(r"(?<![\w.])3\.\d+\b", text)}
    assert versions == set(PYTHONS)
    # Each system has a runner.
    for runner in ("ubuntu-latest", "ubuntu-24.04-arm", "macos-14", "windows-latest"):
        assert runner in text
    for name in (*TESTS, *re.findall(r"tests/\S+", text)):
        assert (ROOT / name).exists() and name.split("/")[0] in FOLDERS, name
    for name in re.findall(r"python (release/\S+)", text):
        assert (ROOT / name).exists(), name
    assert "twine upload" not in text and "publish@" not in text and "id-token" not in text


def test_kernels_that_were_compiled_make_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    from dist import make_kernels_wheel

    with pytest.raises(SystemExit, match=r"expected kernels in .*, got none"):
        make_kernels_wheel(tmp_path, tmp_path)
    for name in ("pong-sm_90-all-0123-13.0.kernel", "pong-sm_90-all-in-step-4567-13.0.kernel"):
        (tmp_path / name).write_bytes(b"a kernel")
    wheel = make_kernels_wheel(tmp_path, tmp_path / "dist")
    assert wheel.name == f"cule_kernels-{cule.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        inside = [name for name in packed.namelist() if name.startswith("cule_kernels/")]
        assert packed.read("cule_kernels/pong-sm_90-all-0123-13.0.kernel") == b"a kernel"
    assert len(inside) == 1 + 2
