"""Commit and machine of a row of results, and how rows are written and read.

benchmarks/results/README.md says what the keys mean.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from cule.disk.files import append_line
from cule.disk.json_lines import read_lines
from cule.errors import InvalidValue

# The system of rows about the profiler.
PROFILER = "cule.scope"
# An option of Python's, or some; the last may name a module, have code, or have a value.
_OPTION = re.compile(r"-[bBdEhiIOPqRsSuvVx]*([mcWX]?)(.*)")


def output_of(*command: str, folder: Path | None = None) -> str:
    """The output of a command, stripped; empty if there is no such command or it fails."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout.strip()
    return ""


def commit() -> str:
    """The commit of cule's source tree, "-dirty" if files have changed; else cule's version."""
    folder = Path(__file__).resolve().parents[1]
    if output_of("git", "ls-files", "--error-unmatch", "__init__.py", folder=folder):
        changed = output_of(
            "git", "status", "--porcelain", "--untracked-files=no", "--", ".", "../csrc",
            folder=folder,
        )  # fmt: skip
        return output_of("git", "rev-parse", "--short=12", "HEAD", folder=folder) + (
            "-dirty" if changed else ""
        )
    from cule import __version__

    return f"v{__version__}"


def now() -> str:
    """The time in UTC, such as "2026-11-21T12:00:00+00:00"."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def cpu_name() -> str:
    """The processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine(device: torch.device, threads: int) -> dict[str, Any]:
    """The keys of a row that describe the machine."""
    if device.type == "cpu":
        plural = "s" if threads > 1 else ""
        return {
            "device_name": f"{cpu_name()}, {threads} thread{plural}",
            "driver": None,
            "cuda": None,
        }
    driver = output_of(
        "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"
    ).partition("\n")[0]
    return {
        "device_name": torch.cuda.get_device_name(device),
        "driver": driver or None,
        "cuda": torch.version.cuda,
    }


def _program() -> list[str]:
    """The program and its arguments, as on Python's command line; empty: it is in no file."""
    main, words = sys.modules["__main__"], sys.orig_argv[1:]
    file = Path(getattr(main, "__file__", None) or "")
    # Notebooks have no file, and that of what comes from stdin is not there.
    if getattr(main, "__spec__", None) is None and not file.is_file():
        return []
    while words and (option := _OPTION.match(words[0])):
        kind, value = option.groups()
        words = [value, *words[1:]] if value else words[1:]
        if kind in ("m", "c"):
            return ["-m", *words] if kind == "m" else []
        if kind or value:
            words = words[1:]
    return words


def starting(program: Sequence[str]) -> str:
    """The command that starts a program in as many processes as this one is among.

    Args:
        program: `-m MODULE ...` or `SCRIPT.py ...`.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    each = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    start = ["python"]
    if size > 1:
        machines = ["--nnodes", str(size // each)] if size > each else []
        start = ["torchrun", *machines, "--nproc-per-node", str(each)]
    if "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        start = ["python", "-m", "cule.train.mps", "--", *start]
    return shlex.join([*start, *program])


def command_line() -> str | None:
    """The command that runs this program; None: nothing repeats it, as in a notebook."""
    program = _program()
    return starting(program) if program else None


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, after a warning for each damaged line.

    Raises:
        OSError: the file cannot be read.
    """
    return read_lines(path, dict).usable("row of results")


def append_row(path: Path, row: Mapping[str, Any], *, once: bool = False) -> None:
    """Appends a row to a file, completely or not at all.

    Args:
        path: the file; it and its folder are made if they are missing.
        row: values that JSON can hold.
        once: append nothing if the file has this row already.

    Raises:
        ValueError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        append_line(path, json.dumps(row), once=once)
    except OSError as problem:
        wanted = "expected a file of results that can be written"
        raise InvalidValue(f"{wanted}, got {path}: {problem.strerror}") from problem
