"""Which file of cule imports which: rooms in their order, and no circles.

Every import counts: those in functions and those for type checkers, too.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
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


# Functions that may be longer: a switch with a case for each register of the chip.
LONG_FUNCTIONS = {"csrc/tia/chip/tia.h: write_register"}
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 400, 60


def code() -> list[Path]:
    """All files of code."""
    listed = ["cule", "csrc", "examples", "benchmarks", "docs", "release", "tests"]
    kinds = {".py", ".h", ".cuh", ".cpp", ".cu"}
    return [p for part in listed for p in (ROOT / part).rglob("*") if p.suffix in kinds]


def test_files_are_short() -> None:
    long = {path: text.count("\n") for path in code() if (text := path.read_text())}
    assert not {path: lines for path, lines in long.items() if lines > MOST_LINES_OF_A_FILE}


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """The functions of a file with their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def cpp_functions(text: str) -> Iterator[tuple[str, int]]:
    """The functions and methods of a file in C++ with their lines, by its indentation."""
    lines = text.split("\n")
    for end, line in enumerate(lines):
        if not re.fullmatch(r"( {0,4})}", line):
            continue
        indent, start = line[:-1], end
        while start and not re.match(rf"{indent}\S.*[{{]$|{indent}\S[^(]*\(", lines[start - 1]):
            start -= 1
        head = " ".join(lines[max(0, start - 1) : start + 3])
        name = re.search(r"([\w~]+)\(", head)
        control = re.match(r" *(if|for|while|switch|do|else|namespace|struct|class|enum)\b", head)
        if name and not control:
            yield name[1], end - start + 2


def test_functions_are_short() -> None:
    long = set()
    for path in code():
        found = python_functions if path.suffix == ".py" else cpp_functions
        for name, lines in found(path.read_text()):
            if lines > MOST_LINES_OF_A_FUNCTION:
                long.add(f"{path.relative_to(ROOT)}: {name}")
    assert long == LONG_FUNCTIONS
    assert dict(cpp_functions((ROOT / "csrc/kernels/play.h").read_text()))["play_frames"] > 40


def test_test_files_have_names_of_their_own() -> None:
    """pytest imports a file of tests by its last name, so that it cannot run two of one name."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(names) > 100 and not [name for name, files in names.items() if files > 1]


def test_modules_without_a_package_have_names_of_their_own() -> None:
    """Tests import them by their last names."""
    folders = [path for path in (ROOT / "tests").rglob("*") if path.is_dir()]
    paths = [
        path
        for folder in (*folders, ROOT / "tests", ROOT / "docs" / "site", ROOT / "release")
        if not (folder / "__init__.py").exists() and folder.name != "support"
        for path in folder.glob("*.py")
        if path.name != "conftest.py"
    ]
    names = Counter(path.name for path in paths)
    assert len(names) > 100 and not [name for name, files in names.items() if files > 1]


def test_rooms_of_train_import_those_above_them() -> None:
    """The list in design/train.md has every room and file of cule/train, below its imports."""
    text = (ROOT / "design" / "train.md").read_text()
    rooms = re.search(r"^## The rooms of cule/train\n.*?^```\n(.*?)^```", text, re.M | re.S)
    assert rooms
    heads = [re.split(r"\s{2,}", line)[0] for line in rooms[1].split("\n") if line[:1].strip()]
    order = [name.strip("/") for head in heads for name in head.rstrip(",").split(", ")]
    inside = {name.split(".")[2] for name in modules() if name.startswith("cule.train.")}
    assert sorted(order) == sorted(inside - {"__main__"})
    place_of = {name: place for place, name in enumerate(order)}
    for name, imported in arrows().items():
        own = name.split(".")[1:3]
        for other in imported:
            parts = other.split(".")[1:3]
            if own[:1] == ["train"] == parts[:1] and len(own) == len(parts) == 2:
                assert place_of.get(parts[1], -1) <= place_of.get(own[1], 99), (name, other)
