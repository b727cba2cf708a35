"""Python programs in processes of their own, which do not each import torch anew.

`run` and `start` start a program as a fork of one process, which has imported what most of them
import, and has done nothing else. They are not for a program that torch's profiler records, nor for
one that is told what to load by variables that the loader or torch read at the start (LD_PRELOAD,
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
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Seconds in which processes that train together end after one of them has failed.
PATIENCE = 30.0


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
    command = [sys.executable, *map(str, words)]
    with _started(words, cwd, [os.environ if env is None else env], timeout) as (program,):
        (program.returncode,) = _server()({"await": [program.pid]})
        return subprocess.CompletedProcess(command, program.returncode, *program.communicate())


def run_ranks(
    count: int,
    words: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> list[subprocess.CompletedProcess[str]]:
    """Runs `python words...` `count` times at once, as torchrun does; by rank.

    The store by which the processes find each other is this process's, as torchrun has one: one of
    rank 0 would end each time that rank leaves the others. When one fails, the others may end by
    themselves; after PATIENCE seconds they are killed.
    """
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = {
        **(os.environ if env is None else env), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
    }  # fmt: skip
    envs = [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    command = [sys.executable, *map(str, words)]
    with _started(words, ROOT, envs, timeout) as programs:
        end = None
        while None in (codes := [program.poll() for program in programs]):
            if end is None and any(codes):
                end = time.monotonic() + PATIENCE
            if end is not None and time.monotonic() > end:
                for program in programs:
                    program.send_signal(signal.SIGKILL)
            time.sleep(0.02)
        return [
            subprocess.CompletedProcess(command, code, *program.communicate())
            for program, code in zip(programs, codes, strict=True)
        ]


class Program:
    """A program that runs beside a test, which uses of it what it would use of a Popen.

    Attributes:
        pid: its process.
        returncode: as Popen's; None while it is not known to have ended.
    """

    def __init__(self, pid: int, files: Sequence[str]):
        self.pid, self.returncode, self._files = pid, None, files

    def poll(self) -> int | None:
        """The return code; None if it has not ended."""
        if self.returncode is None:
            (self.returncode,) = _server()({"ended": [self.pid]})
        return self.returncode

    def wait(self, timeout: float = 600) -> int:
        """The return code, once it has ended."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            assert time.monotonic() < end, "the program has not ended"
            time.sleep(0.02)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float = 600) -> tuple[str, str]:
        """What it printed to stdout and stderr, once it has ended."""
        self.wait(timeout)
        out, error = (Path(file).read_text() for file in self._files)
        return out, error

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


@contextmanager
def start(
    words: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> Iterator[Program]:
    """Starts what `run` runs, in a `with` block; it has ended after it.

    Args:
        words: see `run`, also for the others.
        cwd: see there.
        env: see there.
        timeout: see there.
    """
    with _started(words, cwd, [os.environ if env is None else env], timeout) as (program,):
        yield program


@contextmanager
def _started(
    words: Sequence[str | os.PathLike[str]],
    cwd: str | os.PathLike[str],
    envs: Sequence[Mapping[str, str]],
    timeout: float,
) -> Iterator[list[Program]]:
    with tempfile.TemporaryDirectory() as folder:
        asked = [
            {
                "words": list(map(str, words)), "cwd": str(cwd), "env": dict(env),
                "timeout": timeout,
                "files": [os.path.join(folder, f"{name}{number}") for name in ("out", "err")],
            }
            for number, env in enumerate(envs)
        ]  # fmt: skip
        for one in asked:
            for file in one["files"]:
                Path(file).touch()  # a program may be killed before it opens them
        pids = _server()({"start": asked})
        programs = [Program(pid, one["files"]) for pid, one in zip(pids, asked, strict=True)]
        try:
            yield programs
        finally:
            for program in programs:
                if sys.exc_info()[0] is not None:
                    program.send_signal(signal.SIGKILL)
                program.wait()


@functools.cache
def _server() -> Any:
    """Starts the process that is forked; returns what sends it a request and waits for its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin and process.stdout
    atexit.register(process.kill)

    def send(request: dict[str, Any]) -> list[Any]:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return send


def _serve() -> dict[str, Any] | None:
    """Forks for each program. Returns it in the fork, and None when there are no more.

    A request starts programs, which is answered by their processes, or asks for the return codes
    of processes: once they have ended, or at once, with null for those that have not.
    """
    for line in sys.stdin:
        request, answer = json.loads(line), []
        for program in request.get("start", ()):
            with warnings.catch_warnings():
                # Since 3.12 Python warns of forks beside threads, and some BLAS makes threads.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                signal.alarm(int(program["timeout"]))  # SIGALRM ends it
                return program
            answer.append(child)
        for option, name in ((0, "await"), (os.WNOHANG, "ended")):
            for child in request.get(name, ()):
                ended, status = os.waitpid(child, option)
                answer.append(os.waitstatus_to_exitcode(status) if ended else None)
        print(json.dumps(answer), flush=True)
    return None


def _become(asked: dict[str, Any]) -> None:
    """Makes this process what `python words...` would be, and runs the program."""
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    opened = [os.open(file, os.O_WRONLY) for file in asked["files"]]
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
