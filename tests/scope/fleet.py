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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cule import scope
from tests.scope.planted import Ledger, iterate


def work(folder: Path, iterations: int) -> None:
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


_barrier: Any = None


def meet_at(barrier: Any) -> None:
    """Says to a Pool's worker where all of them meet."""
    global _barrier
    _barrier = barrier


def work_together(task: Callable[[], None], _: int) -> None:
    """A Pool's task, of which each worker gets one: it begins when all of them have one."""
    _barrier.wait()
    task()


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
        barrier = context.Barrier(options.pool)
        with scope.operation("pool"), context.Pool(options.pool, meet_at, (barrier,)) as pool:
            pool.map(functools.partial(work_together, task), range(options.pool), chunksize=1)
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
