"""Weights as a file of the safetensors format: names, shapes, types and numbers, and no code."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cule.disk.files import opened
from cule.errors import InvalidValue
from cule.train.checks import wanted_package

# The types that weights of networks have here, as the format names them.
TYPES = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16,
         "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}  # fmt: skip


def library() -> Any:
    """The package safetensors.

    Raises:
        ValueError: it is not installed.
    """
    with wanted_package("safetensors"):
        import safetensors
        import safetensors.torch

        return safetensors


def content_of_weights(state: Mapping[str, torch.Tensor]) -> bytes:
    """The content of a file with a network's state."""
    # Tensors that share memory, such as tied weights, are written as often as they have names.
    own = {name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
           for name, value in state.items()}  # fmt: skip
    content: bytes = library().torch.save(own, {"format": "pt"})
    return content


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with opened(path) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _check(path: Path, found: Mapping[str, Any], net: nn.Module) -> None:
    """Checks names, types and shapes of a file's tensors, before one of them is read.

    Raises:
        ValueError: they are not those of the network.
    """
    wanted = {name: (value.dtype, tuple(value.shape)) for name, value in net.state_dict().items()}
    if found == wanted:
        return
    for name in sorted(found.keys() | wanted.keys()):
        has, wants = (str(some.get(name, "none")) for some in (found, wanted))
        if has != wants:
            raise InvalidValue(
                f"expected the weights of a {type(net).__name__} in {path}, got others: {name} is "
                f"{has} in place of {wants}"
            )


def load_weights(path: Path, sha256: str, net: nn.Module) -> None:
    """Gives a network the weights of a file.

    Args:
        path: the file.
        sha256: its checksum.
        net: the network; parameters without memory get that of the file's tensors.

    Raises:
        ValueError: the file cannot be read, is damaged, is of another format, or has other weights.
    """
    package = library()
    try:
        found = checksum(path)
    except OSError as problem:
        raise InvalidValue(
            f"expected weights at {path}, but they cannot be read: {problem.strerror}"
        ) from problem
    if found != sha256:
        raise InvalidValue(
            f"expected {path} to be as it was published, but it is another file, damaged or cut off"
        )
    try:
        with package.safe_open(path, framework="pt", device="cpu") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            shapes = {
                name: (TYPES.get(one.get_dtype()), tuple(one.get_shape()))
                for name, one in slices.items()
            }
            _check(path, shapes, net)
            # Copies: the tensors themselves would be the file, which may change.
            state = {name: file.get_tensor(name).clone() for name in shapes}
    except package.SafetensorError as problem:
        raise InvalidValue(
            f"expected a file of safetensors at {path}, got something else: {problem}"
        ) from problem
    on_meta = any(value.is_meta for value in net.state_dict().values())
    net.load_state_dict(state, assign=on_meta)
