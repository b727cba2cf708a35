"""Compiles the tests' C++ with the system's compiler (`CXX`, else `c++`), if the sources changed.

`build` makes a shared library or a program, `build_module` a Python module. The result's name has a
digest of everything that it is made from.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pybind11
from filelock import FileLock

TESTS = Path(__file__).resolve().parents[1]
CSRC = TESTS.parent / "csrc"
# As in CMakeLists.txt, but hardly optimized: in most tests compiling takes longer than running.
FLAGS = (
    "-std=c++17", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-Wall", "-Wno-psabi",
    f"-I{CSRC}",
)  # fmt: skip
SHARED = ("-fvisibility=hidden",) if sys.platform == "win32" else ("-fPIC", "-fvisibility=hidden")
# The core's assumptions (CULE_ASSUME, CULE_CHECK) are checked: a process ends if one is false.
CHECKED = ("-DCULE_CHECK_ASSUMPTIONS",)
SANITIZED = (
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g",
)  # fmt: skip
COMPILERS_AT_ONCE = 2


def compiler() -> list[str]:
    """The command that calls the compiler."""
    return shlex.split(os.environ.get("CXX", "c++"))


def _inputs(sources: Sequence[Path]) -> Iterator[Path]:
    """The sources, and all headers that they may include."""
    yield from sources
    folders = [CSRC, TESTS, *(source.parent for source in sources)]
    paths = {path for folder in folders for path in folder.rglob("*")}
    yield from sorted(path for path in paths if path.suffix in (".h", ".cuh"))


def _digest(words: Sequence[str], sources: Sequence[Path]) -> str:
    digest = hashlib.sha256("\0".join([*words, sys.version, pybind11.__version__]).encode())
    for path in _inputs(sources):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def _run(words: Sequence[str], what: str) -> None:
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{what} does not compile:\n{result.stderr}"


def build(
    name: str,
    sources: Sequence[Path],
    folder: Path,
    *,
    compile_flags: Sequence[str] = (),
    link_flags: Sequence[str] = ("-shared",),
    suffix: str = ".so",
) -> Path:
    """A shared library, or with other `link_flags` a program, of C++ or CUDA sources.

    Args:
        name: what its file name begins with.
        sources: what is compiled.
        folder: where it goes. If it is there already, nothing is compiled; older ones are deleted.
        compile_flags: more flags for compiling and linking.
        link_flags: flags and libraries for linking alone.
        suffix: the end of the file name.
    """
    command = [*compiler(), *FLAGS, *compile_flags]
    target = folder / f"{name}_{_digest([*command, *link_flags], sources)}{suffix}"
    # pytest-xdist's workers: one compiles, the others wait
    with FileLock(folder / f"{name}.lock"):
        if target.exists():
            return target
        for old in folder.glob(f"{name}_*"):
            old.unlink()

        def compile_one(source: Path) -> Path:
            made = folder / f"{name}_{source.stem}_{os.getpid()}.o"
            _run([*command, "-x", "c++", "-c", str(source), "-o", str(made)], source.name)
            return made

        with ThreadPoolExecutor(COMPILERS_AT_ONCE) as pool:
            objects = list(pool.map(compile_one, sources))
        scratch = folder / f"{name}_{os.getpid()}.linking"
        _run([*command, *map(str, objects), *link_flags, "-o", str(scratch)], name)
        for made in objects:
            made.unlink()
        os.replace(scratch, target)
    return target


def build_module(
    name: str, sources: Sequence[Path], folder: Path, *, compile_flags: Sequence[str] = ()
) -> ModuleType:
    """The Python extension module `name`, whose PYBIND11_MODULE is in one of the `sources`."""
    includes = [f"-I{path}" for path in (pybind11.get_include(), sysconfig.get_paths()["include"])]
    undefined: list[str] = []
    if sys.platform == "darwin":
        undefined = ["-undefined", "dynamic_lookup"]
    elif sys.platform == "win32":
        library = "python{}{}.lib".format(*sys.version_info)
        undefined = [str(Path(sys.base_prefix, "libs", library))]
    path = build(
        name,
        sources,
        folder,
        compile_flags=[*SHARED, *includes, *compile_flags],
        link_flags=["-shared", *undefined],
        suffix=sysconfig.get_config_var("EXT_SUFFIX"),
    )
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
