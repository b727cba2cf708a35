"""Builds chips_module.cpp, through which these tests reach the chips below the public API."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.support.build import build_module


@pytest.fixture(scope="session")
def chips(build_folder: Path) -> ModuleType:
    """The compiled test module."""
    source = Path(__file__).with_name("chips_module.cpp")
    return build_module("chips_module", source, build_folder)
