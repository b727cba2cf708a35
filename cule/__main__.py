"""`python -m cule`, installed as `cule`: lists the programs, or runs one, as in `cule demo`."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Sequence

import torch

import cule
from cule.command_line import listed, run_one_of, told

# The programs: the module with its `main`, and what it does.
PROGRAMS = {
    "demo": ("cule.demo", "plays a dozen games, says how fast, and draws their screens"),
    "play": ("cule.play", "opens a game in a window, which you play with the keyboard"),
    "record": ("cule.record", "records a video of games that are played with random actions"),
    "bench": ("cule.bench.__main__", "measures frames per second; on a CPU, ale-py's, too"),
    "train": ("cule.train.__main__", "says how to train, and lists the programs around trainings"),
    "evaluate": ("cule.train.evaluate", "plays a trained agent's episodes on ale-py: its score"),
    "watch": ("cule.train.watch", "records a video of a trained agent"),
    "plot": ("cule.train.plot", "draws the scores of trainings against time and frames"),
    "sweep": ("cule.train.sweep", "trains on many games with many seeds"),
    "tune": ("cule.train.tune.__main__", "finds the settings with which a training is fastest"),
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
    return "\n".join(lines + listed({name: what for name, (_, what) in PROGRAMS.items()}))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program that the command line names; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["--version"]:
        return told("cule", lambda: print(versions()))
    return run_one_of("cule", PROGRAMS, overview, words)


if __name__ == "__main__":
    sys.exit(main())
