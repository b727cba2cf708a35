"""Runs a program whose processes share GPUs side by side.

    python -m cule.train.mps -- python -m cule.train.sweep --games pong --per-gpu 3 ...
    python -m cule.train.mps -- torchrun --nproc-per-node 2 -m examples.ppo.ppo --layout staggered:2

Processes take turns on a GPU unless they are clients of CUDA's Multi-Process Service
(https://docs.nvidia.com/deploy/mps), which comes with NVIDIA's driver. This starts a service, in a
folder of its own, and ends it with the program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cule.errors import InvalidValue
from cule.programs.command_line import exit_status_of
from cule.train.distributed.budgets import CONTROL
from cule.train.distributed.slices import VISIBLE, visible
from cule.train.run.stopper import Stopper

# Seconds: how long the service may take to start, and to end; and between two looks.
START, END, POLL = 10.0, 10.0, 0.05
USAGE = "python -m cule.train.mps -- COMMAND"


@contextmanager
def service() -> Iterator[dict[str, str]]:
    """A service for all GPUs, while the block runs.

    Yields:
        The variables with which a process is its client.

    Raises:
        ValueError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="cule-mps-") as name:
        folder = Path(name)
        variables = {"CUDA_MPS_PIPE_DIRECTORY": name, "CUDA_MPS_LOG_DIRECTORY": name}
        environment = os.environ | variables
        if chosen := [one for one in os.environ.get(VISIBLE, "").split(",") if one]:
            if names := ",".join(visible()):
                environment[VISIBLE] = variables[VISIBLE] = names
            else:  # a client's numbers are of the devices that its service sees
                variables[VISIBLE] = ",".join(map(str, range(len(chosen))))
        printed = folder / "printed"
        try:
            with printed.open("wb") as output:
                # In the foreground and a group of its own, which Ctrl-C does not reach.
                control = subprocess.Popen(
                    [CONTROL, "-f"], env=environment, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=output, start_new_session=True,
                )  # fmt: skip
        except OSError as problem:
            raise InvalidValue(
                f"expected {CONTROL}, which comes with NVIDIA's driver, got: {problem.strerror}"
            ) from problem
        try:
            _wait_for(control, folder / "control", printed)
            yield variables
        finally:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [CONTROL], env=environment, input=b"quit -t 1\n", timeout=END, check=False,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                control.wait(END)
            control.kill()
            control.wait()


def _wait_for(control: subprocess.Popen[bytes], pipe: Path, printed: Path) -> None:
    """Waits until a service listens.

    Raises:
        ValueError: it has ended, or does not listen in time.
    """
    end = time.monotonic() + START
    while not pipe.exists():
        if control.poll() is not None or time.monotonic() > end:
            said = (printed.read_text(errors="replace").strip().splitlines() or ["nothing"])[-1]
            raise InvalidValue(f"expected {CONTROL} to start a service, got: {said}")
        time.sleep(POLL)


def run(command: Sequence[str]) -> int:
    """Runs a command whose processes share GPUs; its exit status.

    SIGTERM and SIGINT go on to it, as SIGTERM, and it is waited for.

    Raises:
        ValueError: there is no such command, or the service cannot be started.
    """
    if not command:
        raise InvalidValue(f"expected {USAGE}, got no command")
    with Stopper() as stopper, service() as variables:
        try:
            process = subprocess.Popen(command, env=os.environ | variables)
        except OSError as problem:
            raise InvalidValue(
                f"expected a command that can be run, got {command[0]}: {problem.strerror}"
            ) from problem
        passed_on = False
        while process.poll() is None:
            if stopper.wanted and not passed_on:
                process.send_signal(signal.SIGTERM)
                passed_on = True
            time.sleep(POLL)
        return process.returncode if process.returncode >= 0 else 128 - process.returncode


def main() -> int:
    """Runs the command after `--`; returns its exit status."""
    words = sys.argv[1:]

    def chosen() -> int:
        if words[:1] in (["-h"], ["--help"]):
            sys.stdout.write(f"usage: {USAGE}\n\n{__doc__}")
            return 0
        return run(words[1:] if words[:1] == ["--"] else words)

    return exit_status_of("mps", chosen)


if __name__ == "__main__":
    sys.exit(main())
