"""`python -m cule`, installed as `cule`: lists the programs, or runs one, as in `cule demo`."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Sequence

import torch

import cule

# The programs: the module with its `main`, and what it does.
PROGRAMS = {
    "demo": ("cule.demo", "plays a dozen games, says how fast, and draws their screens"),
    "play": ("cule.play", "opens a game in a window, which you play with the keyboard"),
    "record": ("cule.record", "records a video of games that are played with random actions"),
    "bench": ("cule.bench.__main__", "measures frames per second; on a CPU, ale-py's, too"),
    "scope": ("cule.scope.__main__", "says where a training's time goes, on the CPU and the GPU"),
    "info": (
        "cule.info",
        "says what is installed, built and found, and how to fix what is missing",
    ),
}
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
    lines += [f"  {name:<10}{what}" for name, (_, what) in PROGRAMS.items()]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program that the command line names; returns the exit status."""
    name, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("--help", "-h"):
        print(overview())
        return 0
    if name == "--version":
        print(versions())
        return 0
    if name not in PROGRAMS:
        close = difflib.get_close_matches(name, PROGRAMS, n=1)
        hint = f"; the closest is {close[0]!r}" if close else ""
        print(f"cule: expected one of {', '.join(PROGRAMS)}, got {name!r}{hint}", file=sys.stderr)
        return 2
    return importlib.import_module(PROGRAMS[name][0]).main(arguments)


if __name__ == "__main__":
    sys.exit(main())
