"""Each header includes what it needs: it compiles alone."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pybind11

CSRC = Path(__file__).resolve().parents[2] / "csrc"


def test_headers_compile_by_themselves() -> None:
    """One call of the compiler has a translation unit for each header.

    The games' headers are parts of games.h.
    """
    headers = sorted(path for path in CSRC.rglob("*.h") if path.parent.name != "games")
    assert len(headers) > 40
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    # The bindings' own headers know Python.
    folders = (CSRC, pybind11.get_include(), sysconfig.get_paths()["include"])
    includes = [f"-I{folder}" for folder in folders]
    # Without warnings: a header that is compiled as a file of its own has no use for #pragma once.
    command = [
        *compiler,
        "-std=c++17",
        "-w",
        "-fsyntax-only",
        *includes,
        "-x",
        "c++",
        *map(str, headers),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
