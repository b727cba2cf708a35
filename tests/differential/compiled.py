"""Compiles the C++ of this folder's tests."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pybind11

HERE = Path(__file__).resolve().parent
CSRC = HERE.parents[1] / "csrc"
# What the core takes for granted is checked here (CULE_ASSUME): a process that finds it wrong ends.
FLAGS = [
    "-std=c++17", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-DCULE_CHECK_ASSUMPTIONS",
    "-Wall", "-Wno-unknown-pragmas",
]  # fmt: skip


def compile_module(source: str, name: str, folder: Path, defines: Sequence[str] = ()) -> ModuleType:
    """`source`, a file of this folder, as the extension module `name`, by the system's compiler (`CXX`, else `c++`)."""
    module = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    includes = [f"-I{path}" for path in (CSRC, pybind11.get_include(), sysconfig.get_paths()["include"])]
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    command = [*compiler, *FLAGS, *includes, *defines, str(HERE / source), "-o", str(module)]
    subprocess.run(command, check=True)
    spec = importlib.util.spec_from_file_location(name, module)
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
