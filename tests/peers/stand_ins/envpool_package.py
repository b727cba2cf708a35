"""`cule.adapters.envpool` in the place of the package `envpool`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from cule.adapters import envpool


def module(name: str, **values: Any) -> None:
    """A module of this name, for `import`."""
    made = sys.modules[name] = ModuleType(name)
    made.__dict__.update(values)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, made)


def make_dm(task_id: str, **options: Any) -> Any:
    """EnvPool's maker of dm envs, which cule's adapter does not have: refuses as `make` does."""
    return envpool.make(task_id, "dm", **options)


names = {name: getattr(envpool, name) for name in envpool.__all__} | {"make_dm": make_dm}
module("envpool", __path__=[], __file__=envpool.__file__, **names)
module("envpool.registration", **names)
module("envpool.atari", __path__=[], AtariEnvSpec=envpool.EnvSpec)
# Names of C++ classes and of types, which only tests that are left out use.
module("envpool.atari.atari_envpool", _AtariEnvPool=None, _AtariEnvSpec=None)
module("envpool.python", __path__=[])
module(
    "envpool.python.protocol",
    **dict.fromkeys(("DMEnvPool", "EnvPool", "EnvSpec", "GymnasiumEnvPool")),
)
module(
    "envpool.atari.registration",
    atari_game_list=sorted(game.name for game in envpool.games()),
)
