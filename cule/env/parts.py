"""The parts of observations: images, RAM and objects, alone or several at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cule.arguments import choice
from cule.errors import InvalidValue, shown

# The names of the parts, each with the engine's tensors of it: of the newest observation, and of
# the last of an episode.
TENSORS = {
    "image": ("observations", "final_observations"),
    "ram": ("ram", ""),
    "objects": ("objects", "final_objects"),
}

ObsType = str | tuple[str, ...]


def observation_types(name: str, value: Any) -> ObsType:
    """One of the names, or a tuple of several, each once."""
    if not isinstance(value, (list, tuple)):
        return choice(name, value, tuple(TENSORS))
    found = tuple(choice(name, one, tuple(TENSORS)) for one in value)
    if not found or len(set(found)) < len(found):
        raise InvalidValue(f"expected {name} to name each part once, got {shown(value)}")
    return found


def parts_of(obs_type: ObsType) -> tuple[str, ...]:
    """The names of the parts."""
    return (obs_type,) if isinstance(obs_type, str) else obs_type


def refuse_objects(owner: str, options: Mapping[str, Any]) -> None:
    """Checks that AtariEnv's keywords ask for images or RAM, one of them.

    Raises:
        ValueError: they ask for something else.
    """
    obs_type = options.get("obs_type", "image")
    if not isinstance(obs_type, str) or obs_type == "objects":
        raise InvalidValue(
            f"expected obs_type to be 'image' or 'ram' for {owner}, got {shown(obs_type)}"
        )
