"""A program of many processes, each of which writes down how long it worked where.

    python -m tests.scope.fleet FOLDER --fork 4 --spawn 4 --pool 16

One works at a time, so that it has a core for itself.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

from cule import scope
from tests.scope.planted import Ledger, iterate


def work(folder: Path, iterations: int, _: int = 0) -> None:
    """Some iterations, whose ledgers are appended to a file of this process."""
    for _ in range(iterations):
        with (folder / "turn").open("a") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            with scope.iteration():
                ledger = Ledger()
                ledger.at(scope.UNATTRIBUTED, "python")
                iterate(ledger)
                ledger.at("", "")
        cells = {" ".join(cell): seconds for cell, seconds in ledger.seconds.items() if cell[0]}
        with (folder / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(cells) + "\n")


def start_all(options: argparse.Namespace) -> None:
    """Starts all processes, and waits for them."""
    task = functools.partial(work, options.folder, options.iterations)
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with scope.operation(method):
            processes = [context.Process(target=task) for _ in range(getattr(options, method))]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
                assert process.exitcode == 0
    if options.pool:
        context = multiprocessing.get_context("fork")
        with scope.operation("pool"), context.Pool(options.pool) as pool:
            pool.map(task, range(options.pool), chunksize=1)
    with scope.operation("os.fork"):
        for _ in range(options.os_fork):
            if (child := os.fork()) == 0:
                task()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    with scope.operation("subprocess"):
        for module in options.python:
            words = [sys.executable, "-c", f"import {module}, os; print(os.getpid())"]
            subprocess.run(words, check=True)


def main() -> None:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for name in ("--fork", "--spawn", "--forkserver", "--pool", "--os-fork"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--python", nargs="*", default=[], help="each imports a module")
    parser.add_argument("--iterations", type=int, default=1)
    start_all(parser.parse_args())


if __name__ == "__main__":
    main()
