"""Compiles the libraries of this folder, again only if the sources have changed."""

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
        pytest.skip("the simulator needs Linux's loader to find variables")
    named = [*compiler(), "--version"]
    version = subprocess.run(named, capture_output=True, text=True, check=True).stdout
    if "clang" in version:
        pytest.skip(f"the compiler's options are for GCC, but CXX is {version.splitlines()[0]}")
    return build_folder


@pytest.fixture(scope="session")
def library(folder: Path) -> Path:
    """The CUDA backend and the simulator."""
    return build("backend", BACKEND, folder)
