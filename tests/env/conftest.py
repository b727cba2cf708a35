"""An env that tests of wrong arguments share."""

from __future__ import annotations

import pytest
from bad_arguments import started

import cule


@pytest.fixture(scope="module")
def pong() -> cule.AtariEnv:
    """Pong, after a reset."""
    return started()
