"""The reference: a page for each module that users import, of its docstrings.

mkdocstrings turns the directives on these pages into text.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

MODULES = (
    "cule",
    "cule.errors",
    "cule.presets",
    "cule.train",
    "cule.scope",
    "cule.adapters.ale",
    "cule.adapters.envpool",
    "cule.adapters.envpool_v0",
    "cule.adapters.jax",
    "cule.adapters.stable_baselines3",
    "cule.adapters.torchrl",
)


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or the classes and functions that it defines.

    Modules among them are left out, as they have pages of their own.
    """
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    defined = {n: t for n, t in vars(module).items() if inspect.isclass(t) or inspect.isfunction(t)}
    return [n for n, t in defined.items() if t.__module__ == module.__name__ and n[0] != "_"]


def page(name: str) -> str:
    """The page of a module: its docstring, then its names."""
    module = f"::: {name}\n    options: {{ members: false, show_root_heading: false }}\n"
    names = public_names(importlib.import_module(name))
    return "\n".join([f"# {name}\n", module, *(f"::: {name}.{one}\n" for one in names)])


def pages() -> dict[str, str]:
    """All pages by their paths."""
    return {f"reference/{name}.md": page(name) for name in MODULES}
