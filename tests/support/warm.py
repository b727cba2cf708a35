"""Python programs in processes of their own, which do not each import torch anew.

`run` starts a program as a fork of one process, which has imported what most of them import, and
has done nothing else. It is not for a program that torch's profiler records, nor for one that is
told what to load by variables that the loader or torch read at the start (LD_PRELOAD,
OMP_NUM_THREADS), that may not write files, or that shows what importing does.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run(
    words: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> subprocess.CompletedProcess[str]:
    """Runs `python words...`: `-c` and code, `-m` and a module, or a file; and their arguments.

    Args:
        words: what follows `python` on a command line.
        cwd: the folder in which it runs.
        env: its environment; without it, this process's.
        timeout: seconds, after which it is killed, and its return code is -SIGALRM.
    """
    (done,) = _run(words, cwd, [os.environ if env is None else env], timeout)
    return done


def run_ranks(
    count: int,
    words: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> list[subprocess.CompletedProcess[str]]:
    """Runs `python words...` `count` times at once, as torchrun does; by rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        **(os.environ if env is None else env), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
    }  # fmt: skip
    envs = [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    return _run(words, ROOT, envs, timeout)


def _run(
    words: Sequence[str | os.PathLike[str]],
    cwd: str | os.PathLike[str],
    envs: Sequence[Mapping[str, str]],
    timeout: float,
) -> list[subprocess.CompletedProcess[str]]:
    command = list(map(str, words))
    with tempfile.TemporaryDirectory() as folder:
        programs = [
            {
                "words": command, "cwd": str(cwd), "env": dict(env), "timeout": timeout,
                "files": [os.path.join(folder, f"{name}{number}") for name in ("out", "err")],
            }
            for number, env in enumerate(envs)
        ]  # fmt: skip
        codes = _server()(programs)
        texts = [[Path(file).read_text() for file in one["files"]] for one in programs]
    return [
        subprocess.CompletedProcess([sys.executable, *command], code, *text)
        for code, text in zip(codes, texts, strict=True)
    ]


@functools.cache
def _server() -> Any:
    """Starts the process that is forked; returns what sends it a request and waits for its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin and process.stdout
    atexit.register(process.kill)

    def send(programs: list[dict[str, Any]]) -> list[int]:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(programs) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return send


def _serve() -> dict[str, Any] | None:
    """Forks for each program. Returns it in the fork, and None when there are no more."""
    for line in sys.stdin:
        children = []
        for program in json.loads(line):
            with warnings.catch_warnings():
                # Since 3.12 Python warns of forks beside threads, and some BLAS makes threads.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                signal.alarm(int(program["timeout"]))  # SIGALRM ends it
                return program
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)
    return None


def _become(asked: dict[str, Any]) -> None:
    """Makes this process what `python words...` would be, and runs the program."""
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    opened = [os.open(file, os.O_WRONLY | os.O_CREAT, 0o600) for file in asked["files"]]
    for number, file in enumerate([nothing, *opened]):
        os.dup2(file, number)
        os.close(file)
    sys.orig_argv[1:] = asked["words"]
    kind, *words = asked["words"]
    path = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = ["", *path, *(folder for folder in sys.path if folder != str(ROOT))]
    if kind == "-m":
        sys.path[0] = asked["cwd"]
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        code, *words = words
        sys.argv = ["-c", *words]
        program = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), program.__dict__)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(kind))
        sys.argv = [kind, *words]
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    import torch._dynamo  # noqa: F401

    import cule.train  # noqa: F401

    gc.freeze()  # what is there now is not looked at again in forks, so that it stays shared
    if asked := _serve():
        _become(asked)
