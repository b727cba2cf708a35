"""Each header includes what it needs, so that it compiles alone, and only what is above it."""

import re
import subprocess
import sysconfig

import pybind11

from tests.support.build import CSRC, TESTS, compiler

# The header that another one includes before anything else.
BEGIN = re.compile(r'\A(?://.*\n)*#pragma once\s+#include "(.+)"')
CHIPS = {"cpu_6507", "m6532", "tia", "cartridge"}


def folders_in_order() -> list[str]:
    """The folders of csrc, from the one that includes no other on (design/architecture.md)."""
    text = (TESTS.parent / "design" / "architecture.md").read_text()
    (tree,) = re.findall(r"^csrc/\n(.*?)^cule/$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^  (\w+)/", tree, re.MULTILINE)


def test_folders_include_only_those_above_them() -> None:
    order = folders_in_order()
    assert sorted(order) == sorted(path.name for path in CSRC.iterdir() if path.is_dir())
    checked = 0
    for path in CSRC.rglob("*"):
        if path.suffix not in (".h", ".cuh", ".cpp", ".cu"):
            continue
        folder = path.relative_to(CSRC).parts[0]
        above = {*order[: order.index(folder) + 1]}
        if folder in CHIPS:
            above -= CHIPS - {folder}
        for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE):
            included = CSRC / name
            assert included.is_file(), f"{path} includes {name}, expected a path below csrc"
            assert name.split("/")[0] in above, f"{path} includes {name}, expected one of {above}"
            checked += 1
    assert checked > 200


def test_headers_compile_by_themselves() -> None:
    """One call of the compiler has a translation unit for each header, except those with which
    another one begins: there they are as alone as in a file of their own.

    The games' headers are parts of games.h. Those in vectors/ are for one kind of processor each;
    observe.h includes the right one. So are those in system/ for systems.
    """
    parts = ("games", "vectors", "system")
    headers = sorted(path for path in CSRC.rglob("*.h") if path.parent.name not in parts)
    begins = {CSRC / name for header in headers for name in BEGIN.findall(header.read_text())}
    assert len(headers) > 90 and len(begins) < len(headers) / 2
    # The bindings' own headers know Python.
    folders = (CSRC, pybind11.get_include(), sysconfig.get_paths()["include"])
    includes = [f"-I{folder}" for folder in folders]
    # Without warnings: a header that is compiled as a file of its own has no use for #pragma once.
    options = ["-std=c++17", "-w", "-fsyntax-only", *includes, "-x", "c++"]
    command = [*compiler(), *options, *(str(path) for path in headers if path not in begins)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
