"""Builds chips_module.cpp, through which the tests of this folder reach the chips below the public API.

It is compiled once per state of the headers, with the system's C++ compiler (`CXX`, else `c++`), hardly optimized:
compiling takes longer than running.
"""

import fcntl
import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pybind11
import pytest

HERE = Path(__file__).resolve().parent
CSRC = HERE.parents[1] / "csrc"
MODULE_NAME = "chips_module"
FLAGS = [
    "-std=c++17", "-O1", "-fno-strict-aliasing", "-Wall", "-fPIC", "-fvisibility=hidden", "-shared",
    f"-DCHIPS_MODULE_NAME={MODULE_NAME}",
]  # fmt: skip
if sys.platform == "darwin":
    FLAGS += ["-undefined", "dynamic_lookup"]


def _digest(command: list[str]) -> str:
    """A hash of all that the module is made from."""
    digest = hashlib.sha256("\0".join([*command, sys.version, pybind11.__version__]).encode())
    for path in [HERE / "chips_module.cpp", *sorted(CSRC.rglob("*.h"))]:
        digest.update(str(path.relative_to(HERE.parents[1])).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def _build(folder: Path) -> Path:
    """Compiles the module into `folder` unless it is there."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    includes = [f"-I{CSRC}", f"-I{pybind11.get_include()}", f"-I{sysconfig.get_paths()['include']}"]
    command = [*compiler, *FLAGS, *includes, str(HERE / "chips_module.cpp")]
    target = folder / f"{MODULE_NAME}_{_digest(command)}{sysconfig.get_config_var('EXT_SUFFIX')}"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # pytest-xdist's workers: one compiles, the others wait
        if target.exists():
            return target
        for old in folder.glob(f"{MODULE_NAME}_*"):
            old.unlink()
        scratch = folder / f"building_{os.getpid()}.so"
        result = subprocess.run([*command, "-o", str(scratch)], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            scratch.unlink(missing_ok=True)
            pytest.fail(f"chips_module.cpp does not compile:\n{result.stderr}", pytrace=False)
        os.replace(scratch, target)
    return target


@pytest.fixture(scope="session")
def chips(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The compiled test module."""
    cache = getattr(request.config, "cache", None)
    path = _build(Path(cache.mkdir("chips")) if cache is not None else tmp_path_factory.getbasetemp())
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
