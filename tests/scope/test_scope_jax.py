"""A program that spends known times in JAX: the breakdown finds them, as it does torch's."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cule import scope
from cule.scope.boundary import Boundaries, levels_of, parse_boundary
from cule.scope.collect import Collected
from cule.scope.jax_calls import JaxCalls
from cule.scope.recording import Recording
from cule.scope.storage import parts_in
from tests.scope.planted import (
    Ledger,
    cells_of_iterations,
    check_cells,
    record_iterations,
    simulate,
    spin,
)

jax = pytest.importorskip("jax")
ROOT = Path(__file__).resolve().parents[2]
ITERATIONS = 7
# XLA and Python work for some fifty milliseconds, beside which it is little that JAX itself does
# in Python, which the ledger counts to the backend.
LOOPS = 120


@jax.jit
def multiplied(x):
    return jax.lax.fori_loop(0, LOOPS, lambda _, y: jax.numpy.tanh(y @ y), x)


@jax.jit
def total(x):
    return jax.lax.fori_loop(0, LOOPS, lambda _, y: jax.numpy.tanh(y @ y), x).sum()


def iterate(ledger: Ledger, x) -> None:
    """One iteration, which waits for JAX in each way in which programs do."""
    with scope.operation("act"):
        ledger.at("act", "python")
        spin(0.020)
        ledger.at("act", "backend")
        multiplied(x).block_until_ready()
        ledger.at("act", "python")
        spin(0.010)
        ledger.at(scope.UNATTRIBUTED, "python")
    with scope.operation("copy"):
        ledger.at("copy", "backend")
        found = np.asarray(multiplied(x))
        ledger.at("copy", "python")
        spin(0.050)
        ledger.at("copy", "backend")
        jax.device_put(found).block_until_ready()
        ledger.at("copy", "python")
        simulate(ledger, "copy", 0.015)
        ledger.at(scope.UNATTRIBUTED, "python")
    with scope.operation("value"):
        ledger.at("value", "backend")
        float(total(x))
        jax.device_get(multiplied(x))
        ledger.at("value", "python")
        spin(0.050)
        ledger.at(scope.UNATTRIBUTED, "python")
    spin(0.005)


def test_each_cell_is_found(tmp_path):
    x = jax.numpy.ones((256, 256))
    ledgers, recording = record_iterations(tmp_path, 3, partial(iterate, x=x))
    assert recording.problems == []
    found = cells_of_iterations(recording.processes[0])[-3:]
    for mine, ledger in zip(found, ledgers, strict=True):
        planted = {cell for cell, seconds in ledger.seconds.items() if seconds > 2e-3}
        assert len(planted) == 8
        assert planted <= {cell for cell, seconds in mine.items() if seconds > 1e-3}


# While others compute, JAX's threads are done some milliseconds before Python goes on: the clock of
# the program counts these as the backend's.
@pytest.mark.slow
def test_each_cell_is_found_within_two_percent_or_a_fifth_of_a_millisecond(tmp_path):
    x = jax.numpy.ones((256, 256))
    ledgers, recording = record_iterations(tmp_path, ITERATIONS, partial(iterate, x=x))
    assert recording.problems == []
    found = cells_of_iterations(recording.processes[0])[-ITERATIONS:]
    assert check_cells(found, [ledger.seconds for ledger in ledgers]) == 8


def backend_of(recording: Recording, process: str = "main") -> dict[str, float]:
    """Seconds in the backend by operation."""
    found: Counter[str] = Counter()
    for row in recording.breakdown():
        if (row.process, row.level) == (process, "backend"):
            found[row.operation] += row.seconds
    return found


def seconds_of_threads(folder: Path, names: list[str]) -> tuple[dict[str, float], list[float]]:
    """Records a call of JAX in each of some threads, one after the other.

    Returns:
        Seconds in the backend by process and thread, and those by the threads' own clocks.
    """
    x = jax.numpy.ones((256, 256))
    multiplied(x).block_until_ready()

    def act() -> None:
        with scope.operation("other"):
            begun = time.perf_counter()
            multiplied(x).block_until_ready()
            spent.append(time.perf_counter() - begun)
            spin(0.05)

    spent: list[float] = []
    with scope.record(folder) as recording:
        for name in names:
            thread = threading.Thread(target=act, name=name)
            with scope.operation("own"):
                thread.start()
                thread.join()
                multiplied(x).block_until_ready()
    assert set(backend_of(recording)) == {"own"}
    return {one.process: one.seconds for one in recording.breakdown()
            if (one.operation, one.level) == ("other", "backend")}, spent  # fmt: skip


def test_threads_are_told_apart(tmp_path):
    names = ["first", "second", "third"]
    for attempt in range(3):
        others, spent = seconds_of_threads(tmp_path / str(attempt), names)
        assert list(others) == [f"main:{name}" for name in names]
        pairs = list(zip(others.values(), spent, strict=True))
        assert all(found < most + 1e-3 for found, most in pairs)
        # Where a thread is not run between the clock and the operation, only the clock goes on, as
        # beside a busy program. Then it is recorded again.
        if all(0.8 * most < found for found, most in pairs):
            return
    raise AssertionError(f"expected most of the clocks' seconds, got {pairs}")


def act_in_a_fork() -> None:
    with scope.operation("in the fork"):
        spin(0.05)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_a_fork_of_a_program_with_jax_is_recorded_without_it(tmp_path):
    x = jax.numpy.ones((8, 8))
    with scope.record(tmp_path) as recording, scope.operation("act"):
        multiplied(x).block_until_ready()
        worker = multiprocessing.get_context("fork").Process(target=act_in_a_fork)
        worker.start()
        worker.join(60)
        assert worker.exitcode == 0
        multiplied(x).block_until_ready()
    assert recording.problems == []
    assert backend_of(recording)["act"] > 0
    operations = {row.operation for row in recording.breakdown() if row.process != "main"}
    assert "in the fork" in operations


def test_all_is_as_before_after_a_recording(tmp_path):
    before = np.asarray, np.array
    with scope.record(tmp_path):
        assert np.asarray is not before[0]
        assert np.asarray([1, 2], dtype=np.int8).dtype == np.int8
        assert np.asarray.__name__ == "asarray"
    assert (np.asarray, np.array) == before


def test_jax_that_is_imported_during_a_recording_is_recorded(tmp_path):
    """And its devices are not chosen before the program does."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from cule import scope\n"
        "assert 'jax' not in sys.modules\n"
        "with scope.record(sys.argv[1]) as recording:\n"
        "    import jax\n"
        "    from jax._src import xla_bridge\n"
        "    assert not xla_bridge.backends_are_initialized()\n"
        "    f = jax.jit(lambda x: x @ x)\n"
        "    x = jax.numpy.ones((1000, 1000))\n"
        "    with scope.operation('act'):\n"
        "        for _ in range(3):\n"
        "            f(x).block_until_ready()\n"
        "assert recording.problems == [], recording.problems\n"
    )
    subprocess.run([sys.executable, str(program), str(tmp_path / "scope")], cwd=ROOT, check=True)
    recording = Recording(tmp_path / "scope")
    calls = Counter(
        call.name
        for part in parts_in(tmp_path / "scope")[0]
        for thread in part.read().threads.values()
        for call in thread.calls
    )
    assert sum(count for name, count in calls.items() if name.startswith("PjitFunction")) >= 3
    assert backend_of(recording)["act"] > 0


def test_another_session_of_the_profiler_is_a_sentence(tmp_path):
    with (
        pytest.warns(UserWarning, match="expected JAX's profile, got"),
        jax.profiler.trace(str(tmp_path / "own")),
        scope.record(tmp_path / "scope") as recording,
        scope.operation("act"),
    ):
        multiplied(jax.numpy.ones((8, 8))).block_until_ready()
    (problem,) = recording.problems
    assert problem.endswith("calls into JAX count as Python's")
    assert list((tmp_path / "own").rglob("*.xplane.pb")), "the program's own is written"


def test_jax_without_a_profiler_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib._profiler", None)
    monkeypatch.delattr("jaxlib._profiler", raising=False)
    with (
        pytest.warns(UserWarning, match="expected to record calls into JAX by its profiler"),
        scope.record(tmp_path) as recording,
        scope.operation("act"),
    ):
        pass
    (problem,) = recording.problems
    assert problem.endswith("they count as Python's")


# Boundaries ---------------------------------------------------------------------------------------


def test_a_boundary_may_be_the_backends(tmp_path):
    assert parse_boundary("numpy=backend") == ("numpy", "backend")
    assert levels_of(["a", "b=backend"])["a"] == "simulator"
    assert levels_of(["a", "b=backend"])["b"] == "backend"
    assert levels_of(["ale_py=backend"])["ale_py"] == "backend"
    assert next(iter(levels_of(["jaxlib=simulator"]))) == "jaxlib", "before jaxlib._jax"
    with scope.record(tmp_path, boundaries=["tests.scope.planted_simulator=backend"]) as recording:
        ledger = Ledger()
        with scope.operation("step"):
            simulate(ledger, "step", 0.05)
    wanted = ledger.seconds["step", "simulator"]
    assert backend_of(recording)["step"] == pytest.approx(wanted, rel=0.02, abs=1e-3)


@pytest.mark.parametrize(
    "wrong", ["json=nothing", "json=", "json=python", "no_such_module=backend"]
)
def test_a_wrong_boundary_is_a_sentence(wrong, tmp_path):
    with pytest.raises(ValueError, match=r"expected (a boundary to be|--boundary to name)"):
        scope.record(tmp_path, boundaries=[wrong])


def test_children_know_the_levels_too(tmp_path):
    code = (
        "import json\nfrom cule import scope\nfrom tests.scope.planted import *\n"
        "ledger = Ledger()\nwith scope.operation('step'):\n    simulate(ledger, 'step', 0.05)\n"
        "print(ledger.seconds['step', 'simulator'])\n"
    )
    with scope.record(tmp_path, boundaries=["tests.scope.planted_simulator=backend"]) as recording:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
    child = recording.processes[1].process.name
    wanted = float(done.stdout)
    assert backend_of(recording, child)["step"] == pytest.approx(wanted, rel=0.02, abs=1e-3)
    assert json.loads((tmp_path / "main.process.json").read_bytes())["state"] == "complete"


def test_calls_without_annotations_are_not_kept_apart():
    """A thread that was not told of is one of XLA's own."""

    class Event:
        def __init__(self, name, start, duration):
            self.name, self.start_ns, self.duration_ns = name, start, duration

    class Line:
        events = (Event("f", 5, 10), Event("g", 6, 2))

    collected = Collected()
    calls = JaxCalls(collected, 100, Boundaries(collected, {}).timed)
    lists = collected.here()
    calls._lists.append(lists)
    calls._add(Line(), 1000)
    assert lists.calls == []
    Line.events = (Event("cule.scope thread 0", 0, 1), *Line.events)
    calls._add(Line(), 1000)
    assert lists.calls == [(905, 915, "backend", "f")]


@pytest.mark.gpu
def test_work_of_jax_on_a_gpu_is_its_operations(tmp_path):
    """Products of known size: the GPU's time is nearly all of the wait for them."""
    (device, *_) = jax.devices("gpu")
    x = jax.device_put(np.full((4096, 4096), 1 / 4096, np.float32), device)
    product = jax.jit(lambda x: jax.lax.fori_loop(0, 40, lambda _, y: y @ x, x))
    product(x).block_until_ready()
    waited = 0.0
    with scope.record(tmp_path) as recording:
        for _ in range(ITERATIONS):
            with scope.iteration():
                begin = time.perf_counter()
                with scope.operation("act"):
                    result = product(x)
                with scope.operation("wait"):
                    result.block_until_ready()
                waited += time.perf_counter() - begin
                with scope.operation("rest"):
                    spin(0.005)
    seconds = {one.operation: one.seconds for one in recording.gpu()}
    # Of the loop's copies Kineto does not say which call made them.
    assert recording.problems == [] and set(seconds) <= {"act", scope.UNATTRIBUTED}
    assert 0.7 * waited < seconds["act"] <= sum(seconds.values()) <= waited
