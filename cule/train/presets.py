"""Settings with one default for a GPU and another for a CPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import torch

Args = TypeVar("Args", bound=Any)


def by_device(*, gpu: float, cpu: float) -> Any:
    """A field of a dataclass of settings whose default depends on the device.

    Args:
        gpu: the default on a GPU.
        cpu: the default on a CPU.

    Returns:
        A field that is None until `filled` sets it.
    """
    return dataclasses.field(default=None, metadata={"cuda": gpu, "cpu": cpu})


def open_settings(args: Any) -> list[dataclasses.Field]:
    """The fields made by `by_device` whose value is None."""
    return [
        field
        for field in dataclasses.fields(args)
        if "cpu" in field.metadata and getattr(args, field.name) is None
    ]


def filled(args: Args, device: torch.device, known: Mapping[str, Any] | None = None) -> Args:
    """A copy of the settings in which this device's defaults replace None.

    Args:
        args: the settings.
        device: where the program computes.
        known: the settings of a run that is resumed, used in place of the device's defaults.
    """
    known = known or {}
    return dataclasses.replace(
        args,
        **{
            field.name: known.get(field.name, field.metadata[device.type])
            for field in open_settings(args)
        },
    )


def announcement(given: Any, args: Any, device: torch.device, algorithm: str) -> str:
    """A line that says what is trained on which device, and which settings are its defaults.

    Args:
        given: the settings as the user gave them.
        args: the result of `filled` for them.
        device: where the program computes.
        algorithm: the algorithm's name.
    """
    threads = torch.get_num_threads()
    where, kind = f"the CPU ({threads} thread{'s' * (threads > 1)})", "a CPU"
    if device.type == "cuda":
        where, kind = torch.cuda.get_device_name(device), "a GPU"
    line = f"Training {algorithm} on {args.game}, on {where}."
    chosen = [
        f"--{field.name.replace('_', '-')} {getattr(args, field.name)}"
        for field in open_settings(given)
    ]
    return f"{line} Chosen for {kind}: {' '.join(chosen)}" if chosen else line
