"""The 18 joystick actions, where continuous actions fall among them, and checks of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cule.arguments import INTEGERS, UNSIGNED, array
from cule.arguments import tensor as readable
from cule.errors import InvalidType, InvalidValue

ACTIONS = (
    "NOOP", "FIRE", "UP", "RIGHT", "LEFT", "DOWN", "UPRIGHT", "UPLEFT", "DOWNRIGHT", "DOWNLEFT",
    "UPFIRE", "RIGHTFIRE", "LEFTFIRE", "DOWNFIRE", "UPRIGHTFIRE", "UPLEFTFIRE", "DOWNRIGHTFIRE",
    "DOWNLEFTFIRE",
)  # fmt: skip

_DIRECTIONS = {
    (0, 0): "", (0, 1): "UP", (1, 0): "RIGHT", (-1, 0): "LEFT", (0, -1): "DOWN",
    (1, 1): "UPRIGHT", (-1, 1): "UPLEFT", (1, -1): "DOWNRIGHT", (-1, -1): "DOWNLEFT",
}  # fmt: skip


def action_number(horizontal: int, vertical: int, fire: bool) -> int:
    """The action for a stick position and the button; right and up are 1, left and down -1."""
    name = _DIRECTIONS[horizontal, vertical] + ("FIRE" if fire else "")
    return ACTIONS.index(name or "NOOP")


def action_set(bits: int) -> tuple[int, ...]:
    """The actions whose bits are set, in ascending order."""
    return tuple(action for action in range(len(ACTIONS)) if bits >> action & 1)


def on_device(name: str, values: Any, device: torch.device) -> torch.Tensor:
    """The values as a tensor on `device`. If they are a tensor, it must be there already.

    Raises:
        TypeError, ValueError: they are not numbers, or on another device.
    """
    if isinstance(values, torch.Tensor):
        if values.device != device:
            raise InvalidValue(f"expected {name} on {device}, got a tensor on {values.device}")
        return readable(name, values)
    return torch.from_numpy(np.array(array(name, values), order="C")).to(device)


def unsigned(tensor: torch.Tensor) -> np.ndarray:
    """Integers on the CPU without a sign, in the same memory: negative ones are the largest."""
    values = tensor.numpy()
    return values.view(f"u{values.itemsize}")


def check_numbers(
    name: str, values: Any, shape: tuple[int, ...], bound: int, device: torch.device
) -> torch.Tensor:
    """Action numbers below `bound`, of this shape and an integer dtype, on `device`.

    The values are checked on the CPU only: on a GPU the check would wait for the device. A GPU
    plays a wrong number as a no-op.

    Raises:
        TypeError, ValueError: dtype, shape, device or, on the CPU, range is not as described.
    """
    tensor = on_device(name, values, device)
    if tensor.dtype not in INTEGERS:
        raise InvalidType(f"expected {name} to be integers, got {tensor.dtype}")
    if tensor.dtype in UNSIGNED:
        tensor = tensor.long()
    if tuple(tensor.shape) != shape:
        raise InvalidValue(f"expected {name} to have shape {shape}, got {tuple(tensor.shape)}")
    if device.type == "cpu" and unsigned(tensor).max() >= bound:
        raise InvalidValue(
            f"expected {name} from 0 to {bound - 1}, got values from {int(tensor.min())} to "
            f"{int(tensor.max())}"
        )
    return tensor


class ContinuousActions:
    """Turns (radius, angle, fire) into action numbers and how far a paddle turns.

    On a GPU, sines and cosines may differ from the CPU's in the last bit. So a stick that is
    exactly at the threshold may count as pushed on one device and not on the other.

    Args:
        threshold: how far a stick must be pushed, and the button.
        device: where the actions are.
    """

    def __init__(self, threshold: float, device: torch.device):
        self.threshold, self.device = threshold, device
        table = torch.zeros((3, 3, 2), dtype=torch.int32, device="cpu")
        for h in (-1, 0, 1):
            for v in (-1, 0, 1):
                for fire in (0, 1):
                    # As in ale-py, even where a game without a button has fewer actions than
                    # numbers.
                    table[h + 1, v + 1, fire] = action_number(h, v, bool(fire))
        self.table = table.to(device)

    def _waves(self, angles: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines; on the CPU numpy's, which are bit for bit those of ale-py."""
        if self.device.type != "cpu":
            return torch.cos(angles), torch.sin(angles)
        return torch.from_numpy(np.cos(angles.numpy())), torch.from_numpy(np.sin(angles.numpy()))

    def translate(self, actions: Any, num_envs: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The action numbers and the strengths of (num_envs, 3) float32 actions.

        Returns:
            Numbers, (num_envs,) int32, and strengths from 0 to 1, (num_envs,) float32.

        Raises:
            TypeError, ValueError: the actions' dtype, shape, device or, on the CPU, range is not as
                described.
        """
        values = on_device("actions", actions, self.device)
        if values.dtype != torch.float32:
            raise InvalidType(f"expected actions to be float32, got {values.dtype}")
        if tuple(values.shape) != (num_envs, 3):
            raise InvalidValue(
                f"expected actions to have shape {(num_envs, 3)}, got {tuple(values.shape)}"
            )
        radius = values[:, 0]
        if self.device.type == "cpu":
            if not bool(torch.isfinite(values).all()):
                raise InvalidValue("expected actions to be finite, got NaN or infinity")
            if float(radius.min()) < 0 or float(radius.max()) > 1:
                raise InvalidValue(
                    f"expected actions with a radius from 0 to 1, got {float(radius.min())} to "
                    f"{float(radius.max())}"
                )
        else:
            radius = torch.nan_to_num(radius, nan=0.0).clamp_(0.0, 1.0)
        x, y = (radius * wave for wave in self._waves(values[:, 1]))
        horizontal = (x > self.threshold).long() - (x < -self.threshold).long() + 1
        vertical = (y > self.threshold).long() - (y < -self.threshold).long() + 1
        fire = (values[:, 2] > self.threshold).long()
        return self.table[horizontal, vertical, fire], radius
