"""Checks what an algorithm's methods return, in words, before it is used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.learning import Copy


def described(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (int, float, str, type(None))):
        return repr(value)
    return f"one of {type(value).__name__}"


def check_networks(declared: Any) -> None:
    """Checks what `networks` returns.

    Raises:
        ValueError: it is no mapping of names to networks and copies.
    """
    if not isinstance(declared, Mapping):
        raise InvalidValue(
            'expected networks() to return networks by name, such as {"net": network}, got '
            f"{described(declared)}"
        )
    for name, net in declared.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidValue(f"expected networks() to name networks as attributes, got {name!r}")
        if not isinstance(net, (nn.Module, Copy)):
            raise InvalidValue(
                f"expected networks() to return a torch.nn.Module or a train.Copy as {name}, got "
                f"{described(net)}"
            )


def check_tensors(method: str, values: Any, names: Collection[str] = ()) -> None:
    """Checks that a method returns tensors by name.

    Args:
        method: the method's name.
        values: what it returns.
        names: those that have to be there.

    Raises:
        ValueError: it returns something else, or not all of these.
    """
    if not isinstance(values, Mapping):
        raise InvalidValue(
            f"expected {method} to return tensors by name, as a dict, got {described(values)}"
        )
    if missing := [name for name in names if name not in values]:
        raise InvalidValue(
            f"expected {method} to return {', '.join(missing)}, got {', '.join(values)}"
        )
    for name, value in values.items():
        if not isinstance(value, torch.Tensor):
            raise InvalidValue(
                f"expected {method} to return {name} as a tensor, got {described(value)}"
            )


def check_loss(values: Any) -> None:
    """Checks what `loss` returns.

    Raises:
        ValueError: there is no scalar "loss" with a gradient, or something else is no scalar.
    """
    if not isinstance(values, dict) or "loss" not in values:
        raise InvalidValue(f'expected loss to return a dict with "loss", got {values!r}')
    found = values["loss"]
    if not isinstance(found, torch.Tensor) or found.dim() or not found.requires_grad:
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else found
        raise InvalidValue(f"expected a loss that is a scalar with a gradient, got {shape}")
    for name, value in values.items():
        if not isinstance(value, torch.Tensor) or value.dim():
            raise InvalidValue(
                f"expected loss to return what is logged as tensors of one number, which stay on "
                f"the device (without .item()), got {name} as {described(value)}"
            )
