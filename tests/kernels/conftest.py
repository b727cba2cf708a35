"""The libraries of this folder, compiled once per state of the sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from simulated import BACKEND, build

from tests.support.build import compiler


@pytest.fixture(scope="session")
def folder(build_folder: Path) -> Path:
    """Where libraries are kept."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the simulator asks Linux's loader where variables are")
    named = [*compiler(), "--version"]
    version = subprocess.run(named, capture_output=True, text=True, check=True).stdout
    if "clang" in version:
        pytest.skip(f"the options are GCC's, and CXX is {version.splitlines()[0]}")
    return build_folder


@pytest.fixture(scope="session")
def library(folder: Path) -> Path:
    """The CUDA backend and the simulator."""
    return build("backend", BACKEND, folder)
