"""Which file of cule imports which: rooms in their order, and no circles.

Every import counts: those in functions and those for type checkers, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def modules() -> dict[str, Path]:
    """The files of cule, by the names under which they are imported."""
    paths = [*(ROOT / "cule").rglob("*.py"), ROOT / "cule" / "_core.pyi"]
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


def imports(text: str) -> Iterator[str]:
    """The modules of cule that a file imports; `from cule import AtariEnv` imports cule itself."""
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "expected imports with the whole name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            while name not in modules() and "." in name:
                name = name.rpartition(".")[0]
            if name in modules():
                yield name


@cache
def arrows() -> dict[str, set[str]]:
    """What each file imports."""
    return {name: {*imports(path.read_text())} - {name} for name, path in modules().items()}


def reached(name: str) -> set[str]:
    """The files that a file imports, those that these import, and so on."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = arrows()[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def circles() -> list[set[str]]:
    """The largest sets of files each of which imports, directly or not, all of its set."""
    below = {name: reached(name) for name in modules()}
    found = [
        {other for other in below[name] if name in below[other]}
        for name in sorted(modules())
        if name in below[name]
    ]
    return [circle for i, circle in enumerate(found) if circle not in found[:i]]


def test_imports_are_found_wherever_they_stand() -> None:
    text = """
import torch, cule.rom
from cule import AtariEnv, _core
def function():
    from cule.train import plan
    if TYPE_CHECKING:
        from cule.disk.files import opened
"""
    found = ["cule.rom", "cule", "cule._core", "cule.train.plan", "cule.disk.files"]
    assert sorted(imports(text)) == sorted(found)
    assert "cule.engine.engine" in reached("cule") and len(modules()) > 200


def test_files_import_each_other_in_no_circle() -> None:
    assert not circles()


def test_parts_of_the_package_import_those_above_them() -> None:
    """The tree in design/architecture.md has every module of cule/ once, each below its imports."""
    text = (ROOT / "design" / "architecture.md").read_text()
    tree = re.search(r"^cule/\n((?:  .*\n)+)", text, re.MULTILINE)
    assert tree
    lines = re.findall(r"^  (\S.*?)(?:  .*)?$", tree[1], re.MULTILINE)
    order = [name.rstrip("/").removesuffix(".py") for line in lines for name in line.split(", ")]
    parts = {name.split(".")[1] for name in modules() if "." in name}
    assert sorted(order) == sorted(parts - {"_core"})
    place_of = {"_core": -1} | {name: place for place, name in enumerate(order)}
    # cule/__init__.py has names of several parts, so that it comes after the last of them.
    place_of["cule"] = max(place_of[name.split(".")[1]] for name in arrows()["cule"])
    for name, imported in arrows().items():
        for other in imported if name != "cule" else ():
            part, above = name.split(".")[1], other.split(".")[1] if "." in other else other
            assert place_of[above] <= place_of[part], f"{name} imports {other}"
