"""The 18 joystick actions, and where continuous actions fall among them."""

from __future__ import annotations

ACTIONS = (
    "NOOP", "FIRE", "UP", "RIGHT", "LEFT", "DOWN", "UPRIGHT", "UPLEFT", "DOWNRIGHT", "DOWNLEFT", "UPFIRE", "RIGHTFIRE",
    "LEFTFIRE", "DOWNFIRE", "UPRIGHTFIRE", "UPLEFTFIRE", "DOWNRIGHTFIRE", "DOWNLEFTFIRE",
)  # fmt: skip

_DIRECTIONS = {
    (0, 0): "", (0, 1): "UP", (1, 0): "RIGHT", (-1, 0): "LEFT", (0, -1): "DOWN", (1, 1): "UPRIGHT", (-1, 1): "UPLEFT",
    (1, -1): "DOWNRIGHT", (-1, -1): "DOWNLEFT",
}  # fmt: skip


def action_number(horizontal: int, vertical: int, fire: bool) -> int:
    """The action for a stick at `horizontal`, `vertical` (each -1, 0 or 1; right and up count up) and the button."""
    name = _DIRECTIONS[horizontal, vertical] + ("FIRE" if fire else "")
    return ACTIONS.index(name or "NOOP")


def action_set(bits: int) -> tuple[int, ...]:
    """The actions whose bits are set, in ascending order."""
    return tuple(action for action in range(len(ACTIONS)) if bits >> action & 1)
