"""Builds the module by which these tests draw steps in pieces, and see what objects show."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.support.build import CHECKED, build_module


@pytest.fixture(scope="session")
def drawing(build_folder: Path) -> ModuleType:
    """The compiled module of drawing_module.cpp."""
    source = Path(__file__).with_name("drawing_module.cpp")
    flags = [*CHECKED, "-Wno-unknown-pragmas"]
    return build_module("drawing_module", [source], build_folder, compile_flags=flags)
