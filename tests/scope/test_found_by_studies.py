"""Faults of cule.scope that benchmarks.studies has shown."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import shutil
import sys
import time
from pathlib import Path

import torch

from cule import scope
from cule.scope.analysis import analyse
from cule.scope.events import BACKWARD, Call
from tests.scope.made import process


def test_wait_of_another_thread_is_no_part_of_a_backward_pass():
    """tqdm's monitor, which waits for seconds, began to wait during one."""
    helper = [
        Call(20, 30, "backend", "aten::mm"),
        Call(40, 100, "waiting", "Condition.wait"),
    ]
    made = process(100, calls=[Call(10, 50, "backend", BACKWARD)], helper=helper)
    spent: dict[str, float] = {}
    for (_, _, level), nanoseconds in analyse(made).cells[0].nanoseconds.items():
        spent[level] = spent.get(level, 0) + float(nanoseconds)
    assert spent == {"python": 60, "backend": 40}


def test_native_functions_are_boundaries_under_names_of_their_package(tmp_path, monkeypatch):
    """As mujoco.mj_step, which is mujoco._functions.mj_step."""
    found = importlib.util.find_spec("_bisect")
    assert found is not None and found.origin is not None
    package = tmp_path / "planted_copies"
    package.mkdir()
    shutil.copy(found.origin, package / Path(found.origin).name)
    (package / "__init__.py").write_text("from planted_copies._bisect import bisect_left\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("planted_copies")
    native = module.bisect_left
    with scope.record(tmp_path / "scope", boundaries=["planted_copies"]) as recording:
        for _ in range(3):
            assert module.bisect_left([1, 2], 2) == 1
    (calls,) = (one.count for one in recording.transitions() if one.target == "simulator")
    assert calls == 3
    assert module.bisect_left is native


def imported(pipe) -> None:
    """Says whether this process had to import something to record, once it does."""
    importlib.import_module("torch")
    pipe.send(None)
    pipe.recv()
    torch.ones(3).sum()
    pipe.send("torch._inductor" in sys.modules)
    pipe.recv()


def test_processes_are_ready_to_record_before_the_window(tmp_path):
    """torch's profiler imports torch's compiler, for seconds of which they were missing."""
    context = multiprocessing.get_context("spawn")
    with scope.record(tmp_path, iterations=(1, 2)) as recording:
        own, its = context.Pipe()
        child = context.Process(target=imported, args=(its,), name="ready", daemon=True)
        child.start()
        own.recv()
        with scope.iteration():
            pass
        with scope.iteration():
            time.sleep(0.5)  # it looks for the window now and then
            own.send(None)
            assert own.recv() is False
        own.send(None)
        child.join(60)
    assert {one.process.name for one in recording.processes} == {"main", "ready"}
