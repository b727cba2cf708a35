"""The libraries of this folder, compiled once per state of the sources."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from simulated import BACKEND, build


@pytest.fixture(scope="session")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where libraries are kept."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the simulator asks Linux's loader where variables are")
    cache = getattr(request.config, "cache", None)
    return Path(cache.mkdir("kernels")) if cache is not None else tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session")
def library(folder: Path) -> Path:
    """The CUDA backend and the simulator."""
    return build("backend", BACKEND, folder)
