"""Fixtures of all tests: the devices that are there, and a folder for compiled C++."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

# Threads that wait let others work: of tests and the programs that they start there are more than
# cores. It is read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# On some processors MKL rounds the rows of a product otherwise if there are more of them. What is
# computed at once and in parts is compared bit for bit.
os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")

import pytest
import torch

from cule import _core

# JAX takes three quarters of a GPU's free memory when it starts, unless this is set before. Other
# test processes, and torch in this one, use the same GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# The tests' tensors are small, so that more threads would only slow down each other and other test
# processes.
torch.set_num_threads(1)
# Triton reads this when it is first imported, which any test may do. torch itself compiles with
# Triton for GPUs only.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
# A shell script that starts the tests with `&` lets them ignore Ctrl-C, and so the programs that
# they start and end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """GPU tests are skipped if there is no GPU or no CUDA build."""
    if _core.has_cuda() and torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA build and a GPU"))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Each device on which envs can be here."""
    return request.param


@pytest.fixture
def quick_spawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program spawns is a fork of one process, which has imported cule and done no more.

    It has the environment that this process had when the first of them was started.
    """
    context, get = multiprocessing.get_context("forkserver"), multiprocessing.get_context
    context.set_forkserver_preload(["cule.train", "cule.bench.measure"])
    monkeypatch.setattr(
        multiprocessing, "get_context", lambda kind=None: context if kind == "spawn" else get(kind)
    )


@pytest.fixture(scope="session")
def build_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' compiled C++ is kept between runs (tests/support/build.py)."""
    cache = getattr(request.config, "cache", None)
    return Path(cache.mkdir("built")) if cache is not None else tmp_path_factory.getbasetemp()
