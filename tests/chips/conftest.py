"""Builds the module of bindings/, by which these tests reach the chips below the public API."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from flat_cpu import random_memory

from tests.support.build import build_module


@pytest.fixture(scope="session")
def chips(build_folder: Path) -> ModuleType:
    """The compiled module of bindings/."""
    sources = sorted((Path(__file__).parent / "bindings").glob("*.cpp"))
    return build_module("chips_module", sources, build_folder)


@pytest.fixture(scope="module")
def memory() -> np.ndarray:
    """64 KiB of random bytes."""
    return random_memory(6507)
