"""Runs the scripts of examples/with: does cule work with each library, and how fast?

    python -m benchmarks.conformance
    python -m benchmarks.conformance --libraries skrl TorchRL --num-envs 1024 --device cuda

Each script runs in a process of its own, in a folder that is deleted afterwards. What is not
installed is left out; libraries that cannot work are named with the reason (libraries.py). With
--results each result is appended as a row. The exit status is 1 if a script fails.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.libraries import LIBRARIES, Library
from cule.programs.results import append_row, command_line, commit, machine, now

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "examples" / "with"
SAID = re.compile(r"^\S+ (\S+): ([\d,]+) frames a second, \d+ envs, \S+$", re.MULTILINE)


def is_here(library: Library, cleanrl: str | None) -> bool:
    """Whether a library's script can run here."""
    folder = library.name != "CleanRL" or cleanrl is not None
    return folder and importlib.util.find_spec(library.module) is not None


def output_of(words: Sequence[str], patience: float) -> tuple[str, str | None]:
    """The output of a Python program, and what went wrong, if something did.

    Args:
        words: what follows `python`.
        patience: seconds after which it is killed, with all that it has started.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        try:
            out, error = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            return "", f"it takes longer than {patience:g} s"
        finally:  # also at Ctrl-C
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    if process.returncode:
        lines = error.strip().splitlines() or ["nothing was said"]
        return out, f"exit status {process.returncode}: {lines[-1]}"
    return out, None


def result_of(library: Library, args: argparse.Namespace) -> dict[str, Any]:
    """Runs a library's script; returns its row, with `fps` or with `problem`."""
    words = [str(SCRIPTS / str(library.script)), "--game", args.game, "--device", args.device,
             "--num-envs", str(args.num_envs), "--steps", str(args.steps)]  # fmt: skip
    if library.name == "CleanRL":
        words += ["--cleanrl", str(Path(args.cleanrl).resolve())]
    out, problem = output_of(words, args.patience)
    said = SAID.findall(out)
    row = {
        "commit": commit(), "date": now(), "system": library.name, "mode": "conformance",
        **machine(torch.device(args.device), 1), "torch": torch.__version__,
        "version": importlib.metadata.version(library.module), "game": args.game,
        "num_envs": args.num_envs, "steps": args.steps, "command": command_line(),
    }  # fmt: skip
    if problem is None and not said:
        problem = "it says no frames a second"
    if problem is not None:
        return row | {"problem": problem[:300]}
    return row | {"fps": float(said[-1][1].replace(",", ""))}


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """The arguments."""
    names = [library.name for library in LIBRARIES]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.conformance", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--libraries", nargs="+", choices=names, default=names, metavar="NAME",
        help=f"default: all. {', '.join(names)}")  # fmt: skip
    add("--game", default="pong")
    add("--num-envs", type=int, default=8)
    add("--steps", type=int, default=128, help="of each env")
    add("--device", default="cpu")
    add("--cleanrl", metavar="FOLDER", help="with CleanRL's repository, which is no package")
    add("--patience", type=float, default=600.0, help="most seconds of a script")
    add("--results", type=Path, metavar="FILE", help="to which rows are appended")
    args = parser.parse_args(words)
    if args.num_envs < 1 or args.steps < 1 or args.patience <= 0:
        parser.error("expected at least 1 as --num-envs and --steps, and more than 0 as --patience")
    return args


def main(words: Sequence[str] | None = None) -> int:
    """Runs the scripts; returns the exit status."""
    args, failed = parsed(words), False
    for library in LIBRARIES:
        if library.name not in args.libraries:
            continue
        if library.script is None:
            said = library.what
        elif not is_here(library, args.cleanrl):
            said = "not installed"
        else:
            row = result_of(library, args)
            failed |= "problem" in row
            said = f"{row['version']}: {row.get('problem') or format(row['fps'], ',.0f') + ' FPS'}"
            if args.results is not None:
                append_row(args.results, row)
        sys.stdout.write(f"{library.name:20} {said}\n")
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
