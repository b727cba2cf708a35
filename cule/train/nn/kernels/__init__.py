"""Kernels in Triton for what torch does in many small ones, each beside its torch oracle.

A kernel serves tensors on a GPU where Triton is installed, as it is with torch's CUDA wheels. Else,
and inside torch.compile, which makes kernels of its own, torch's functions compute the same: they
are the oracle of the tests.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

import torch

# Of random numbers: between 0 and 1, exponential variables of rate 1, whole numbers.
Kind = Literal["uniform", "exponential", "integers"]
HAS_TRITON = find_spec("triton") is not None


def serve(tensor: torch.Tensor) -> bool:
    """Whether kernels compute what has this tensor as input."""
    return HAS_TRITON and tensor.is_cuda and not torch.compiler.is_compiling()
