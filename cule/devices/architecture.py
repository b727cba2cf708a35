"""Which GPUs this build has machine code for. It has no PTX that a driver could compile."""

from __future__ import annotations

import torch

from cule import _core


def serves(architecture: str, major: int, minor: int) -> bool:
    """Whether code for an architecture such as "86" runs on a GPU of capability such as 8.9.

    Code runs on GPUs of the same major version that are as new or newer; "90a" only on 9.0.
    """
    digits = architecture.rstrip("af")
    built = int(digits[:-1]), int(digits[-1])
    if architecture.endswith("a"):
        return built == (major, minor)
    return built[0] == major and built[1] <= minor


def missing_code(index: int) -> str | None:
    """A sentence on what to do if this build has no code for `cuda:index`; None: it has code."""
    major, minor = torch.cuda.get_device_capability(index)
    if any(serves(architecture, major, minor) for architecture in _core.CUDA_ARCHITECTURES):
        return None
    built = ", ".join(f"sm_{architecture}" for architecture in _core.CUDA_ARCHITECTURES)
    name = torch.cuda.get_device_name(index)
    return (
        f"this cule was built for GPUs of {built}, and cuda:{index} ({name}) is sm_{major}{minor}; "
        f"build it again with CMAKE_ARGS=-DCMAKE_CUDA_ARCHITECTURES={major}{minor}"
    )


def architecture_of(device: torch.device) -> str:
    """The architecture of a GPU, such as "sm_90"."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"
