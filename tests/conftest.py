"""What all tests share: the devices that are there."""

from __future__ import annotations

import pytest
import torch

from cule import _core

# The tests' tensors are small: torch's threads would only get in each other's and other test processes' way.
torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """GPU tests are skipped where there is no GPU or no CUDA build."""
    if _core.has_cuda() and torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA build and a GPU"))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Each device on which envs can live here."""
    return request.param
