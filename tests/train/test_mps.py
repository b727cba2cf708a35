"""A service with which processes share a GPU: it is there for a program, and ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stand_ins.nvml import nvml_of
from training_runs import ROOT

from cule.train import mps
from cule.train.distributed import slices
from tests.support import warm

# A stand-in for NVIDIA's program: -f serves, else a word from stdin ends what serves.
STAND_IN = """#!{python}
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
log = pathlib.Path({log!r})
if sys.argv[1:] == ["-f"]:
    if {broken}:
        sys.exit("no GPU here")
    (folder / "control").touch()
    log.open("a").write(f"serves {{os.environ.get('CUDA_VISIBLE_DEVICES')}}\\n")
    while not (folder / "quit").exists():
        time.sleep(0.01)
    log.open("a").write("ends\\n")
else:
    assert sys.stdin.read().startswith("quit")
    (folder / "quit").touch()
"""
# Prints its folder, and goes on until SIGTERM if it has an argument.
CLIENT = """
import os, signal, sys, time
print(os.environ["CUDA_MPS_PIPE_DIRECTORY"], os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
if sys.argv[1:]:
    time.sleep(60)
sys.exit(3)
"""


@pytest.fixture
def controlled(tmp_path):
    """Makes the environment with the stand-in and two of the GPUs, and its log."""

    def make(broken: bool = False) -> tuple[dict[str, str], Path]:
        log, program = tmp_path / "log", tmp_path / "bin" / "nvidia-cuda-mps-control"
        program.parent.mkdir()
        program.write_text(STAND_IN.format(python=sys.executable, log=str(log), broken=broken))
        program.chmod(0o755)
        path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "CUDA_VISIBLE_DEVICES": "93,95"}, log

    return make


def words(*command: str) -> list[str]:
    return [sys.executable, "-m", "cule.train.mps", "--", *command]


def test_service_is_there_for_a_command_and_ends_with_it(controlled):
    environment, log = controlled()
    done = subprocess.run(
        words(sys.executable, "-c", CLIENT), env=environment, cwd=ROOT, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert log.read_text() == "serves 93,95\nends\n"
    folder, devices = done.stdout.split()
    assert not Path(folder).exists()
    # The service has renumbered them.
    assert devices == "0,1"


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("1", "GPU-b"), ("2", "MIG-c0"), ("MIG-c0", "MIG-c0"), ("1,0", "GPU-b,MIG-a0,MIG-a1"),
        ("GPU-b", "GPU-b"),
    ],
)  # fmt: skip
def test_devices_have_their_names_where_nvml_knows_them(controlled, monkeypatch, chosen, names):
    """A number would mean another device to a client, which counts all of the machine's."""
    environment, log = controlled()
    gpus = {"GPU-a": ["MIG-a0", "MIG-a1"], "GPU-b": None, "GPU-c": ["MIG-c0"]}
    monkeypatch.setitem(sys.modules, "pynvml", nvml_of(gpus))
    monkeypatch.setenv("PATH", environment["PATH"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    before = slices.slices()
    with mps.service() as variables:
        assert variables["CUDA_VISIBLE_DEVICES"] == names
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", names)
        assert slices.slices() == before
    assert log.read_text() == f"serves {names}\nends\n"


def test_sigterm_ends_the_command_and_then_the_service(controlled):
    environment, log = controlled()
    process = subprocess.Popen(
        words(sys.executable, "-c", CLIENT, "long"), env=environment, cwd=ROOT,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert Path(process.stdout.readline().split()[0]).is_dir()
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 5
    assert log.read_text() == "serves 93,95\nends\n"


@pytest.mark.parametrize(
    ("broken", "command", "told"),
    [
        (True, ["true"], "expected nvidia-cuda-mps-control to start a service, got: no GPU here"),
        (False, ["/nowhere"], "expected a command that can be run, got /nowhere: No such file"),
        (False, [], "expected python -m cule.train.mps -- COMMAND, got no command"),
    ],
)
def test_mistakes_are_sentences(controlled, broken, command, told):
    environment, _ = controlled(broken)
    done = warm.run(words(*command)[1:], env=environment)
    assert done.returncode == 2 and told in done.stderr


def test_no_service_is_a_sentence():
    environment = {**os.environ, "PATH": "/nowhere"}
    done = warm.run(words("true")[1:], env=environment)
    assert done.returncode == 2
    assert "expected nvidia-cuda-mps-control, which comes with NVIDIA's driver" in done.stderr


# Uses the GPU, and prints its own number and those of all clients of all servers.
ASK = """
import os, subprocess, torch
torch.ones(4, device="cuda").sum().item()
def ask(words):
    return subprocess.run(
        ["nvidia-cuda-mps-control"], input=words, capture_output=True, text=True, check=True
    ).stdout.split()
servers = ask("get_server_list")
print(os.getpid(), *(client for one in servers for client in ask("get_client_list " + one)))
"""


@pytest.mark.gpu
def test_a_process_is_a_client_of_the_service():
    done = subprocess.run(
        words(sys.executable, "-c", ASK), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    own, *clients = done.stdout.split()
    assert own in clients, done.stdout
