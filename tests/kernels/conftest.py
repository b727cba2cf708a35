"""The libraries of this folder, compiled once per state of the sources."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from simulated import BACKEND, build


@pytest.fixture(scope="session")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where libraries are kept."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the simulator asks Linux's loader where variables are")
    named = [*shlex.split(os.environ.get("CXX", "c++")), "--version"]
    version = subprocess.run(named, capture_output=True, text=True, check=True).stdout
    if "clang" in version:
        pytest.skip(f"the options are GCC's, and CXX is {version.splitlines()[0]}")
    cache = getattr(request.config, "cache", None)
    return Path(cache.mkdir("kernels")) if cache is not None else tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session")
def library(folder: Path) -> Path:
    """The CUDA backend and the simulator."""
    return build("backend", BACKEND, folder)
