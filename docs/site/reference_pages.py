"""The reference: a page for each module that users import, of its docstrings.

mkdocstrings turns the directives on these pages into text.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

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
    "cule.adapters.pettingzoo",
    "cule.adapters.stable_baselines3",
    "cule.adapters.torchrl",
)


def public_names(module: str) -> list[str]:
    """What a module offers: its `__all__`, or the classes and functions that it defines.

    Modules with pages of their own are left out. Nothing is imported but the module's package.
    """
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    body = ast.parse(Path(spec.origin).read_text()).body
    names = [
        one.name
        for one in body
        if isinstance(one, (ast.ClassDef, ast.FunctionDef)) and not one.name.startswith("_")
    ]
    for one in body:
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__":
            names = ast.literal_eval(one.value)
    return [name for name in names if f"{module}.{name}" not in MODULES]


def page(module: str) -> str:
    """The page of a module: its docstring, then its names."""
    text = f"::: {module}\n    options: {{ members: false, show_root_heading: false }}\n"
    return "\n".join(
        [f"# {module}\n", text, *(f"::: {module}.{n}\n" for n in public_names(module))]
    )


def pages() -> dict[str, str]:
    """All pages by their paths."""
    return {f"reference/{name}.md": page(name) for name in MODULES}
