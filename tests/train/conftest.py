"""What several files of tests of trainings need."""

from __future__ import annotations

import pytest
from training_runs import settings, trained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained policy."""
    folder = tmp_path_factory.mktemp("run")
    trained(settings(folder, total_frames=500))
    return folder
