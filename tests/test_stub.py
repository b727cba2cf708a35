"""cule/_core.pyi names what the compiled module has."""

from __future__ import annotations

import ast
from pathlib import Path

from cule import _core

ROOT = Path(__file__).resolve().parents[1]


def names_of(body: list[ast.stmt]) -> set[str]:
    """What a module's or a class's body defines or declares."""
    defined = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    declared = {
        node.target.id
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {name for name in defined | declared if not name.startswith("_")}


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_stub_names_all_that_there_is() -> None:
    body = ast.parse((ROOT / "cule" / "_core.pyi").read_text()).body
    assert names_of(body) == public(_core)
    for node in body:
        if isinstance(node, ast.ClassDef):
            assert names_of(node.body) == public(getattr(_core, node.name))
