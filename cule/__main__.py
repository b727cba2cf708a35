"""`python -m cule`, installed as `cule`: lists the programs, or runs one, as in `cule demo`."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Sequence

import torch

import cule
from cule.programs.command_line import exit_status_of, listed, run_one_of
from cule.programs.directory import PROGRAMS

LIBRARIES = ("gymnasium", "ale-py", "numpy")


def versions() -> str:
    """The versions of cule, of Python and of the libraries that cule is built on."""
    found = [f"cule {cule.__version__}", f"Python {platform.python_version()}"]
    found.append(f"torch {torch.__version__}")  # of which CUDA it is, too
    found += [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    return ", ".join(found)


def overview() -> str:
    """The versions, and the programs with what they do."""
    usage = "usage: python -m cule PROGRAM ...   (--help after it lists its options)"
    lines = [versions(), "", usage, ""]
    return "\n".join(lines + listed({name: what for name, (_, what) in PROGRAMS.items()}))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program that the command line names; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["--version"]:
        return exit_status_of("cule", lambda: print(versions()))
    return run_one_of("cule", PROGRAMS, overview, words)


if __name__ == "__main__":
    sys.exit(main())
