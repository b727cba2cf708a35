"""Which GPUs a build supports, and the message if it does not support this machine's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import cule
from cule import _core
from cule.devices.architecture import serves
from cule.devices.device import find_device

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("architecture", "capability", "served"),
    [
        ("75", (7, 5), True), ("80", (7, 5), False), ("75", (8, 0), False), ("80", (8, 9), True),
        ("86", (8, 0), False), ("90", (9, 0), True), ("90a", (9, 0), True),
        ("100a", (10, 3), False),
        ("100f", (10, 3), True), ("120", (12, 1), True), ("120", (10, 0), False),
    ],
)  # fmt: skip
def test_architecture_serves_newer_gpus_of_its_major_version(
    architecture: str, capability: tuple[int, int], served: bool
) -> None:
    assert serves(architecture, *capability) is served


@pytest.mark.parametrize(
    "capability", [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)]
)
def test_default_build_serves_each_gpu_from_turing_on(capability: tuple[int, int]) -> None:
    """The list in CMakeLists.txt is compiled if no GPU is visible."""
    (listed,) = re.findall(
        r"set\(CULE_ALL_ARCHITECTURES ([\d ]+)\)", (ROOT / "CMakeLists.txt").read_text()
    )
    assert any(serves(architecture, *capability) for architecture in listed.split())


def test_core_names_architectures_where_it_has_cuda() -> None:
    assert bool(_core.CUDA_ARCHITECTURES) is _core.has_cuda()


@pytest.fixture
def t4(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pretended GPU that is older than those that the build has code for."""
    monkeypatch.setattr(_core, "has_cuda", lambda: True)
    monkeypatch.setattr(_core, "CUDA_ARCHITECTURES", ["80", "90"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index=None: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index=None: "Tesla T4")


@pytest.mark.usefixtures("t4")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda")])
def test_gpu_without_code_for_it_is_refused(device: str | torch.device) -> None:
    with pytest.raises(
        ValueError,
        match=r"this cule was built for GPUs of sm_80, sm_90, and cuda:0 \(Tesla T4\) is sm_75; "
        r"build it again with CMAKE_ARGS=-DCMAKE_CUDA_ARCHITECTURES=75, or use device='cpu'",
    ):
        cule.AtariEnv("pong", device=device, reset_pool_size=1)


@pytest.mark.usefixtures("t4")
def test_default_device_is_the_cpu_where_the_gpu_is_not_served() -> None:
    with pytest.warns(
        UserWarning, match=r"envs run on the CPU: this cule was built for GPUs of sm_80, sm_90, and"
    ):
        assert find_device(None) == torch.device("cpu")


@pytest.mark.gpu
def test_gpu_that_is_served_is_the_default_device() -> None:
    assert find_device(None).type == "cuda"
