"""Each header includes what it needs: it compiles alone."""

import subprocess
import sysconfig

import pybind11

from tests.support.build import CSRC, compiler


def test_headers_compile_by_themselves() -> None:
    """One call of the compiler has a translation unit for each header.

    The games' headers are parts of games.h.
    """
    headers = sorted(path for path in CSRC.rglob("*.h") if path.parent.name != "games")
    assert len(headers) > 40
    # The bindings' own headers know Python.
    folders = (CSRC, pybind11.get_include(), sysconfig.get_paths()["include"])
    includes = [f"-I{folder}" for folder in folders]
    # Without warnings: a header that is compiled as a file of its own has no use for #pragma once.
    options = ["-std=c++17", "-w", "-fsyntax-only", *includes, "-x", "c++"]
    command = [*compiler(), *options, *map(str, headers)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
