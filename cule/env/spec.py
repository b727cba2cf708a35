"""The EnvSpec of an AtariEnv, from which gymnasium.make_vec makes the same env."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from cule.facts.patches import Patch
from cule.rom import Game

# For these, make_vec's defaults differ from AtariEnv's.
_ALWAYS = ("num_envs", "output", "render_mode")


def _plain(value: Any) -> Any:
    """The value as a type that JSON has."""
    if isinstance(value, AutoresetMode):
        return value.value
    if isinstance(value, Patch):
        return asdict(value)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    plain = (str, int, float, type(None))
    return value if isinstance(value, plain) else str(value)


def spec_of(
    games: Sequence[Game], given: Mapping[str, Any], constructor: Callable[..., Any]
) -> EnvSpec | None:
    """The spec of an env with these keywords; None for several games, which share no id.

    Args:
        games: the games of the env.
        given: the constructor's keywords and their values.
        constructor: AtariEnv's constructor.
    """
    registered = gymnasium.registry.get(f"cule/{games[0].ale_id}Preprocessed-v5")
    if registered is None or len(set(games)) > 1:
        return None
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(constructor).parameters.items()
    }
    keywords = {
        name: _plain(given[name])
        for name, default in defaults.items()
        if name not in ("self", "game") and (name in _ALWAYS or given[name] is not default)
    }
    spec = copy.deepcopy(registered)
    spec.kwargs |= {
        name: value
        for name, value in keywords.items()
        if name in _ALWAYS or value != defaults[name]
    }
    spec.kwargs["vectorization_mode"] = "vector_entry_point"
    return spec
